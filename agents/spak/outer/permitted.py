"""What a change of the law or of a spec newly permits or denies, judged on actions that runs recorded.

`changes(run, records, old, new)` takes the records of a run and two Sides; gives each action that the two
judge differently, in order, and counts. It replays the run, so that an action is judged under the facts that
the run knew when it asked: what the registers held, what was observed, what was approved. It does nothing.

It says nothing of actions that no run took. What it cannot judge it names: a question about the world that
the run never asked, a task that the other spec has not.
Source: DESIGN.md section 9; notes on history rules (what a change permits).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from spak import canon
from spak.errors import LedgerError
from spak.kernel.gate import Gate, Judged, Wish
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.situation import fixed
from spak.policy.law import Law, compiled
from spak.records import Kind, Record

Direction = Literal["permitted", "denied"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: the law of those in charge and, where specs are compared, the spec and its POLICY."""

    name: str
    law: Law | None = None
    """None keeps the law that the run was made under."""
    spec: str | None = None
    """The text with its imports resolved; None keeps the run's own, with its POLICY."""
    policy: str = ""
    axioms: Mapping[str, str] = field(default_factory=dict)
    catalog: Mapping[str, Any] = field(default_factory=dict)
    """Of the spec's tools and validators, as a genesis record holds it."""


@dataclass(frozen=True, slots=True)
class Change:
    """An action that one side permits and the other does not."""

    run: str
    seq: int
    task: str
    act: str
    name: str
    args: Mapping[str, Any]
    newly: Direction
    code: str
    """Why the side that denies does."""
    proof: str
    """How the side that permits derives it, or how the one that forbids does, as text."""

    def to_json(self) -> dict[str, Any]:
        """The change as commands print it."""
        return {
            "run": self.run, "record": self.seq, "task": self.task, "act": self.act, "name": self.name,
            "args": dict(self.args), "newly": self.newly, "code": self.code, "proof": self.proof,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unknown:
    """An action that one side cannot judge."""

    run: str
    seq: int
    name: str
    why: str

    def to_json(self) -> dict[str, Any]:
        """The action as commands print it."""
        return {"run": self.run, "record": self.seq, "name": self.name, "why": self.why}


@dataclass(slots=True)
class Changes:
    """Of all runs so far."""

    judged: int = 0
    runs: int = 0
    found: list[Change] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)

    def newly(self, direction: Direction) -> list[Change]:
        """The changes in one direction."""
        return [change for change in self.found if change.newly == direction]

    def add(self, other: Changes) -> None:
        """Take what another run or part showed as well."""
        self.judged += other.judged
        self.runs += other.runs
        self.found += other.found
        self.unknown += other.unknown


def changes(run: str, records: Iterable[Record], old: Side, new: Side) -> Changes:
    """The actions of one run under both sides.

    Raises: LedgerError where the records are no run of a semantics with a policy, or do not replay; SpecError
    and PolicyError where a side does not load.
    """
    found = Changes(runs=1)
    replay: Replay | None = None
    sides: tuple[Rules, Rules] | None = None
    for record in records:
        if replay is None or sides is None:
            if record.kind != Kind.GENESIS:
                raise LedgerError("ledger.genesis", "the first record is not a genesis")
            replay, sides = _prepared(record.body, old, new)
        replay.feed(record)
        if replay.difference is not None:
            raise LedgerError(
                "ledger.diverged", f"{run} does not replay: record {replay.difference.seq} differs"
            )
        judged = replay.judged.get(record.content) if record.kind == Kind.PERMIT else None
        if judged is not None and replay.rules is not None:
            _compare(found, run, record, judged, replay.rules, sides)
    return found


def _prepared(genesis: Mapping[str, Any], old: Side, new: Side) -> tuple[Replay, tuple[Rules, Rules]]:
    """A replay whose gate is told all that a side reads, and the rules of the sides."""
    own = Rules.of(genesis)
    if own.gate is None:
        raise LedgerError("ledger.semantics", "a run of semantics 1 asked no policy", "compare later runs")
    sides = (_rules(genesis, own, old), _rules(genesis, own, new))
    gate = Gate(own.gate.policy)
    for side in sides:
        assert side.gate is not None
        gate.reads |= side.gate.reads
    return Replay(rules=replace(own, gate=gate)), sides


def _rules(genesis: Mapping[str, Any], own: Rules, side: Side) -> Rules:
    return Rules.of(genesis_under(genesis, own, side))


def genesis_under(genesis: Mapping[str, Any], own: Rules, side: Side) -> dict[str, Any]:
    """The first record of a run, had it begun under a side; `own` are the rules of the run as it was."""
    recorded = genesis["rules"]
    policy = recorded["policy"]
    law = Law.from_json(policy) if side.law is None else side.law
    spec, axioms = policy["spec"], policy["axioms"]
    if side.spec is not None:
        spec, axioms = side.policy, side.axioms
    held = {**law.to_json(), "spec": spec, "axioms": dict(axioms)}
    held["hash"] = _hash(canon.dumps(held), own.decides.closed_law)
    rules = {**recorded, "policy": held}
    if side.spec is not None:
        rules |= {"spec": side.spec, "catalog": dict(side.catalog)}
    return {**genesis, "rules": rules}


@lru_cache(maxsize=32)
def _hash(policy: bytes, is_closed: bool) -> str:
    held = canon.loads(policy)
    return compiled(Law.from_json(held), held["spec"], held["axioms"], is_closed=is_closed).hash


def _compare(
    found: Changes, run: str, record: Record, judged: Judged, own: Rules, sides: tuple[Rules, Rules]
) -> None:
    body = record.body
    name = str(body.get("name", body["act"]))
    found.judged += 1
    verdicts = []
    for side in sides:
        verdict = _again(record, name, judged, own, side)
        if isinstance(verdict, str):
            found.unknown.append(Unknown(run, record.seq, name, verdict))
            return
        verdicts.append(verdict)
    before, after = verdicts
    if before.allow == after.allow:
        return
    newly: Direction = "permitted" if after.allow else "denied"
    denies, permits = (before, after) if after.allow else (after, before)
    gate = sides[1].gate
    assert gate is not None
    found.found.append(
        Change(
            run,
            record.seq,
            record.task,
            str(body["act"]),
            name,
            body["args"],
            newly,
            denies.code,
            gate.text(permits if after.allow else denies),
        )
    )


def _again(record: Record, name: str, judged: Judged, own: Rules, side: Rules) -> Judged | str:
    """The verdict of a side, or why there is none."""
    if record.task not in side.program.tasks:
        return f"the spec has no TASK {record.task}"
    assert own.gate is not None and side.gate is not None
    act = record.body["act"]
    tool = name if act == "tool" else ""
    if tool and side.catalog.tool(tool) is None:
        return f"the catalog has no tool {tool}"
    before = fixed(own, own.program.tasks[record.task], tool)
    after = fixed(side, side.program.tasks[record.task], tool)
    known = (*after, *(fact for fact in judged.facts if fact not in set(before)))
    wish = Wish(act, name, record.body["args"], (), judged.moving, own.decides)
    verdict = side.gate.rejudge(wish, known, judged.seen)
    if isinstance(verdict, Judged):
        return verdict
    return "it asks of the world what the run did not look at"
