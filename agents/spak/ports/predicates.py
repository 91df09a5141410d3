"""The port of external predicates: rows that something outside of the kernel knows, for laws that ask.

A law declares `Decl p(X, Y) descr [external(), mode("+", "-")].` and the run's kernel asks for the rows of
each value that it needs (spak.datalog.externals). What is answered is recorded, so that a replay asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from spak.cancel import Cancel
from spak.datalog.values import Value


@dataclass(frozen=True, slots=True)
class PredicateEntry:
    """What is known of an external predicate without asking it."""

    name: str
    version: int
    summary: str
    columns: tuple[str, ...]
    """What each column is, for people; their number is the predicate's."""
    modes: tuple[str, ...]
    """One sign a column: `+` is given by who asks, `-` is answered. Questions of other forms are refused."""
    max_rows: int = 1000
    """More rows than this are an error, and no shorter answer."""
    timeout_s: float = 5.0


@dataclass(slots=True)
class Look:
    """One look at the world, in which one or several questions are answered."""

    root: Path
    """The workspace, to be read and not written."""
    cancel: Cancel | None = None
    index: Path | None = None
    """Where the model of the workspace's code is kept from one look to the next, if it is."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What answers of one look keep for one another."""


class Predicate(Protocol):
    """Something that answers questions of laws. The same world gives the same rows in the same order."""

    entry: PredicateEntry

    def rows(self, args: Sequence[Value | None], look: Look) -> Iterable[Sequence[Value]]:
        """Whole rows that fit the arguments, None being what is wanted; rows that do not fit are left out.

        Whatever it raises is a denial. It is called in a thread that may be left to itself after `timeout_s`.
        """
