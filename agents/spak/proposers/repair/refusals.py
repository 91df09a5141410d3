"""Refusals of a repair: a code, what was found, what would help, and evidence. Data only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no patch."""

    code: str
    message: str
    hint: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it is recorded."""
        return {"code": self.code, "message": self.message, "hint": self.hint, **self.evidence}


def listed(names: Sequence[str], most: int = 3) -> str:
    """Some names in a sentence."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def nowhere() -> Refusal:
    """The refusal where no code that may be edited is suspected."""
    what = "no line of a function outside of the tests runs in a failing test"
    return Refusal("repair.exhausted", what, "the cause is not in code that a repair may edit")
