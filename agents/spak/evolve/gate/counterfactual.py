"""Recorded runs under a candidate, without a model or a sandbox.

First the rehearsal: the unchanged spec has to give every commit of the ledger again, byte for byte; else the
run is unusable, and the reason is reported. Then the candidate's kernel is fed what the ledger holds:

    exact     the effect is the recorded one, its whole context included: the recorded proposal holds
    decided   the same action on the same files elsewhere in the run, with a result that does not depend on
              who asked: the recorded proposal holds there too
    unknown   the context of a question or a tool changed before its answer: nothing is known from here on

An unknown step never counts for the candidate, and nothing is extrapolated.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from spak import canon
from spak.errors import LedgerError, UserError
from spak.evolve.gate.task_outcomes import Outcome, Outcomes, settled
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.state import Effect, State
from spak.kernel.step import step
from spak.records import Authority, Kind, Record

Ended = Literal["same", "better", "worse", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The run as it was: its proposals with the effect that each answers, and how it ended."""

    run: str
    genesis: Mapping[str, Any]
    answered: tuple[tuple[Effect, Record], ...]
    state: str
    steps: int
    elapsed_ms: int
    tokens: int
    cost_nanousd: int = 0
    problem: str = ""
    """Why it cannot be used; empty where it replays."""
    tasks: Mapping[str, Outcome] = field(default_factory=dict)
    """How each task that it entered was left."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run under a candidate. `steps` are those of the recorded run; `saved` is what it no longer does."""

    run: str
    exact: int = 0
    decided: int = 0
    unknown: int = 0
    ended: Ended = "unknown"
    state: str = ""
    steps_saved: int = 0
    ms_saved: int = 0
    tokens_saved: int = 0
    cost_saved_nanousd: int = 0
    problem: str = ""
    tasks: Mapping[str, Outcome | None] = field(default_factory=dict)
    """How each task of the candidate was left; None where the replay does not know."""
    retries: bool = False
    """Whether it is unknown from a question on, in a task that has other RETRIES under the candidate."""

    @property
    def coverage(self) -> float:
        """The share of decisions that could be judged without asking a model, from 0 to 1."""
        total = self.exact + self.decided + self.unknown
        return (self.exact + self.decided) / total if total else 0.0


def rehearse(run: str, records: Sequence[Record]) -> Rehearsal:
    """Replay the unchanged spec and keep what the ledger answered."""
    replay, answered, outcomes = Replay(), [], Outcomes()
    genesis: Mapping[str, Any] = records[0].body if records else {}
    try:
        for record in records:
            pending = replay.state.r6
            replay.feed(record)
            if record.authority == Authority.COMMIT:
                outcomes.take((record,))
            if pending is not None and _answers(pending, record):
                answered.append((pending, record))
        replay.finish()
    except UserError as error:
        return Rehearsal(run, genesis, (), "", 0, 0, 0, 0, f"{error.message} [{error.code}]")
    problem = ""
    if replay.difference is not None:
        problem = f"record {replay.difference.seq} is not what the unchanged spec gives"
    elif replay.rules is None:
        problem = "it has no first record"
    elif not replay.state.ended:
        problem = "it has not ended"
    state = replay.state
    return Rehearsal(
        run, genesis, tuple(answered), state.status, state.r1.steps, state.r1.elapsed_ms, state.r2,
        state.r7.cost, problem, outcomes.found,
    )  # fmt: skip


def _answers(pending: Effect, record: Record) -> bool:
    return record.authority == Authority.PROPOSAL and record.body.get("of") == pending.id


def under(rehearsed: Rehearsal, text: str) -> Replayed:
    """The recorded run under another spec text."""
    if rehearsed.problem:
        return Replayed(rehearsed.run, problem=rehearsed.problem)
    body = canon.loads(canon.dumps(rehearsed.genesis))
    body["rules"]["spec"] = text
    try:
        rules = Rules.of(body)
    except (UserError, LedgerError) as error:
        return Replayed(rehearsed.run, problem=f"{error.message} [{error.code}]")
    return _Walk(rehearsed, rules, body).run()


class _Walk:
    def __init__(self, rehearsed: Rehearsal, rules: Rules, body: Mapping[str, Any]) -> None:
        self.rehearsed = rehearsed
        self.rules = rules
        self.state, self.outcomes = State(), Outcomes()
        self.step(Record(Kind.GENESIS, Authority.PROPOSAL, body))
        self.left: dict[str, deque[int]] = defaultdict(deque)
        for index, (effect, _) in enumerate(rehearsed.answered):
            self.left[_key(effect)].append(index)
        self.by_id = {effect.id: index for index, (effect, _) in enumerate(rehearsed.answered)}
        self.used: set[int] = set()

    def run(self) -> Replayed:
        exact = decided = 0
        answered = self.rehearsed.answered
        while not self.state.ended and self.state.r6 is not None:
            effect = self.state.r6
            index = self.by_id.get(effect.id, -1)
            if index >= 0 and index not in self.used:
                exact += 1
            else:
                index = self.known(effect)
                if index < 0:
                    return self.result(exact, decided, "unknown")
                decided += 1
            self.used.add(index)
            record = answered[index][1]
            self.feed(record, effect)
        return self.result(exact, decided, self.compared())

    def known(self, effect: Effect) -> int:
        """The index of a recorded answer that holds for this effect as well; -1 where there is none.

        A question's answer holds only for the same prompt, a timing only for the same seed.
        """
        waiting = self.left.get(_key(effect))
        while waiting:
            index = waiting.popleft()
            recorded, record = self.rehearsed.answered[index]
            if index not in self.used and (recorded.seed == effect.seed or not record.body.get("pairs")):
                return index
        return -1

    def feed(self, record: Record, effect: Effect) -> None:
        changed = record._replace(
            body={**record.body, "of": effect.id}, task=effect.task, step=effect.step, attempt=effect.attempt
        )
        self.step(changed)

    def step(self, record: Record) -> None:
        stepped = step(self.rules, self.state, record)
        self.state = stepped.state
        self.outcomes.take(stepped.commits)

    def compared(self) -> Ended:
        before, after = self.rehearsed.state, self.state.status
        if before == after:
            return "same"
        return "worse" if before == "succeeded" else "better" if after == "succeeded" else "other"

    def result(self, exact: int, decided: int, ended: Ended) -> Replayed:
        whole = ended != "unknown"
        before, state = self.rehearsed, self.state
        unknown = 0 if whole else max(1, len(before.answered) - len(self.used))
        return Replayed(
            before.run, exact, decided, unknown, ended, state.status if whole else "",
            before.steps - state.r1.steps if whole else 0,
            before.elapsed_ms - state.r1.elapsed_ms if whole else 0,
            before.tokens - state.r2 if whole else 0,
            before.cost_nanousd - state.r7.cost if whole else 0,
            tasks=settled(self.rules.program, self.outcomes.found, "" if whole else state.r0.task),
            retries=not whole and self.other_retries(),
        )  # fmt: skip

    def other_retries(self) -> bool:
        """Whether the question that is open belongs to a task whose RETRIES differ: its prompt names them."""
        effect, before = self.state.r6, Rules.of(self.rehearsed.genesis).program.tasks
        if effect is None or effect.cls != "ask" or effect.task not in before:
            return False
        return before[effect.task].retries != self.rules.program.tasks[effect.task].retries


def _key(effect: Effect) -> str:
    """What an answer depends on, whoever asked and when; a question's prompt is part of its arguments."""
    rivals = {name: dict(files) for name, files in effect.rivals.items()}
    return canon.content_hash([effect.act, effect.name, effect.args, effect.root, list(effect.watch), rivals])


def total(found: Sequence[Replayed]) -> dict[str, Any]:
    """Sums over runs, with coverage in all and the runs by how they ended."""
    exact, decided, unknown = (
        sum(getattr(item, name) for item in found) for name in ("exact", "decided", "unknown")
    )
    steps = exact + decided + unknown
    ended = {word: sum(item.ended == word for item in found if not item.problem) for word in
             ("same", "better", "worse", "other", "unknown")}  # fmt: skip
    return {
        "runs": len(found),
        "unusable": [{"run": item.run, "why": item.problem} for item in found if item.problem],
        "exact": exact,
        "decided": decided,
        "unknown": unknown,
        "coverage": (exact + decided) / steps if steps else 0.0,
        "ended": ended,
        "worse": [item.run for item in found if item.ended == "worse"],
        "saved": {
            "steps": sum(item.steps_saved for item in found),
            "ms": sum(item.ms_saved for item in found),
            "tokens": sum(item.tokens_saved for item in found),
            "cost_nanousd": sum(item.cost_saved_nanousd for item in found),
        },
    }


def to_json(found: Replayed) -> dict[str, Any]:
    """The result as records have it; its tasks are counted over all runs (task_outcomes.py)."""
    body = {**asdict(found), "coverage": found.coverage}
    del body["tasks"], body["retries"]
    return body
