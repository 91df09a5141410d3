"""What a change of the law or of a spec newly permits or denies, judged on actions that runs recorded.

`changes(run, records, old, new)` takes the records of a run and two Sides; gives each action that the two
judge differently, in order, and counts. It replays the run, so that an action is judged under the facts that
the run knew when it asked: what the registers held, what was observed, what was approved. It executes
nothing.

It says nothing of actions that no run took. An action of a task that a side has renamed is judged as one of
the new name. What it cannot judge it names: a question about the world that the run never asked, a task that
the other spec has not.
Source: DESIGN.md section 9; notes on history rules (what a change permits).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from spak import canon
from spak.datalog.values import Fact
from spak.errors import LedgerError
from spak.kernel.answer import answered
from spak.kernel.gate import Gate, Judged, ProposedAction
from spak.kernel.observed import Facts, Questions
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.situation import fixed
from spak.kernel.state import Effect
from spak.kernel.step import expects
from spak.lang import parse
from spak.lang.diff import compare
from spak.policy.history import state as past
from spak.policy.history.state import History
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
    denied: bool = False
    """Whether the old side denies it and the new one may permit it."""

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

    Raises: LedgerError where another kernel made the run, or it does not replay; SpecError
    and PolicyError where a side does not load.
    """
    found = Changes(runs=1)
    replay: Replay | None = None
    sides: tuple[_Judging, _Judging] | None = None
    for record in records:
        if replay is None or sides is None:
            if record.kind != Kind.GENESIS:
                raise LedgerError("ledger.genesis", "the first record is not a genesis")
            replay, sides = _prepared(record.body, old, new)
        pending = replay.state.r6
        if pending is not None and expects(replay.state, record):
            for side in sides:
                side.answered(record, pending)
        replay.feed(record)
        if replay.difference is not None:
            raise LedgerError(
                "ledger.diverged", f"{run} does not replay: record {replay.difference.seq} differs"
            )
        judged = replay.judged.get(record.content) if record.kind == Kind.PERMIT else None
        if judged is not None and replay.rules is not None:
            _compare(found, run, record, judged, replay.rules, sides)
    return found


class _Judging:
    """One side while a run is read: its rules, and what its folds keep of what the run did.

    Folds are exact until the first action that this side decides otherwise than the run did: what came after
    it might not have happened, so nothing that reads a fold is judged any more.
    """

    def __init__(self, rules: Rules, renames: Mapping[str, str], own: Rules) -> None:
        self.rules, self.gate = rules, rules.gate
        self.is_own = rules.gate.hash == own.gate.hash and rules.program == own.program
        """Whether the side decides as the run did, so that what was decided is its verdict."""
        self.renames = renames
        """Names of tasks here, by those of the run, where they differ."""
        self.others: frozenset[tuple[str, str]] = frozenset()
        """Steps of a task of the run that call a tool otherwise on the other side: not what was recorded."""
        self.history = History()
        self.why = ""
        """Why nothing more can be judged; empty while all can."""

    def task(self, record: Record) -> str:
        """The name that the task of a record has here."""
        return self.renames.get(record.task, record.task)

    def lacks(self, record: Record) -> str:
        """Why the spec cannot take the action at all; empty where it can."""
        if self.task(record) not in self.rules.program.tasks:
            return f"the spec has no TASK {record.task}"
        tool = str(record.body["name"]) if record.body["act"] == "tool" else ""
        if tool and self.rules.catalog.tool(tool) is None:
            return f"the catalog has no tool {tool}"
        return ""

    def judge(
        self, record: Record, proposed: ProposedAction, known: tuple[Fact, ...], seen: Facts
    ) -> Judged | Questions:
        """The verdict, under what the folds say at this record."""
        now = past.begin(self.history, record.at)
        verdict = self.gate.rejudge(proposed._replace(history=now), known, seen)
        if isinstance(verdict, Judged) and self.gate.folds:
            _, trouble = self._requested(record, verdict, verdict.allow is True)
            if trouble:
                return verdict._replace(allow=False, code="policy.limit", reason=trouble)
        return verdict

    def decided(self, record: Record, verdict: Judged | str) -> None:
        """Keep what the run decided, and whether this side would have decided the same."""
        allow = record.body["allow"]
        if not self.gate.folds or self.why or allow == "ask":
            return
        if isinstance(verdict, str):
            self.why = "an action before it could not be judged, and folds rest on it"
        elif verdict.allow is not allow:
            self.why = "an action before it would have been decided otherwise, and folds rest on it"
        else:
            self.history, _ = self._requested(record, verdict, allow is True)

    def _requested(self, record: Record, verdict: Judged, allow: bool) -> tuple[History, str]:
        now = past.begin(self.history, record.at)
        call = str(record.attempt)
        return past.requested(self.gate.folds, now, call, verdict.fed, allow=allow, record=record.seq)

    def answered(self, record: Record, pending: Effect) -> None:
        """Keep what a call answered."""
        if self.gate.folds and not self.why:
            self.history = answered(self.rules, self.history, pending, record)


def _prepared(genesis: Mapping[str, Any], old: Side, new: Side) -> tuple[Replay, tuple[_Judging, _Judging]]:
    """A replay whose gate gets all facts that a side reads, and the rules of the sides."""
    own = Rules.of(genesis)
    sides = (_judging(genesis, own, old), _judging(genesis, own, new))
    sides[1].others = _called_otherwise(*sides)
    gate = Gate(own.gate.policy)
    for side in sides:
        gate.reads |= side.gate.reads
    return Replay(rules=replace(own, gate=gate)), sides


def _called_otherwise(old: _Judging, new: _Judging) -> frozenset[tuple[str, str]]:
    """Task of the run and step, where both sides have a step of that name and it calls a tool otherwise."""
    found = set()
    for name in {*old.rules.program.tasks, *old.renames}:
        before, after = (
            {step.id: (step.name, step.args) for step in task.steps if step.kind == "tool"}
            if (task := side.rules.program.tasks.get(side.renames.get(name, name))) is not None
            else {}
            for side in (old, new)
        )
        found |= {(name, step) for step in before.keys() & after.keys() if before[step] != after[step]}
    return frozenset(found)


def _judging(genesis: Mapping[str, Any], own: Rules, side: Side) -> _Judging:
    text = str(genesis["rules"]["spec"])
    return _Judging(Rules.of(genesis_under(genesis, side)), _renames(text, side.spec or text), own)


@lru_cache(maxsize=32)
def _renames(old: str, new: str) -> Mapping[str, str]:
    return {} if old == new else compare(parse(old), parse(new)).renames


def genesis_under(genesis: Mapping[str, Any], side: Side) -> dict[str, Any]:
    """The first record of a run, had it begun under a side."""
    recorded = genesis["rules"]
    policy = recorded["policy"]
    law = Law.from_json(policy) if side.law is None else side.law
    spec, axioms = policy["spec"], policy["axioms"]
    if side.spec is not None:
        spec, axioms = side.policy, side.axioms
    held = {**law.to_json(), "spec": spec, "axioms": dict(axioms)}
    held["hash"] = _hash(canon.dumps(held))
    rules = {**recorded, "policy": held}
    if side.spec is not None:
        rules |= {"spec": side.spec, "catalog": dict(side.catalog)}
    return {**genesis, "rules": rules}


@lru_cache(maxsize=32)
def _hash(policy: bytes) -> str:
    held = canon.loads(policy)
    return compiled(Law.from_json(held), held["spec"], held["axioms"]).hash


def _compare(
    found: Changes, run: str, record: Record, judged: Judged, own: Rules, sides: tuple[_Judging, _Judging]
) -> None:
    body = record.body
    name = str(body.get("name", body["act"]))
    found.judged += 1
    before, after = (_judged_under(record, name, judged, own, side) for side in sides)
    sides[0].decided(record, before)
    sides[1].decided(record, after)
    if isinstance(before, str) or isinstance(after, str):
        why = before if isinstance(before, str) else str(after)
        denied = isinstance(before, Judged) and before.allow is False and not sides[1].lacks(record)
        found.unknown.append(Unknown(run, record.seq, name, why, denied))
        return
    if before.allow == after.allow:
        return
    newly: Direction = "permitted" if after.allow else "denied"
    denies, permits = (before, after) if after.allow else (after, before)
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
            sides[1].gate.text(permits if after.allow else denies),
        )
    )


def _judged_under(record: Record, name: str, judged: Judged, own: Rules, side: _Judging) -> Judged | str:
    """The verdict of a side, or why there is none."""
    rules = side.rules
    if side.is_own and judged.allow != "ask":
        return judged
    if why := side.lacks(record) or side.why:
        return why
    if (record.task, record.step) in side.others:
        return f"its step {record.step} calls {name} otherwise"
    act = record.body["act"]
    tool = name if act == "tool" else ""
    task = rules.program.tasks[side.task(record)]
    before = fixed(own, own.program.tasks[record.task], tool)
    after = fixed(rules, task, tool)
    known = (*after, *(fact for fact in judged.facts if fact not in set(before)))
    moving = tuple(fact for fact in judged.moving if fact[0] not in own.gate.folds)
    proposed = ProposedAction(act, name, record.body["args"], (), moving)
    verdict = side.judge(record, proposed, known, judged.seen)
    if isinstance(verdict, Judged):
        return verdict
    return "it asks of the world what the run did not look at"
