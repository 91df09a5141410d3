"""The strategies that ship: what the header of each spec says.

A spec of specs/strategies is a strategy where lines of its first comment say so:

    // STRATEGY NAME (ALIAS)
    // SERVES VERB: KIND, KIND

Takes the files; gives a Strategy for each, in order of their names. A spec without such lines is started by
a command of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from spak import data
from spak.errors import BugError
from spak.strategies.situation import KINDS

FOLDER = "specs/strategies"
_NAME = re.compile(r"// STRATEGY ([a-z_]+)(?: \(([a-z_]+)\))?")
_SERVES = re.compile(r"// SERVES ([a-z_]+): ([a-z_, ]+)")


@dataclass(frozen=True, slots=True)
class Strategy:
    """A shipped spec, and what it is for."""

    name: str
    alias: str
    """The name that seed 004 gives it, if that is another."""
    file: Path
    serves: tuple[tuple[str, str], ...]
    """Verbs with kinds of targets."""


def shipped() -> tuple[Strategy, ...]:
    """All strategies."""
    files = sorted(data.path(FOLDER).glob("*.spak"))
    return tuple(made for file in files if (made := strategy(file, file.read_text(encoding="utf-8"))))


def strategy(file: Path, text: str) -> Strategy | None:
    """What a spec's header says; None where it has none. Raises: BugError `bug.strategy`."""
    name, alias, serves = "", "", []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        if found := _NAME.fullmatch(line):
            name, alias = found[1], found[2] or ""
        elif found := _SERVES.fullmatch(line):
            kinds = [kind.strip() for kind in found[2].split(",")]
            serves += [(found[1], kind) for kind in kinds]
    odd = [kind for _, kind in serves if kind not in KINDS]
    if odd or bool(name) != bool(serves) or name not in ("", file.stem):
        raise BugError("bug.strategy", f"the header of {file.name} is not one of a strategy {odd}")
    return Strategy(name, alias, file, tuple(serves)) if name else None
