"""Scope: which variables have a value where, over the graph of tasks.

Takes an Outline; answers whether a path such as `fix_patch`, `axiom.1` or `exit_code.s1` may be read at a
step of a task. A variable is known after the step that sets it, in its own task and in every task that can be
reached from it. It fills nothing in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spak.lang.near import nearest
from spak.lang.outline import Outline, StepPlan, TaskPlan
from spak.lang.task_graph import below

PLAIN = ("last_tool_output", "goal", "error")
MARKS = ("best", "baseline", "runner_up")
MARK_PARTS = ("source", "binary", "params", "value", "evaluation")


class Use(NamedTuple):
    """A place that reads a variable: before which of its task's acts (checks/assigned.py), and where."""

    path: str
    task: str
    position: int
    at: Any


def acts(task: TaskPlan) -> list[StepPlan | None]:
    """What a task does, in order: its steps, or None for its one plan; then the checks of its evaluation."""
    return [*task.steps, *([None] if task.plans else []), *task.checks]


class Scope:
    """The variables of a spec: who sets each, and whether it can be read at a place."""

    def __init__(self, made: Outline) -> None:
        self.made = made
        self.setters: dict[str, list[tuple[str, int]]] = {}
        self.metrics: set[str] = set()
        for task in made.tasks.values():
            for index, step in enumerate(acts(task)):
                output = step.output_var if step is not None else task.output
                if output:
                    self.setters.setdefault(output, []).append((task.name, index))
            self.metrics.update(check.node.name for check in task.checks)
        self.read: set[str] = set()
        """Every path that was asked for."""
        self.uses: list[Use] = []
        """Where variables are read that some step sets."""
        self.measured = any(task.validator for task in made.tasks.values())
        self._below: dict[str, int] = {}
        self._place = {name: index for index, name in enumerate(made.tasks)}

    def variables(self) -> list[str]:
        """Every name that can be read."""
        return [*self.setters, *PLAIN, *(f"input.{name}" for name in self.made.inputs)]

    def is_variable(self, word: str) -> bool:
        """True when a bare word as a value means a variable and not itself."""
        if word in self.setters or word == "last_tool_output":
            return True
        head, dot, rest = word.partition(".")
        if not dot:
            return False
        return (
            (head == "input" and rest in self.made.inputs)
            or (head in MARKS and rest in MARK_PARTS)
            or head in ("metric", "exit_code")
            or (head in ("axiom", "heuristic", "prediction") and rest.isdigit())
        )

    def problem(self, path: str, task: TaskPlan, index: int) -> tuple[str, str] | None:
        """Why the variable has no value before step `index` of a task (and a hint); None when it may have."""
        self.read.add(path)
        head, dot, rest = path.partition(".")
        if not dot:
            return self._plain_problem(path, task, index)
        lists: Mapping[str, int] = {
            "axiom": len(self.made.axioms),
            "heuristic": len(self.made.heuristics),
            "prediction": len(self.made.predictions),
        }
        if head in lists:
            if rest.isdigit() and 1 <= int(rest) <= lists[head]:
                return None
            return f"there is no {head} '{rest}'", f"the spec has {lists[head]}, counted from 1"
        if head == "input":
            if rest in self.made.inputs:
                return None
            return self._unknown(path, [f"input.{name}" for name in self.made.inputs], "declare it in INPUTS")
        if head in MARKS:
            known = [f"{head}.{part}" for part in MARK_PARTS]
            return None if path in known else self._unknown(path, known, f"known: {', '.join(known)}")
        if head == "metric":
            if rest in self.metrics or self.measured:
                return None
            return self._unknown(
                path, [f"metric.{name}" for name in self.metrics], "no check or validator gives it"
            )
        if head == "exit_code":
            if rest in task.taken or any(rest in other.taken for other in self.made.tasks.values()):
                return None
            return self._unknown(path, [f"exit_code.{name}" for name in task.taken], "no step has that name")
        return self._unknown(path, self.variables(), "no step sets it")

    def _plain_problem(self, name: str, task: TaskPlan, index: int) -> tuple[str, str] | None:
        if name in PLAIN:
            return None
        setters = self.setters.get(name)
        if setters is None:
            return self._unknown(name, self.variables(), f"no step has output_var: {name}")
        for owner, place in setters:
            if (owner == task.name and place < index) or self.follows(task.name, owner):
                return None
        owner, place = setters[0]
        where = self.setter(owner, place) + (f" of task {owner}" if owner != task.name else "")
        return f"'{name}' has no value here yet", f"it is set by {where}, which does not come before"

    def _unknown(self, path: str, known: list[str], otherwise: str) -> tuple[str, str]:
        near = nearest(path, known)
        return f"unbound variable '{path}'", f"did you mean '{near}'?" if near else otherwise

    def setter(self, owner: str, place: int, quote: str = "") -> str:
        """The step, the plan or the check at a place of a task, in words."""
        step = acts(self.made.tasks[owner])[place]
        if step is None:
            return "the plan"
        return f"{'check' if step.evaluation else 'step'} {quote}{step.node.name}{quote}"

    def follows(self, name: str, owner: str) -> bool:
        """True when a task can be reached from another by one edge or more."""
        if not self._below:
            self._below = below(self.made)
        return bool(self._below[owner] >> self._place[name] & 1)
