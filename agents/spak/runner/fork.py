"""Fork: a new run with the rules of another, its proposals copied up to a record.

Takes the parent's records and a seq; gives the proposals to feed into the new run, in order. Copying stops,
and says so, at the first proposal that the new run does not await or that needs a person again (an
approval). Commits are derived again, but for those before the parent's last snapshot: of them the lines are
taken over (`from_snapshot`), since a snapshot is what they lead to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from spak import data
from spak.errors import LedgerError, RunError
from spak.kernel.rules import Rules
from spak.kernel.snapshot import Unusable, unpack
from spak.kernel.state import State, changed
from spak.kernel.step import expects, step
from spak.ledger.files import FileLedgers
from spak.ports import Ledger
from spak.records import Authority, Kind, Record
from spak.runner.host import Host
from spak.runner.resume import unfolded
from spak.runner.run import Run, now
from spak.workspace import Workspace


class Carried(NamedTuple):
    """What a fork need not derive again: the parent's records before `end` lead to this state, with what a
    snapshot holds beside it."""

    end: int
    state: State
    folds: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Copied:
    """The proposals that a fork takes over; `stopped_at` is the parent's seq where copying had to stop."""

    genesis: Record
    proposals: tuple[Record, ...]
    stopped_at: int | None
    carried: Carried | None = None
    """What comes before the proposals, where it is not derived again."""


def copied(records: Iterable[Record], at: int) -> Copied:
    """What a fork at seq `at` takes over: every awaited proposal with a lower seq.

    Raises: RunError `run.fork` when there is no such record.
    """
    following = iter(records)
    genesis = next(following, None)
    if genesis is None:
        raise _nothing_at(at, 0)
    rules = Rules.of(genesis.body)
    return _copied(Copied(genesis, (), None), rules, step(rules, State(), genesis).state, following, at)


def from_snapshot(ledger: Ledger, at: int) -> Copied | None:
    """The same from the last snapshot on; None where there is none before `at`, where it is in doubt, or
    where copying stops before it. Raises: RunError `run.fork`."""
    try:
        kept = ledger.kept()
        if kept is None or kept.count > at:
            return None
        genesis = next(iter(ledger.read()))[0]
        rules = Rules.of(genesis.body)
        state, folds = unpack(kept.data, rules, kept.count, kept.head)
        _, tally = unfolded(rules, folds, ledger, kept.count)
        if tally.stops or state.ended:
            return None
    except (LedgerError, Unusable, KeyError, TypeError):
        return None
    begun = Copied(genesis, (), None, Carried(kept.count, state, folds))
    return _copied(begun, rules, state, (record for record, _ in ledger.read(kept.count)), at)


def _copied(begun: Copied, rules: Rules, state: State, records: Iterable[Record], at: int) -> Copied:
    """Add the awaited ones of the records that follow."""
    kept: list[Record] = []
    last = 0 if begun.carried is None else begun.carried.end - 1
    for record in records:
        if record.seq >= at:
            break
        last = record.seq
        if record.authority != Authority.PROPOSAL:
            continue
        if record.kind == Kind.APPROVAL or not expects(state, record):
            return replace(begun, proposals=tuple(kept), stopped_at=record.seq)
        state = step(rules, state, record).state
        kept.append(record)
    if at != last + 1:
        raise _nothing_at(at, last + 1)
    return replace(begun, proposals=tuple(kept))


def _nothing_at(at: int, most: int) -> RunError:
    return RunError("run.fork", f"there is no record {at} to fork at", f"--at takes 1 to {most}")


def genesis_of(copy: Copied, run: str, parent: str, at: int, host: dict[str, object]) -> dict[str, object]:
    """The body of the fork's genesis: the same rules, another host part that names the parent."""
    now = {"run": run, "kernel_code": data.kernel_code(), "parent": {"run": parent, "at": at}}
    return {**copy.genesis.body, "host": {**host, **now}}


def carry(
    ledgers: FileLedgers,
    run: str,
    genesis: Mapping[str, Any],
    host: Host,
    workspace: Workspace,
    carried: Carried,
    lines: Iterable[bytes],
) -> Run:
    """A new run that takes over the `lines` of its parent after the first record, and the state that they
    lead to. Raises: SpecError, LedgerError."""
    rules = Rules.of(genesis)
    ledger = ledgers.create(run, Record(Kind.GENESIS, Authority.PROPOSAL, genesis, at=now()))
    try:
        ledger.carry(lines)
        ledger.flush()
        made = Run(ledger, workspace, host, rules, changed(carried.state, {"run": run}))
        made.history, made.tally = unfolded(rules, carried.folds, ledger, ledger.count)
    except BaseException:
        ledger.close()
        raise
    return made
