"""Programs whose words are a language of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from spak.commandline.table import Grammar
from spak.commandline.words import Arg
from spak.shell import Command

if TYPE_CHECKING:
    from spak.commandline.commands import Judge

Reader = Callable[["Judge", Grammar, list[Arg], Sequence[Command]], None]
READERS: dict[str, Reader] = {}


def script(judge: Judge, grammar: Grammar, language: str, item: Arg) -> None:
    """A program given as a word."""
    judge.deed("executes", grammar.name, language)
