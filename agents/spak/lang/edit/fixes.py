"""The operation that mends a finding of `check`, where there is one.

Takes a Diagnostic and the Parsed that it is about; gives an operation or None. The diagnostic's own `fix` is
the same mend as bare text; an operation can be shown, refused and undone by meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from spak.lang import ast
from spak.lang.diagnostics import Diagnostic
from spak.lang.edit import find, ops
from spak.lang.edit.ops import Op
from spak.lang.parser import Parsed

LOOP_STEPS = 200
"""The budget that is proposed for a loop without one."""

_MEANT = re.compile(r"did you mean '?([\w.-]+)'?")
_LEVEL = re.compile(r"LEVEL ([1-5])")


def operation(found: Diagnostic, parsed: Parsed) -> Op | None:
    """What to apply so that the finding goes away."""
    mend = _MENDS.get(found.code)
    return mend(found, parsed) if mend is not None else None


def _meant(found: Diagnostic) -> str:
    match = _MEANT.search(found.hint)
    return match[1] if match else ""


def _task_at(found: Diagnostic, parsed: Parsed) -> ast.Task | None:
    """The task in which the finding stands."""
    for task in parsed.spec.tasks():
        start, end = parsed.spec.source.offsets(task.start, task.end)
        if start <= found.start < end:
            return task
    return None


def _edge_at(found: Diagnostic, parsed: Parsed) -> tuple[ast.Task, ast.Edge] | None:
    task = _task_at(found, parsed)
    for *_, edge in find.edges(task) if task is not None else ():
        start, end = parsed.spec.source.offsets(edge.start, edge.end)
        if task is not None and start <= found.start < end:
            return task, edge
    return None


def _unknown_task(found: Diagnostic, parsed: Parsed) -> Op | None:
    name, meant, at = parsed.text[found.start : found.end], _meant(found), _edge_at(found, parsed)
    if not meant:
        return ops.CreateMissingTask(name)
    if at is None:
        return ops.SetStart(meant)
    return ops.RetargetEdge(at[0].name, at[1].trigger, meant)


def _no_start(found: Diagnostic, parsed: Parsed) -> Op | None:
    first = next(parsed.spec.tasks(), None)
    return ops.SetStart(first.name) if first is not None else None


def _level(found: Diagnostic, parsed: Parsed) -> Op | None:
    match = _LEVEL.search(found.hint)
    return ops.SetLevel(int(match[1])) if match else None


def _dead_trigger(found: Diagnostic, parsed: Parsed) -> Op | None:
    at, meant = _edge_at(found, parsed), _meant(found)
    if at is None:
        return None
    task, edge = at
    if meant and not any(other.trigger == meant for *_, other in find.edges(task)):
        return ops.RenameTrigger(task.name, edge.trigger, meant)
    return ops.RemoveEdge(task.name, edge.trigger)


def _unbounded_loop(found: Diagnostic, parsed: Parsed) -> Op | None:
    return ops.Set("CONFIG.BUDGET.steps", LOOP_STEPS)


_MENDS: Mapping[str, Callable[[Diagnostic, Parsed], Op | None]] = {
    "lang.unknown_task": _unknown_task,
    "lang.no_start": _no_start,
    "lang.no_level": _level,
    "lang.level_exceeded": _level,
    "lang.dead_trigger": _dead_trigger,
    "lang.unbounded_loop": _unbounded_loop,
}
