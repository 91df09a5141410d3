"""One call of `step` in progress: the state so far and what was decided on the way.

Takes the rules, the state and the time of a proposal; gives Stepped. It has the changes that every decision
makes: a commit, a register, a budget, an effect, the end of the run. What is decided is elsewhere: permit.py
decides what may be asked for, answer.py and measure.py what a proposal means, route.py where the run goes.

These are functions over a Turn, and they do not call each other back: a decision that leads on gives a Move,
and `step` makes it. So no chain of misfits or failed checks deepens the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from spak.costs import cost_of
from spak.kernel import fit, render
from spak.kernel.gate import Judged
from spak.kernel.memory import Memory
from spak.kernel.rules import Rules
from spak.kernel.seal import seal
from spak.kernel.state import Counter, Effect, State, Watchdog, changed
from spak.program import Step, Task
from spak.records import Kind, Record


class Stepped(NamedTuple):
    """What a call of `step` gives."""

    state: State
    commits: tuple[Record, ...]
    effects: tuple[Effect, ...]
    judged: tuple[tuple[int, Judged], ...] = ()
    """For each permit among the commits: its index and what it was derived from."""
    contents: tuple[str, ...] = ()
    """The content hash of each commit."""


class EnterTask(NamedTuple):
    """Go to a task's first step."""

    name: str


class EnterStep(NamedTuple):
    """Go to a step."""

    task: Task
    step: Step


class CallTool(NamedTuple):
    """Ask for the tool that a plan chose."""

    task: Task
    step: Step
    tool: str
    args: Mapping[str, Any]


class Misfit(NamedTuple):
    """What does not fit never reaches the tool; whoever proposed it gets the reason, in `errors[0]`."""

    task: Task
    step: Step
    tool: str
    """The tool that was named, or what such answers are counted under."""
    errors: list[Mapping[str, Any]]
    """R4 values, at least one."""


Move = EnterTask | EnterStep | CallTool | Misfit | None
"""Where a decision leads; None where the run ended or an effect is pending."""


@dataclass(slots=True)
class Turn:
    """The state so far, and what was decided on the way."""

    rules: Rules
    state: State
    at: int
    """Unix milliseconds of the proposal."""
    seq: int
    """The proposal's place in the ledger."""
    commits: list[Record] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    judged: list[tuple[int, Judged]] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    rolled_back: int = 0
    """Rollbacks and misfits of this turn, in whatever tasks."""

    def done(self) -> Stepped:
        """What the turn gives."""
        return Stepped(
            self.state, tuple(self.commits), tuple(self.effects), tuple(self.judged), tuple(self.contents)
        )

    @property
    def task(self) -> Task:
        """The task that the program counter names."""
        return self.rules.program.tasks[self.state.r0.task]

    @property
    def place(self) -> tuple[str, str, int]:
        """Task, step and attempt of the program counter."""
        counter = self.state.r0
        return counter.task, counter.step, counter.attempt

    @property
    def next_record(self) -> int:
        """The place in the ledger that the next commit will have."""
        return self.seq + 1 + len(self.commits)

    def commit(self, kind: str, body: Mapping[str, Any]) -> str:
        """Seal a decision; gives its content hash. A route repeats neither the key of its act nor that its
        transaction was committed: it was, unless the route says otherwise."""
        if kind == Kind.ROUTE:
            body = {name: value for name, value in body.items() if name != "key"}
            if body.get("txn") == "commit":
                del body["txn"]
        record, self.state, content = seal(self.state, self.at, kind, body)
        self.commits.append(record)
        self.contents.append(content)
        return content

    def set(self, **registers: Any) -> None:
        """Change registers of the state."""
        self.state = changed(self.state, registers)

    def executive(self, **changes: Any) -> None:
        """Change fields of R7."""
        self.state = changed(self.state, {"r7": changed(self.state.r7, changes)})

    def recollect(self, update: Callable[..., Memory], *about: Any) -> None:
        """Change the memory, in a program that has one, by its rules."""
        if self.rules.remembers:
            self.executive(memory=update(self.state.r7.memory, self.rules, *about))

    def bind(self, name: str, value: Any) -> None:
        """Give a variable its value; a metric's is read as a number."""
        if name.startswith("metric."):
            value = render.number(value)
        self.executive(variables={**self.state.r7.variables, name: value})

    def spend(self, side: Mapping[str, Any]) -> None:
        """Count the recorded milliseconds and tokens of an effect; waiting for people costs nothing."""
        if not side:
            return
        requests, sent = fit.count(side, "requests"), fit.count(side, "request_bytes")
        if requests or sent:
            r7 = self.state.r7
            self.executive(requests=r7.requests + requests, request_bytes=r7.request_bytes + sent)
        elapsed, cost = fit.count(side, "ms"), cost_of(side)
        if cost.answers:
            task, known = self.state.r0.task, self.state.r7.usage
            calls, before, paid = known.get(task, (0, 0, 0))
            usage = (calls + cost.answers, before + cost.tokens, paid + cost.nanousd)
            self.executive(usage={**known, task: usage})
        if elapsed or cost.tokens:
            dog = self.state.r1
            self.set(
                r1=Watchdog(dog.elapsed_ms + elapsed, dog.steps, dog.window),
                r2=self.state.r2 + cost.tokens,
            )

    def go_to(self, task: str, step: str) -> None:
        """Set the program counter; nothing is pending there yet."""
        if self.state.r7.polls and (task, step) != self.state.r0[:2]:
            self.executive(polls=0)
        self.set(r0=Counter(task, step, self.state.r0.attempt), r6=None)

    def arguments(self, step: Step) -> dict[str, Any]:
        """A step's arguments with their variables filled in. Raises: render.Unbound, render.BadCommand."""
        return {name: render.render(value, self.rules, self.state) for name, value in step.args.items()}

    def request(self, effect: Effect) -> None:
        """Ask the runner for an effect, which is pending from now on."""
        self.set(r6=effect)
        self.effects.append(effect)

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
        if cause:
            body["cause"] = dict(cause)
        if r7.best is not None:
            body["best"] = {
                "evaluation": r7.best.evaluation,
                "files": dict(r7.best.files),
                "value": r7.best.value,
            }
        self.commit(Kind.END, body)
        self.executive(codes=(code,) if code else (), evidence=evidence if code else (), knob=knob)
        self.set(status=status, r6=None)

    def refuse(self, code: str, knob: str, cause: Mapping[str, Any] = MappingProxyType({})) -> None:
        """End a run that may go on when the knob is turned."""
        self.end("refused", code, knob, cause)
