"""The words of one command, sorted by its table: what spak.commandline.interpret makes and kinds read."""

from __future__ import annotations

from dataclasses import dataclass, field

from spak.commandline.table import Option
from spak.commandline.words import Arg


@dataclass(slots=True)
class Parsed:
    """The words of a command, sorted."""

    given: list[tuple[Option, list[Arg]]] = field(default_factory=list)
    operands: list[Arg] = field(default_factory=list)
    after: list[Arg] = field(default_factory=list)
    """The words that are not looked at: a verb's, or another command's."""
    fits: bool = True
    first_after_dashes: int = -1
    """Which operand is the first after `--`; -1 without one."""

    def names(self) -> set[str]:
        """The options that were given."""
        return {option.name for option, _ in self.given}

    def values(self, *names: str) -> list[Arg]:
        """The values of some options, in the order given."""
        return [value for option, values in self.given if option.name in names for value in values]
