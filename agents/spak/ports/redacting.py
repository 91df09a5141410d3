"""The port of whatever takes secrets out of what is stored."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol


class Redacting(Protocol):
    """What takes secrets out of what is stored. `text` and `value` raise RunError `llm.redaction`."""

    def knowing(self, found: Collection[str]) -> Redacting:
        """The same, which takes out these values of files of secrets in the place of those that it knew."""

    def also(self, key: str) -> Redacting:
        """The same, which also takes out this key."""

    def text(self, text: str) -> str:
        """The text without secrets."""

    def holds(self, data: bytes) -> bool:
        """Whether a known secret stands in the bytes."""

    def value(self, value: Any) -> Any:
        """The JSON value with all of its texts without secrets."""

    def stream(self, put: Callable[[str], None]) -> Callable[[str], None]:
        """For pieces of a text as they come: what is handed on never holds a part of a secret."""

    def whole(self, text: str) -> int:
        """How much of the beginning of a text has the same secrets in it, however the text goes on."""

    def rest(self, text: str, after: int = 0) -> int:
        """How much of the beginning may be the rest of a secret; `after` letters before it are known."""
