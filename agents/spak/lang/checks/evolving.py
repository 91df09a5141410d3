"""Checks of PROPOSER evolve: its tool, what it begins with, and the marked blocks of that.

Takes an Outline, and for the blocks a reader of the files that a run would begin with; reports into the
outline's Report. It opens nothing itself: a file that the reader does not have may be made by the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spak.errors import UserError
from spak.lang import ast
from spak.lang.imports import Unreadable
from spak.lang.outline import Choice, Outline, TaskPlan
from spak.lang.template import holes
from spak.patch import blocks

EVOLVE, TOOL = "evolve", "write_file"


def check_evolving(made: Outline) -> None:
    """Each task with PROPOSER evolve needs write_file, and a measured source to begin with."""
    for task in _evolving(made):
        assert task.proposer is not None
        at = task.proposer.at
        if TOOL not in task.tools:
            known = ", ".join([*task.tools, TOOL])
            message = f"PROPOSER {EVOLVE} proposes {TOOL}, which TASK {task.name} may not use"
            made.report.error("lang.evolve_tool", message, f"TOOLS [{known}]", at)
        if not _measured(made):
            hint = 'a task before it with VALIDATOR Metric { source: "FILE" role: "baseline" ... }'
            message = f"nothing measures a source that PROPOSER {EVOLVE} of TASK {task.name} could begin with"
            made.report.error("lang.evolve_start", message, hint, at)


def check_blocks(made: Outline, read: Callable[[str], bytes | None]) -> None:
    """The marked blocks of the sources that are measured as baselines, where the reader has them."""
    if not list(_evolving(made)):
        return
    for at in _measured(made):
        if holes(at.value):
            continue
        try:
            data = read(at.value)
            if data is not None:
                blocks.read(data.decode("utf-8"))
        except UnicodeDecodeError:
            made.report.error("blocks.text", f"{at.value} is not UTF-8", "name a source file", at)
        except Unreadable as error:
            made.report.error("blocks.text", f"{at.value} {error}", "name a source file", at)
        except UserError as error:
            made.report.error(error.code, f"{at.value}: {error.message}", error.hint, at)


def _evolving(made: Outline) -> Iterator[TaskPlan]:
    for task in made.tasks.values():
        plans = task.plans or any(step.kind == "plan" for step in task.steps)
        if task.proposer is not None and task.proposer.name == EVOLVE and plans:
            yield task


def _measured(made: Outline) -> list[ast.Text]:
    """The `source` options of baselines: of validators with that role, else of tasks that evolve nothing."""
    evolving = {task.name for task in _evolving(made)}
    choices = [(task, task.validator) for task in made.tasks.values() if task.validator is not None]
    found = [choice for _, choice in choices if _option(choice, "role") == "baseline"]
    found = found or [choice for task, choice in choices if task.name not in evolving]
    values = (_value(choice, "source") for choice in found)
    return [value for value in values if isinstance(value, ast.Text)]


def _option(choice: Choice, name: str) -> str:
    value = _value(choice, name)
    return value.value if isinstance(value, (ast.Text, ast.Name)) else ""


def _value(choice: Choice, name: str) -> ast.Value | None:
    entries = choice.options.entries if choice.options is not None else ()
    return next((entry.value for entry in entries if entry.key == name), None)
