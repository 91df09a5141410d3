"""The options of PROPOSER evolve: their schema, their defaults and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spak.errors import UsageError
from spak.lang.schema import violations
from spak.proposers.history import Better

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[^/]"},
        "better": {"type": "string", "enum": ["lower", "higher"]},
        "islands": {"type": "integer", "minimum": 1, "maximum": 16},
        "population": {"type": "integer", "minimum": 2, "maximum": 64},
        "migrate": {"type": "integer", "minimum": 1, "maximum": 1000},
        "crossover": {"type": "integer", "minimum": 0, "maximum": 100},
        "failures": {"type": "integer", "minimum": 0, "maximum": 8},
        "tokens": {"type": "integer", "minimum": 16, "maximum": 65536},
        "block": {"type": "integer", "minimum": 16, "maximum": 65536},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options with their defaults."""

    path: str
    """The file that candidates are written to."""
    better: Better = "lower"
    islands: int = 2
    population: int = 6
    """Candidates that an island keeps."""
    migrate: int = 8
    """Tries between two migrations."""
    crossover: int = 30
    """In how many of 100 questions two parents are shown, where there are two."""
    failures: int = 3
    """Failures that a question shows."""
    tokens: int = 0
    """The longest answer; 0 is the backend's own limit."""
    block: int = 8192
    """Characters of a block."""


def parse(options: Mapping[str, Any]) -> Options:
    """The options with their defaults. Raises: UsageError `evolve.options`."""
    found = violations(SCHEMA, options)
    if found:
        first = found[0]
        raise UsageError(
            "evolve.options",
            f"options of evolve, {first.path or '/'}: {first.hint}",
            f"options are {', '.join(SCHEMA['properties'])}",
        )
    return Options(**options)
