"""The options of PROPOSER evolve: their schema, their defaults and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spak import schema_parts as parts
from spak.proposers.fitting import fit
from spak.proposers.history import Better

SCHEMA = parts.members(
    ["path"],
    path={"description": "The file that candidates are written to.", **parts.PATH},
    better=parts.choice(
        "Whether a lower or a higher metric is better; as in RULE.", ("lower", "higher"), "lower"
    ),
    islands=parts.whole("Islands of the archive; tries come to them in turn.", 1, 16, 2),
    population=parts.whole("Candidates that an island keeps.", 2, 64, 6),
    migrate=parts.whole("Tries after which each island gets the best of the one before it.", 1, 1000, 8),
    crossover=parts.whole("In how many of 100 questions a second parent is shown.", 0, 100, 30),
    failures=parts.whole("Failures that a question shows.", 0, 8, 3),
    tokens=parts.whole("The longest answer in tokens; the backend's own limit without it.", 16, 65536),
    block=parts.whole("Characters of a block.", 16, 65536, 8192),
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options with their defaults."""

    path: str
    better: Better = "lower"
    islands: int = 2
    population: int = 6
    migrate: int = 8
    crossover: int = 30
    failures: int = 3
    tokens: int = 0
    block: int = 8192


def parse(options: Mapping[str, Any]) -> Options:
    """The options with their defaults. Raises: UsageError `evolve.options`."""
    fit("evolve.options", SCHEMA, options)
    return Options(**options)
