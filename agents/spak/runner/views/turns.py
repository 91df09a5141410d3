"""The turns of a run as a replay finds them: each proposal with the effect that it answers.

Takes records in order; gives one Turn per proposal, with the state before and after it and the commits that
it led to. What every export that is not the ledger itself is made from (events, aep, items): no model, no
sandbox and no workspace is needed, and what the ledger does not hold is not in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from spak.errors import LedgerError
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.state import Effect, State
from spak.records import Authority, Kind, Record


@dataclass(slots=True)
class Turn:
    """One proposal and what the kernel made of it."""

    proposal: Record
    effect: Effect | None
    """What it answers; None for a genesis and for a control."""
    rules: Rules
    before: State
    after: State
    commits: list[Record] = field(default_factory=list)

    def first(self, kind: str) -> Record | None:
        """The first of its commits that is of a kind."""
        return next((record for record in self.commits if record.kind == kind), None)

    @property
    def done(self) -> Effect | None:
        """The effect that was done: no look at the world, and no count of a prompt."""
        if self.effect is None or self.proposal.kind == Kind.OBSERVE:
            return None
        return self.effect

    @property
    def rolled_back(self) -> bool:
        """Whether what it brought was not taken: rolled back, or it never fitted."""
        outcome, route = self.proposal.body.get("outcome"), self.first(Kind.ROUTE)
        selected = self.first(Kind.SELECT)
        if selected is not None:
            return selected.body.get("i") == -1
        if route is not None and route.body.get("txn") == "rollback":
            return True
        return self.proposal.kind == Kind.ACT and outcome not in (None, "exited", "answered")


def turns(records: Iterable[Record]) -> Iterator[Turn]:
    """The turns of a run, each as soon as its last commit is there.

    Raises: LedgerError `ledger.diverged` where the records do not follow from one another.
    """
    found, open_ = Replay(), None
    for record in records:
        before = found.state
        found.feed(record)
        if found.difference is not None:
            raise LedgerError(
                "ledger.diverged",
                f"record {record.seq} does not follow from those before it",
                "spak replay shows the difference",
            )
        if record.authority == Authority.COMMIT and open_ is not None:
            open_.commits.append(record)
        if record.authority != Authority.PROPOSAL or found.rules is None:
            continue
        if open_ is not None:
            yield open_
        open_ = Turn(
            record, None if record.kind == Kind.CONTROL else before.r6, found.rules, before, found.state
        )
    if open_ is not None:
        yield open_
