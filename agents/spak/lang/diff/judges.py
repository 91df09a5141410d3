"""What decides how a task ends, and which questions it asks for that; from a View, without compiling.

A task is decided by `success:`, by its VALIDATOR, or, where it has neither, by the exits of its tool steps.
Conditions, checks and validators read variables: the steps that set these are evidence, and the prompt of a
question among them is part of the judgement. A spec that does not compile is read as far as it parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

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


Place = tuple[str, str]
"""A task and a step of it, or a variable that it reads."""


class Ground(NamedTuple):
    """What judgements go by: what it does, whether it is a question, and which task reads it as which
    variable."""

    does: Any
    asks: bool
    read: frozenset[Place]


def readings(made: View) -> set[Place]:
    """The tasks, with each variable that a judgement of them reads."""
    return {(name, variable) for name, task in made.tasks.items() for variable in _read_by_judges(task)}


def evidence(made: View) -> dict[Place, set[Place]]:
    """The steps that judgements read, with task and variable of each reading. A plan of a task without steps
    has an empty name."""
    setters, found = _setters(made), dict[Place, set[Place]]()
    for name, variable in readings(made):
        for place in _set_by([variable], made.tasks[name], setters):
            found.setdefault(place, set()).add((name, variable))
    return found


def rests_on(made: View, places: Iterable[Place]) -> set[Place]:
    """The steps, and all that they read, and so on."""
    setters, rest = _setters(made), list(places)
    known = set(rest)
    while rest:
        owner, name = rest.pop()
        task = made.tasks[owner]
        more = _set_by(_read_by(task.steps.get(name)), task, setters) - known
        known |= more
        rest += more
    return known


def grounds(made: View, catalog: Catalog | None) -> dict[tuple[str, str, str], Ground]:
    """What judgements go by, by task, kind of thing and name: the steps that they read, programs whose exits
    decide a task, checks, and the inputs that any of these read."""
    predictions = [part.mark for part in made.items["prediction"]]
    readers: dict[str, set[Place]] = {}
    for one in readings(made):
        readers.setdefault(one[1], set()).add(one)
    places: dict[Place, set[Place]] = evidence(made)
    for owner, task in made.tasks.items():
        for name in deciding(task):
            if _runs(task.steps[name], catalog):
                places.setdefault((owner, name), set())
    inputs, found = set(readers), dict[tuple[str, str, str], Ground]()
    for (owner, name), by in sorted(places.items()):
        step = made.tasks[owner].steps.get(name)
        kind = "steps" if step is not None else ""
        found[owner, kind, name or "GOAL"] = _ground(made.tasks[owner], step, by, predictions)
        inputs.update(_read_by(step))
    for owner, task in made.tasks.items():
        for name, check in task.checks.items():
            output = check.parts.get("output_var")
            sets = {name, f"metric.{name}", _word(output.node) if output is not None else name}
            read = set[Place]().union(*(readers.get(variable, ()) for variable in sets))
            found[owner, "checks", name] = _ground(task, check, read, predictions)
    for variable in sorted(inputs):
        part = made.settings.get(variable.replace("input.", "INPUTS/"))
        if part is not None:
            found["", "INPUTS", variable.removeprefix("input.")] = Ground(part.mark, False, frozenset())
    return found


def _ground(task: TaskView, step: StepView | None, read: Iterable[Place], predictions: list[Any]) -> Ground:
    """GOAL and predictions are in each prompt of a task."""
    parts = {key: part.mark for key, part in step.parts.items() if key != "output_var"} if step else {}
    asks = step is None or not step.kind.startswith("tool.")
    goal = task.settings.get("GOAL")
    around = [goal.mark if goal else None, predictions] if asks else []
    return Ground([step.kind if step else "", parts, around], asks, frozenset(read))


def _runs(step: StepView, catalog: Catalog | None) -> bool:
    """Whether the step runs a program that it is given; a tool that nobody knows may."""
    entry = catalog.tool(step.kind.removeprefix("tool.")) if catalog is not None else None
    return entry is None or any(use.startswith("runs") for use in entry.arguments.values())


def _read_by_judges(task: TaskView) -> Iterator[str]:
    """The variables that conditions, VALIDATOR and checks of a task read."""
    validator = [part for path, part in task.settings.items() if path.startswith("VALIDATOR")]
    yield from _names(tuple(part.node for part in (*task.conditions.values(), *validator)))
    for check in task.checks.values():
        yield from _read_by(check)


def _read_by(step: StepView | None) -> Iterator[str]:
    yield from _names(tuple(part.node for part in step.parts.values()) if step is not None else ())


def _setters(made: View) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for owner, task in made.tasks.items():
        for name, step in task.steps.items():
            output = step.parts.get("output_var")
            for variable in (f"exit_code.{name}", _word(output.node) if output is not None else ""):
                found.setdefault(variable, set()).add((owner, name))
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
        step = _STEP_OF.fullmatch(name)
        if step is not None:
            found |= {(task.name, step[1])} if step[1] in task.steps else setters.get(name, set())
        else:
            found |= setters.get(name, set())
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
