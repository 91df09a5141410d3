"""A stage's verdict on a candidate, as the campaign's ledger has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Word = Literal["pass", "fail", "privileged", "open"]
"""open: it decides nothing either way, and the next stage has to."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the gate and what it says of a candidate."""

    name: str
    verdict: Word
    why: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The stage as records have it."""
        return {
            "stage": self.name,
            "verdict": self.verdict,
            "why": self.why,
            "evidence": dict(self.evidence),
        }
