"""What decides how a task ends, and which questions it asks for that; from a View, without compiling.

A task is decided by `success:`, by its VALIDATOR, or, where it has neither, by the exits of its tool steps.
Conditions, checks and validators read variables: the steps that set these are evidence, and the prompt of a
question among them is part of the judgement. A spec that does not compile is read as far as it parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from spak.lang import ast
from spak.lang.catalog import Catalog
from spak.lang.diff.view import StepView, TaskView, View
from spak.lang.template import holes

_STEP_OF = re.compile(r"exit_code\.(.+)")


def judged(task: TaskView) -> bool:
    """Whether a condition or a VALIDATOR decides the task."""
    validator = task.settings.get("VALIDATOR")
    return "success" in task.conditions or (validator is not None and validator.show() is not None)


def deciding(task: TaskView) -> list[str]:
    """The tool steps whose exit can fail the task."""
    return [] if judged(task) else [name for name, step in task.steps.items() if _decides(step)]


def decides(task: TaskView) -> bool:
    """Whether anything judges what the task did."""
    return judged(task) or "invariant" in task.conditions or bool(deciding(task))


def _decides(step: StepView) -> bool:
    part = step.parts.get("on_fail")
    return step.kind.startswith("tool.") and (part is None or _word(part.node) != "continue")


def writes(step: StepView, catalog: Catalog | None) -> bool:
    """Whether the step may do more than read; a tool that nobody knows may."""
    entry = catalog.tool(step.kind.removeprefix("tool.")) if catalog is not None else None
    return step.kind.startswith("tool.") and (entry is None or entry.writes)


def contents(task: TaskView, catalog: Catalog | None) -> dict[str, Any]:
    """What each step does, and after how many steps that write: equal ones do the same."""
    found, written = {}, 0
    for name, step in task.steps.items():
        parts = sorted((key, part.mark) for key, part in step.parts.items() if key != "output_var")
        found[name] = repr((step.kind, parts, written))
        written += writes(step, catalog)
    return found


# ---- what a judgement reads ----------------------------------------------------------------------------


def evidence(made: View) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The steps that judgements read, as (task, step): those that they name, and all that these rest on.
    A plan of a task without steps has an empty name."""
    setters = _setters(made)
    direct: set[tuple[str, str]] = set()
    for task in made.tasks.values():
        read = [name for part in task.conditions.values() for name in _names(part.node)]
        read += [
            name
            for path, part in task.settings.items()
            if path.startswith("VALIDATOR")
            for name in _names(part.node)
        ]
        read += [
            name
            for check in task.checks.values()
            for part in check.parts.values()
            for name in _names(part.node)
        ]
        direct |= _set_by(read, task, setters)
    known, rest = set(direct), list(direct)
    while rest:
        owner, name = rest.pop()
        task = made.tasks[owner]
        step = task.steps.get(name)
        read = [one for part in step.parts.values() for one in _names(part.node)] if step is not None else []
        more = _set_by(read, task, setters) - known
        known |= more
        rest += more
    return direct, known


def questions(made: View) -> Iterator[tuple[str, str, Any]]:
    """Task, step and prompt of each question that a judgement reads: what it asks, GOAL and predictions,
    which are in each of its prompts."""
    around = [part.mark for part in made.items["prediction"]]
    for owner, name in sorted(evidence(made)[0]):
        task = made.tasks[owner]
        step = task.steps.get(name)
        if step is None or not step.kind.startswith("tool."):
            parts = step.parts if step is not None else {}
            own = {key: part.mark for key, part in parts.items() if key != "output_var"}
            goal = task.settings.get("GOAL")
            yield owner, name, [step.kind if step else "", own, goal.mark if goal else None, around]
    for task in made.tasks.values():
        for check in task.checks.values():
            if not check.kind.startswith("tool."):
                yield task.name, check.name, [check.kind, {k: p.mark for k, p in check.parts.items()}, around]


def _setters(made: View) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for owner, task in made.tasks.items():
        for name, step in task.steps.items():
            output = step.parts.get("output_var")
            if output is not None:
                found.setdefault(_word(output.node), set()).add((owner, name))
        output = task.settings.get("OUTPUT")
        if output is not None:
            found.setdefault(_word(output.node), set()).add((owner, ""))
    return found


def _set_by(
    names: Iterable[str], task: TaskView, setters: dict[str, set[tuple[str, str]]]
) -> set[tuple[str, str]]:
    """The steps that set what is read in a task; `last_tool_output` may be of any tool step of it."""
    found: set[tuple[str, str]] = set()
    for name in names:
        found |= setters.get(name, set())
        step = _STEP_OF.fullmatch(name)
        if step is not None and step[1] in task.steps:
            found.add((task.name, step[1]))
        if name == "last_tool_output":
            found |= {(task.name, one) for one, step in task.steps.items() if step.kind.startswith("tool.")}
    return found


def _names(node: Any) -> Iterator[str]:
    """Every variable that a value or a condition may read; `exit_code(s)` as `exit_code.s`."""
    match node:
        case tuple():
            for item in node:
                yield from _names(item)
        case ast.Text():
            yield from (hole.path for hole in holes(node.value))
        case ast.Name():
            yield node.value
        case ast.Call(name="exit_code"):
            yield from (f"exit_code.{_word(item)}" for item in node.args)
        case ast.Call():
            yield from _names(node.args)
        case ast.Logic() | ast.ListValue():
            yield from _names(node.items)
        case ast.Negation():
            yield from _names(node.item)
        case ast.Comparison():
            yield from _names((node.left, node.right))
        case ast.MapValue():
            yield from _names(tuple(entry.value for entry in node.entries))


def _word(node: Any) -> str:
    """The text or word of a value; empty where it is neither."""
    value = getattr(node, "value", "")
    return value if isinstance(value, str) else ""
