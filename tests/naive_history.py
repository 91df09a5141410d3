"""What folds mean, by looking at everything that happened: slow, and short enough to be read.

Every event is kept. A row of a fold at a decision is computed from the whole list; nothing is merged, dropped
or counted on the way. It knows nothing of room: traces for it stay within the declared bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spak.datalog.folds import Fold
from spak.policy.history.state import Fed, Folds


@dataclass
class Happened:
    """One request and what became of it."""

    call: str
    seq: int
    step: int
    at: int
    allow: bool
    fed: Fed
    ended: str = ""
    """`done`, `error`, or empty while it is under way."""
    end_seq: int = 0
    end_step: int = 0
    end_at: int = 0
    end_fed: Fed = ()


@dataclass
class Everything:
    """The whole past."""

    folds: Folds
    seq: int = 0
    step: int = 0
    now: int = 0
    events: list[Happened] = field(default_factory=list)

    def begin(self, at: int) -> None:
        self.seq, self.step, self.now = self.seq + 1, self.step + 1, max(self.now, at)

    def requested(self, call: str, fed: Fed, allow: bool) -> None:
        self.events.append(Happened(call, self.seq, self.step, self.now, allow, fed))

    def settled(self, call: str, at: int, done: bool, fed: Fed) -> None:
        self.seq, self.now = self.seq + 1, max(self.now, at)
        event = next(item for item in self.events if item.call == call and item.allow and not item.ended)
        event.ended = "done" if done else "error"
        event.end_seq, event.end_step, event.end_at, event.end_fed = self.seq, self.step, self.now, fed

    def fed(self, fold: Fold, close: bool) -> list[tuple[int, int, int, Any]]:
        """(sequence, step, time, row) of every row of the fold that counts now."""
        found: list[tuple[int, int, int, Any]] = []
        for event in self.events:
            first = [row for name, closes, row in event.fed if (name, closes) == (fold.name, close)]
            later = [row for name, closes, row in event.end_fed if (name, closes) == (fold.name, close)]
            counts = "held" if close else fold.counts
            if counts == "asked" or (counts == "held" and event.allow and event.ended != "error"):
                found += [(event.seq, event.step, event.at, row) for row in first]
            if event.ended == "done" and (close or counts == "done"):
                known = first if event.allow and counts == "held" else []
                found += [
                    (event.end_seq, event.end_step, event.end_at, row) for row in later if row not in known
                ]
        return found

    def within(self, fold: Fold, step: int, at: int) -> bool:
        if fold.window is None:
            return True
        return (self.step - step if fold.window.steps else self.now - at) <= fold.window.amount

    def rows(self, fold: Fold) -> set[tuple[Any, ...]]:
        """The rows of a fold that are simply there."""
        fed = sorted(self.fed(fold, False), key=lambda item: item[0])
        closed = self.fed(fold, True) if fold.kind == "open" else []
        newest = {row[: fold.keys]: (seq, step, at, row) for seq, step, at, row in fed}
        found: set[tuple[Any, ...]] = set()
        for key, (seq, step, at, row) in newest.items():
            if not self.within(fold, step, at):
                continue
            if fold.kind == "open":
                if not any(other > seq for other, _, _, shut in closed if shut == key):
                    found.add(key)
            elif fold.kind == "last":
                found.add(row)
            else:
                steps = fold.window is None or fold.window.steps
                found.add((*key, self.step - step if steps else self.now - at))
        return found

    def answer(self, fold: Fold, key: tuple[Any, ...]) -> int:
        if fold.kind == "pending":
            return sum(
                event.allow and not event.ended and (fold.name, False, key) in event.fed
                for event in self.events
            )
        fed = [item for item in self.fed(fold, False) if item[3][: fold.keys] == key]
        return sum(
            row[-1] if fold.kind == "sum" else 1 for _, step, at, row in fed if self.within(fold, step, at)
        )
