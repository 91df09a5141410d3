"""A run as the tuples of its cognitive steps, for training and analysis: one object a step.

    {"state", "context", "response", "items", "output", "signal", "reward", "next_state"}

Takes records and blobs; gives one object per step, by replay. A step is at most one answer (question or
plan), one tool and one verdict (validator, conditions of `success:`, sealed checks) of one task, in that
order; whatever comes when its place is taken begins the next step. What is no effect of its own, such as a
look at the world or an approval, belongs to the step around it. So each effect of a run is in one step, and
`next_state` of each is `state` of the next.

`state` is `seq` of the last record that led to it, the run's status and the registers of `spak show`.
`context` is the prompt, item by item; `response` the answer as the ledger holds it, `items` the same as Open
Responses items with the tool's output, `output` what the tool wrote, `signal` what the kernel routed by; each
is null where the step has none.
An effect that is still under way is in no step.

`reward` is derived from the records, for nothing else is known of a run:

    the signal is fail or timeout, or what was proposed was not taken    -1
    the best metric became better                                        its gain, relative to the best before
    a metric was measured and it did not become better                    0
    another verdict is success                                            1
    everything else, a poll that is done again too                        0

Source: seed 000 sections 3.1.3 and 3.2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from spak import canon
from spak.kernel.state import Effect, registers
from spak.ports import Blobs
from spak.records import Kind, Record
from spak.runner.blobs import expand, prompt_of
from spak.runner.views.items import Items
from spak.runner.views.turns import Turn, turns

Place = Literal["answer", "tool", "verdict"]
ORDER: tuple[Place, ...] = ("answer", "tool", "verdict")
PLACES: dict[str, Place] = {
    "ask": "answer",
    "plan": "answer",
    "tool": "tool",
    "validate": "verdict",
    "check": "verdict",
    "sealed": "verdict",
}
"""The place that an effect takes in its step. One that is not here (a look, an approval) takes none."""


def steps(records: Iterable[Record], blobs: Blobs) -> Iterator[dict[str, Any]]:
    """The steps of a run, in order. Raises: LedgerError."""
    items, step = Items(blobs), _Step()
    for turn in turns(records):
        effect = turn.done
        place = PLACES.get(effect.act) if effect is not None else None
        if effect is not None and place is not None and not step.takes(place, effect.task):
            yield step.line()
            step = _Step(state=step.next_state)
        step.add(turn, place, items, blobs)
    if step.taken:
        yield step.line()


@dataclass(slots=True)
class _Step:
    """A step that is being read."""

    state: dict[str, Any] = field(default_factory=dict)
    next_state: dict[str, Any] = field(default_factory=dict)
    taken: list[Place] = field(default_factory=list)
    task: str = ""
    context: list[dict[str, Any]] | None = None
    response: str | None = None
    items: list[dict[str, Any]] = field(default_factory=list)
    output: str | None = None
    signal: str | None = None
    reward: float = 0

    def takes(self, place: Place, task: str) -> bool:
        """Whether an effect is part of this step: its place and those after it are free."""
        if not self.taken:
            return True
        return task == self.task and ORDER.index(place) > ORDER.index(self.taken[-1])

    def add(self, turn: Turn, place: Place | None, items: Items, blobs: Blobs) -> None:
        """Add what a turn brought; the step begins with the state before its first effect."""
        effect, self.next_state = turn.done, _state(turn)
        if place is None or effect is None:
            self.state = self.state if self.taken else self.next_state
        else:
            self.taken, self.task = [*self.taken, place], effect.task
            self._bring(effect, turn, place, items, blobs)
        self.signal = _signal(turn) or self.signal
        self.reward = _reward(turn, place, self.reward)

    def _bring(self, effect: Effect, turn: Turn, place: Place, items: Items, blobs: Blobs) -> None:
        body = turn.proposal.body
        self.items += items.answer(turn)
        if place == "tool":
            self.output = _text(body.get("out", ""), blobs)
        elif place == "answer":
            if effect.items:
                self.context = [dict(item) for item in prompt_of(effect, blobs, turn.rules).items]
            came = body.get("candidates") if turn.proposal.kind == Kind.PLAN else body.get("out")
            self.response = None if came is None else _text(came, blobs)

    def line(self) -> dict[str, Any]:
        """The step as an object of the export."""
        return {
            "state": self.state,
            "context": self.context,
            "response": self.response,
            "items": self.items,
            "output": self.output,
            "signal": self.signal,
            "reward": self.reward,
            "next_state": self.next_state,
        }


def _state(turn: Turn) -> dict[str, Any]:
    last = turn.commits[-1] if turn.commits else turn.proposal
    shown = registers(turn.after, turn.rules.program.budgets)
    return {"seq": last.seq, "status": turn.after.status, **shown}


def _signal(turn: Turn) -> str | None:
    """The signal of the turn's last route, null where nothing was routed."""
    routed = [record.body["signal"] for record in turn.commits if "signal" in record.body]
    return str(routed[-1]) if routed else None


def _reward(turn: Turn, place: Place | None, before: float) -> float:
    """The reward after a turn; the last effect of a step that has one decides."""
    permit, route, signal = turn.first(Kind.PERMIT), turn.first(Kind.ROUTE), _signal(turn)
    if route is not None and "poll" in route.body:
        return before
    chosen = turn.first(Kind.SELECT) is not None
    if chosen and permit is not None and permit.body.get("allow") is False:
        return -1
    if turn.rolled_back or signal in ("fail", "timeout"):
        return -1
    if place != "verdict" or signal is None:
        return before
    old, new = turn.before.r7.best, turn.after.r7.best
    if old is not None and new is not None and new.value != old.value:
        return abs(new.value - old.value) / old.value
    task = turn.rules.program.tasks.get(turn.done.task if turn.done is not None else "")
    return 0 if task is not None and task.rule is not None else 1


def _text(value: Any, blobs: Blobs) -> str:
    whole = expand(value, blobs)
    return whole if isinstance(whole, str) else canon.dumps(whole).decode()
