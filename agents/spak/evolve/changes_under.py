"""What another law says of the changes that a run kept: the half of a verdict that comes after a call.

Takes a run's records, the rules that it would have had, and the store of its workspace; gives each kept
change that these rules forbid, in order. Permits are judged by `permitted.changes`. A change that was taken
back is not judged: its files are gone. It executes nothing, and a law that asks the world about a change is
taken to forbid it, since nothing is observed; one that counts what happened is not judged here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spak import door
from spak.errors import LedgerError, UsageError
from spak.kernel.permit import forbids
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.records import Kind, Record
from spak.workspace.store import Store
from spak.workspace.tree import load


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A transaction that would have been taken back."""

    record: int
    tool: str
    reason: str
    paths: tuple[str, ...]


def forbidden(run: str, records: Iterable[Record], rules: Rules, store: Store) -> tuple[list[Forbidden], int]:
    """What is forbidden, and how many transactions were judged.

    Raises: LedgerError `ledger.diverged` where the run does not replay; UsageError `guard.folds`; RunError
    `workspace.object`."""
    replay, found, judged = Replay(), list[Forbidden](), 0
    for record in records:
        before = replay.state
        replay.feed(record)
        if replay.difference is not None:
            raise LedgerError("ledger.diverged", f"{run} does not replay: record {record.seq} differs")
        if replay.rules is not None and rules.gate.folds != replay.rules.gate.folds:
            hint = "leave the folds out, or try them in a new run"
            raise UsageError(
                "guard.folds", "the law counts what happened before, which was not counted then", hint
            )
        effect, root = before.r6, record.body.get("r3")
        if record.kind != Kind.ACT or effect is None or not isinstance(root, str) or root == before.r3:
            continue
        if replay.state.r3 != root:
            continue  # decided against, and taken back
        judged += 1
        looked = door.look(load(store, before.r3), load(store, root), store.read)
        changes = [(one.path, str(one.of)) for one in looked.changes]
        if why := forbids(rules, before, effect, changes):
            found.append(Forbidden(record.seq, effect.name, why, tuple(path for path, _ in changes)))
    return found, judged
