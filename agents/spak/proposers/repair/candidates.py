"""An edit of a function and its place in the order of a search. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from spak.patch.make import make
from spak.proposers.repair.functions import Function


@dataclass(frozen=True, slots=True)
class Edit:
    """A function with one thing changed."""

    operator: str
    group: int
    """The class of the operator, 1 to 5."""
    line: int
    text: str
    """The function's new text, with its indentation and its last line feed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An edit of a function; the highest score is tried first."""

    function: Function
    edit: Edit
    score: int = 0

    @property
    def patch(self) -> str:
        """The patch of its file, with the hash of the file before."""
        before, after = self.function.source, self.function.in_file(self.edit.text)
        return make([(self.function.path, before.encode(), after.encode())])
