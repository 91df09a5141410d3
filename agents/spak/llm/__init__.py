"""Model backends: one file per kind and this table. A backend answers a prompt, or leaves it to a person."""

from collections.abc import Callable

from spak.llm.manual import Manual
from spak.ports import Backend

BACKENDS: dict[str, Callable[[], Backend]] = {"manual": Manual}

__all__ = ["BACKENDS", "Manual"]
