"""The backend that is a person: it never answers by itself, so that the run waits.

The prompt is shown by the command line, and the answer comes back through `spak step --resume` with
`--answer` or `--answer-file`. Source: seed 002 section 4.3 (Gemini CLI simulation).
"""

from __future__ import annotations

from collections.abc import Callable

from spak.cancel import Cancel
from spak.lang.catalog import NamedEntry
from spak.ports import Answer, Prompt


class Manual:
    """People answer: every question waits."""

    entry = NamedEntry("manual", "a person answers with `spak step --resume`")

    def check(self) -> None:
        """A person is always there, sooner or later."""

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer | None:
        """Always None: a person answers later."""
        return None
