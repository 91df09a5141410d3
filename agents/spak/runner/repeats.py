"""Recorded answers that a run used for another prompt than the recorded one, read off its records."""

from __future__ import annotations

from dataclasses import dataclass

from spak.llm.recorded import OTHER_PROMPT
from spak.records import Authority, Record


@dataclass(slots=True)
class OtherPrompts:
    """Feed it every record of the run in order."""

    count: int = 0
    first: int = -1
    """The record of the first such answer."""

    def feed(self, record: Record) -> None:
        """Take the next record."""
        if record.authority != Authority.PROPOSAL or not record.side:
            return
        model = record.side.get("by")
        if "recorded" in record.side and isinstance(model, str) and model.endswith(OTHER_PROMPT):
            self.first = self.first if self.count else record.seq
            self.count += 1

    def to_json(self) -> dict[str, int] | None:
        """How many answers a recording gave to other prompts than its own; None for none."""
        return {"other_prompts": self.count, "first_record": self.first} if self.count else None
