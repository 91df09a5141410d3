"""Fork: a new run with the rules of another, its proposals copied up to a record.

Takes the parent's records and a seq; gives the proposals to feed into the new run, in order. Copying stops,
and says so, at the first proposal that the new run does not await or that needs a person again (an
approval). Commits are derived again, never copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spak import data
from spak.errors import RunError
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.kernel.step import expects, step
from spak.records import Authority, Kind, Record


@dataclass(frozen=True, slots=True)
class Copied:
    """The proposals that a fork takes over; `stopped_at` is the parent's seq where copying had to stop."""

    genesis: Record
    proposals: tuple[Record, ...]
    stopped_at: int | None


def copied(records: Iterable[Record], at: int) -> Copied:
    """What a fork at seq `at` takes over: every awaited proposal with a lower seq.

    Raises: RunError `run.fork` when there is no such record.
    """
    genesis: Record | None = None
    kept: list[Record] = []
    state = State()
    rules: Rules | None = None
    last = -1
    for record in records:
        last = record.seq
        if genesis is None:
            genesis = record
            rules = Rules.of(record.body)
            state = step(rules, state, record).state
            continue
        if record.seq >= at:
            return Copied(genesis, tuple(kept), None)
        if record.authority != Authority.PROPOSAL or rules is None:
            continue
        if record.kind == Kind.APPROVAL or not expects(state, record):
            return Copied(genesis, tuple(kept), record.seq)
        state = step(rules, state, record).state
        kept.append(record)
    if genesis is None or at != last + 1:
        raise RunError("run.fork", f"there is no record {at} to fork at", f"--at takes 1 to {last + 1}")
    return Copied(genesis, tuple(kept), None)


def genesis_of(copy: Copied, run: str, parent: str, at: int, host: dict[str, object]) -> dict[str, object]:
    """The body of the fork's genesis: the same rules, another host part that names the parent."""
    now = {"run": run, "kernel_code": data.kernel_code(), "parent": {"run": parent, "at": at}}
    return {**copy.genesis.body, "host": {**host, **now}}
