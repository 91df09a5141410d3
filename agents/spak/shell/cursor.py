"""A place in a command line: what is there, how deep it is nested, and the refusals that name it."""

from __future__ import annotations

from typing import NoReturn

from spak.errors import UsageError

MAX_DEPTH = 32
META = " \t\n|&;()<>"
"""Characters that end a word."""


def short(text: str) -> str:
    """The text for a message."""
    shown = text if len(text) <= 60 else text[:57] + "..."
    return repr(shown)


class Cursor:
    """The text, the next character of it, and the levels of nesting around that."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth

    def _deeper(self) -> None:
        self.depth += 1
        self._check_depth()

    def _check_depth(self) -> None:
        if self.depth > MAX_DEPTH:
            raise UsageError("shell.too_deep", f"a command line nested deeper than {MAX_DEPTH} levels")

    def _fail(self, message: str) -> NoReturn:
        raise UsageError(
            "shell.syntax",
            f"{message}, at character {self.at + 1} of {short(self.text)}",
            "check quotes and brackets",
        )

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(
            "shell.unsupported",
            f"{what} is not read here, at character {self.at + 1} of {short(self.text)}",
            "write it in a simpler way, or put it in a script file",
        )
