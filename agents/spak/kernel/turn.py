"""One call of `step` under way: the state so far, and what was decided on the way.

The small changes that all parts of a turn share: commits, budgets, the end. What is permitted is in
permits.py, what an answer leads to in step.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from spak.kernel import fit, render
from spak.kernel.gate import Judged
from spak.kernel.memory import Memory
from spak.kernel.observed import Facts
from spak.kernel.rules import Rules
from spak.kernel.seal import seal
from spak.kernel.state import Counter, Effect, State, Watchdog, change
from spak.policy import approval
from spak.program import Step, Task
from spak.records import Kind, Record

SAID = (("txn", "commit"),)
"""What a route of semantics 2 leaves out: it is so unless it says otherwise."""


class Stepped(NamedTuple):
    state: State
    commits: tuple[Record, ...]
    effects: tuple[Effect, ...]
    judged: tuple[tuple[int, Judged], ...] = ()
    """For each permit among the commits: its index and what it was derived from."""


class Turn:
    """The state so far, and what was decided on the way."""

    def __init__(self, rules: Rules, state: State, at: int) -> None:
        self.rules = rules
        self.state = state
        self.at = at
        self.commits: list[Record] = []
        self.effects: list[Effect] = []
        self.judged: list[tuple[int, Judged]] = []
        self.undone = 0
        self.seen: Facts = {}
        self.rounds = 0
        self.signed: tuple[str, bool] | None = None
        """Who approved, and whether as an admin."""
        self.rejected: approval.Rejected | None = None

    def done(self) -> Stepped:
        return Stepped(self.state, tuple(self.commits), tuple(self.effects), tuple(self.judged))

    @property
    def task(self) -> Task:
        return self.rules.program.tasks[self.state.r0.task]

    def commit(self, kind: Kind, body: Mapping[str, Any]) -> str:
        """Seal a decision. A route says neither what its act says (the key) nor that all went well (txn)."""
        if kind is Kind.ROUTE and self.rules.gate is not None:
            body = {
                name: value for name, value in body.items() if (name, value) not in SAID and name != "key"
            }
        record, self.state, content = seal(self.state, self.at, kind, body)
        self.commits.append(record)
        return content

    def executive(self, **changes: Any) -> None:
        self.state = change(self.state, r7=change(self.state.r7, **changes))

    def recollect(self, change: Callable[..., Memory], *about: Any) -> None:
        """Change the memory, in a program that has one, by its rules."""
        if self.rules.remembers:
            self.executive(memory=change(self.state.r7.memory, self.rules, *about))

    def bind(self, name: str, value: Any) -> None:
        if name.startswith("metric."):
            value = render.number(value, self.rules)
        self.executive(variables={**self.state.r7.variables, name: value})

    def spend(self, side: Mapping[str, Any]) -> None:
        """Count the recorded milliseconds and tokens of an effect; waiting for people costs nothing."""
        requests, sent = fit.count(side, "requests"), fit.count(side, "request_bytes")
        if self.rules.gate is not None and (requests or sent):
            r7 = self.state.r7
            self.executive(requests=r7.requests + requests, request_bytes=r7.request_bytes + sent)
        elapsed, tokens, cost = (fit.count(side, name) for name in ("ms", "tokens", "cost_nanousd"))
        if tokens or cost:
            task, known = self.state.r0.task, self.state.r7.usage
            calls, before, paid = known.get(task, (0, 0, 0))
            self.executive(usage={**known, task: (calls + 1, before + tokens, paid + cost)})
        if elapsed or tokens:
            dog = self.state.r1
            self.state = change(
                self.state,
                r1=Watchdog(dog.elapsed_ms + elapsed, dog.steps, dog.window),
                r2=self.state.r2 + tokens,
            )

    def place(self, task: str, step: str) -> None:
        if self.state.r7.polls and (task, step) != self.state.r0[:2]:
            self.executive(polls=0)
        self.state = change(self.state, r0=Counter(task, step, self.state.r0.attempt), r6=None)

    def arguments(self, step: Step) -> dict[str, Any]:
        """Raises: render.Unbound, render.BadCommand."""
        return {name: render.render(value, self.rules, self.state) for name, value in step.args.items()}

    def exhausted(self) -> tuple[str, str] | None:
        """The code and the knob of a budget that is used up, if any is."""
        budgets, state = self.rules.program.budgets, self.state
        if budgets.steps and state.r1.steps >= budgets.steps:
            return "budget.steps", f"BUDGET {{ steps: {budgets.steps * 2} }}"
        if budgets.elapsed_ms and state.r1.elapsed_ms >= budgets.elapsed_ms:
            return "budget.elapsed", f"BUDGET {{ elapsed_s: {budgets.elapsed_ms * 2 // 1000} }}"
        if budgets.tokens and state.r2 >= budgets.tokens:
            return "budget.tokens", f"BUDGET {{ tokens: {budgets.tokens * 2} }}"
        return self.unaffordable(0)

    def unaffordable(self, bound: int) -> tuple[str, str] | None:
        """The same of money, with so many nano-dollars more; what is used up to the last is used up."""
        cost = self.rules.program.budgets.cost
        after = self.state.r7.cost + max(bound, 1)
        return ("budget.cost", f"BUDGET {{ cost: {cost * 2} }}") if cost and after > cost * 1000 else None

    def end(
        self, status: str, code: str = "", knob: str = "", cause: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """The last commit of a run, with why, on what evidence, and which knob would let it go on.

        `cause` is what a sentence about it needs (spak.runner.views.causes).
        """
        r7 = self.state.r7
        pending = self.state.r6
        evidence = tuple(dict.fromkeys(mark for mark in (pending.id if pending else "", r7.last) if mark))
        body: dict[str, Any] = {"state": status, "r3": self.state.r3}
        if code:
            body |= {"codes": [code], "evidence": list(evidence)}
        if knob:
            body["knob"] = knob
        if cause and self.rules.decides.causes:
            body["cause"] = dict(cause)
        if r7.best is not None:
            body["best"] = {
                "evaluation": r7.best.evaluation,
                "files": dict(r7.best.files),
                "value": r7.best.value,
            }
        self.commit(Kind.END, body)
        self.executive(codes=(code,) if code else (), evidence=evidence if code else (), knob=knob)
        self.state = change(self.state, status=status, r6=None)

    def fail(self, code: str, cause: Mapping[str, Any], knob: str) -> None:
        """End a run that no knob would help; `knob` is what was offered up to semantics 2."""
        self.end("failed", code, "" if self.rules.decides.causes else knob, cause)

    def refuse(self, code: str, knob: str, cause: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.end("refused", code, knob, cause)

    def here(self) -> tuple[str, str, int]:
        place = self.state.r0
        return place.task, place.step, place.attempt

    def want(self, effect: Effect) -> None:
        self.state = change(self.state, r6=effect)
        self.effects.append(effect)

    def violate(self, task: Task, step: Step, tool: str, errors: list[Mapping[str, Any]]) -> None:
        """What does not fit never reaches the tool; who proposed it gets the reason."""
        raise NotImplementedError
