"""Which variables surely have a value where they are read: definite assignment over the graph of tasks.

Takes an Outline, the Scope with every place that reads a variable, and the task of START; reports a variable
without a value on every way there as an error, and on some way as a warning that names the way.

A task is a row of acts: its steps (or its one plan), the checks of its evaluation, `success:`, its VALIDATOR.
Nothing takes a value away, so what surely has one does not depend on going back to a question of the same
task; what may have one does: all that was set before a tool was undone or planned again. What an edge hands
on depends on where the task can be left by it:

    success, metric_improved    after its last act
    plateau                     the same, or at a plan for which nothing was proposed
    fail                        after a tool whose exit is not 0; before a tool that was rolled back, where no
                                question came before that is asked again instead; after the checks; after the
                                VALIDATOR
    timeout                     before the tool that took too long; after the VALIDATOR
    budget_low                  wherever the task can be left by another edge

Before a task is what all edges into it hand on. A VALIDATOR that ends well is taken to have measured: which
metrics it gives, and whether a device is there, is not known before the run.
Source: the dataflow problem "definite assignment", as compilers solve it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from spak.lang.diagnostics import LIMIT
from spak.lang.near import nearest
from spak.lang.outline import Outline, StepPlan, TaskPlan
from spak.lang.scope import MARKS, Scope, Use
from spak.lang.settings import TRIGGERS

ALWAYS = frozenset({"goal", "error", "input", "axiom", "heuristic", "prediction"})
"""First words of what has a value everywhere."""

LAST = "last_tool_output"


class Out(NamedTuple):
    """What an edge hands on: bits of variables that surely have a value now, and of those that may."""

    must: int
    may: int


@dataclass(frozen=True, slots=True)
class Act:
    """What one step binds, and whether a run may leave the task there. `binds` is a bit for each variable."""

    kind: Literal["tool", "ask", "plan", "check", "validate"]
    label: str
    binds: int = 0
    stops: bool = False
    """Whether an exit that is not 0 ends the task with `fail`."""
    retries: bool = False
    """Whether such an exit goes back to a question of the task, where it has no edge for `fail`."""


def check_assigned(made: Outline, scope: Scope, start: str) -> None:
    """Report variables that have no value, or may have none, where they are read."""
    if made.broken or made.report.errors or not start:
        return
    uses = [use for use in scope.uses if use.path.partition(".")[0] not in ALWAYS]
    if uses:
        _Flow(made, scope, uses, start).report()


class _Flow:
    """The variables that are read, as bits, and what every task and edge does to them."""

    def __init__(self, made: Outline, scope: Scope, uses: list[Use], start: str) -> None:
        self.made = made
        self.scope = scope
        self.uses = uses
        self.start = start
        self.bits = {path: 1 << index for index, path in enumerate(dict.fromkeys(map(self.name, uses)))}
        self.all = (1 << len(self.bits)) - 1
        self.acts = {name: list(self.row(task)) for name, task in made.tasks.items()}
        self.outs = {name: self.edges(task) for name, task in made.tasks.items()}
        self.before = self.solve()

    def name(self, use: Use) -> str:
        """The variable that a place reads; all that a measurement gives goes by one name each."""
        head, _, rest = use.path.partition(".")
        if head in MARKS:
            return head
        return "metric" if head == "metric" and rest not in self.scope.metrics else use.path

    def bit(self, *names: str) -> int:
        found = 0
        for name in names:
            found |= self.bits.get(name, 0)
        return found

    # ---- a task

    def row(self, task: TaskPlan) -> Iterator[Act]:
        for step in task.steps:
            yield self.act(step, task)
        if task.plans:
            yield Act("plan", "the plan", self.bit(LAST, task.output), stops=True, retries=True)
        for check in task.checks:
            yield self.act(check, task)
        if task.success:
            yield Act("check", "success:")
        if task.validator is not None:
            yield Act("validate", f"VALIDATOR {task.validator.name}")

    def act(self, step: StepPlan, task: TaskPlan) -> Act:
        name = step.node.name
        outputs = self.bit(step.output_var, f"metric.{name}" if step.evaluation else "")
        if step.kind == "ask":
            return Act("ask", f"step {name}", outputs)
        binds = outputs | self.bit(LAST, f"exit_code.{name}")
        if step.kind == "plan":
            stops = step.on_fail != "continue"
            return Act("plan", f"step {name}", binds, stops, retries=step.on_fail in ("", "retry"))
        given = step.tool.on_fail if step.tool is not None else "stop"
        goes_on = step.on_fail == "continue" or (not step.on_fail and given == "continue" and task.judged)
        retries = (step.on_fail or given) == "retry"
        return Act("tool", f"step {name}", binds, not goes_on and not step.evaluation, retries)

    def edges(self, task: TaskPlan) -> Mapping[str, Out]:
        """What each edge of a task adds; one along which nothing can leave is not among them."""
        exits = list(self.exits(task))
        found = {}
        for trigger, edge in task.edges.items():
            given = [out for name, out in exits if trigger in (name, "budget_low")]
            if given and edge.target in self.made.tasks:
                must, may = self.all, 0
                for out in given:
                    must, may = must & out.must, may | out.may
                found[trigger] = Out(must, may)
        return found

    def exits(self, task: TaskPlan) -> Iterator[tuple[str, Out]]:
        """Each way out of a task: its trigger, and what has a value by then."""
        known, asked = 0, False
        before = self.before_asking_again(task)
        for act in self.acts[task.name]:
            asked = asked or act.kind in ("ask", "plan")
            if act.kind in ("tool", "plan"):
                yield "timeout", Out(known, known | before if asked else known)
                if not asked:
                    yield "fail", Out(known, known)
            if act.kind == "plan":
                yield "plateau", Out(known, known | before)
            if act.kind == "validate":
                break
            known |= act.binds
            if act.stops or act.kind == "check":
                yield "fail", Out(known, known)
        if task.validator is None:
            yield "success", Out(known, known)
        else:
            yield from self.verdicts(task, known)

    def before_asking_again(self, task: TaskPlan) -> int:
        """What may have a value when a question of a task is asked once more."""
        known, found, asked = 0, 0, False
        for act in self.acts[task.name]:
            asked = asked or act.kind in ("ask", "plan")
            if asked and act.kind in ("tool", "plan"):
                found |= known
                if act.retries and "fail" not in task.edges:
                    found |= act.binds
            known |= act.binds
        return found

    def verdicts(self, task: TaskPlan, known: int) -> Iterator[tuple[str, Out]]:
        """The ways out of a task by its VALIDATOR."""
        entry = task.validator_entry
        marks = self.bit(*MARKS) if entry is None or entry.metric else 0
        metric = self.bit("metric")
        yield "timeout", Out(known, known)
        yield "fail", Out(known, known | metric)
        yield "plateau", Out(known, known | metric | marks)
        best = known | metric | (marks & self.bit(*MARKS[:2]))
        yield "success", Out(best, best)
        yield "metric_improved", Out(best, best | marks)
        for trigger in entry.triggers if entry is not None else ():
            if trigger not in TRIGGERS:
                yield trigger, Out(known, known | metric)

    # ---- the graph

    def solve(self) -> dict[str, Out]:
        """What has a value when a task is entered, of those that can be entered."""
        found = {self.start: Out(0, 0)}
        queue = deque([self.start])
        waiting = {self.start}
        while queue:
            name = queue.popleft()
            waiting.discard(name)
            known = found[name]
            for trigger, out in self.outs[name].items():
                target = self.made.tasks[name].edges[trigger].target
                must, may = known.must | out.must, known.may | out.may
                old = found.get(target)
                new = Out(must, may) if old is None else Out(old.must & must, old.may | may)
                if new != old:
                    found[target] = new
                    if target not in waiting:
                        waiting.add(target)
                        queue.append(target)
        return found

    # ---- diagnostics

    def report(self) -> None:
        reported: set[tuple[str, str]] = set()
        for use in self.uses:
            if len(reported) >= LIMIT:
                return
            known = self.before.get(use.task)
            if (
                known is None or (use.task, use.path) in reported
            ):  # a task that is never entered asks for nothing
                continue
            bit = self.bits[self.name(use)]
            own = 0
            for act in self.acts[use.task][: use.position]:
                own |= act.binds
            if (known.must | own) & bit:
                continue
            reported.add((use.task, use.path))
            if (known.may | own) & bit:
                self.report_some(use, bit)
            else:
                self.report_none(use)

    def report_none(self, use: Use) -> None:
        report = self.made.report
        place = report.hole(use.at, use.path)
        near = nearest(use.path, [name for name in self.scope.setters if name != use.path])
        hint = f"did you mean '{near}'?" if near else self.cure(use)
        message = f"'{use.path}' has no value here, whichever way the run comes"
        report.error("lang.never_bound", message, hint, place)

    def report_some(self, use: Use, bit: int) -> None:
        place = self.made.report.hole(use.at, use.path)
        message = f"'{use.path}' may have no value here: {self.way(use.task, bit)}"
        self.made.report.warn("lang.maybe_unbound", message, self.cure(use), place)

    def way(self, task: str, bit: int) -> str:
        """The shortest way to a task on which a variable gets no value."""
        came: dict[str, tuple[str, str]] = {}
        queue = deque([self.start])
        seen = {self.start}
        while queue and task not in seen:
            name = queue.popleft()
            for trigger, out in self.outs[name].items():
                target = self.made.tasks[name].edges[trigger].target
                if not out.must & bit and target not in seen:
                    seen.add(target)
                    came[target] = name, trigger
                    queue.append(target)
        shown, at = task, task
        while at in came:
            at, trigger = came[at]
            shown = f"{at} -{trigger}-> {shown}"
        return f"START -> {shown}"

    def cure(self, use: Use) -> str:
        kind = use.path.partition(".")[0]
        if kind in (*MARKS, "metric") and use.path not in self.scope.setters:
            check = "the check of that name, or after " if kind == "metric" else ""
            return f"read it after {check}a task whose VALIDATOR has measured"
        owner = next(
            (
                f"{act.label} of task {name}"
                for name, row in self.acts.items()
                for act in row
                if act.binds & self.bits[self.name(use)]
            ),
            "",
        )
        if not owner:
            return "no step before it gives one"
        return f"{owner} sets it: lead that way through a step that sets it too, or elsewhere"
