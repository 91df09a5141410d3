"""Checks of the LEVEL: what the spec can do against what its LEVEL allows, and what should be there when it
runs without a person.

Takes an Outline; reports errors and warnings with fixes. `least_level` gives the level that a spec without
one gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spak.lang import ast
from spak.lang.checks import outcome
from spak.lang.outline import Outline, TaskPlan
from spak.lang.task_graph import cycles

NO_LOOP = ("fail", "timeout", "budget_low")
"""Triggers whose edges may lead back below LEVEL 5: retries cost, and little is left of the tokens once."""


def least_level(made: Outline) -> int:
    """The least LEVEL that the spec's capabilities need."""
    return max((level for level, *_ in capabilities(made)), default=1)


def capabilities(made: Outline) -> Iterator[tuple[int, str, Any]]:
    """What the spec can do: the level that it takes, in words, and where."""
    mode = made.config.get("MODE")
    config = next((entry for entry in _agent_entries(made) if entry.key.upper() == "CONFIG"), None)
    if mode in ("semi_auto", "full_auto") and config is not None:
        yield (3 if mode == "semi_auto" else 4), f"MODE {mode}", config.start
    for task in made.tasks.values():
        writer = next((tool.name for tool in task.all_tools.values() if tool.writes), "")
        if writer:
            yield 2, f"'{writer}' writes to the workspace", task.node.start + 1
        entry = task.validator_entry
        if entry is not None and entry.metric and task.validator is not None:
            yield 5, f"{entry.name} measures a metric", task.validator.at
    for names in cycles(made, lambda task, trigger: trigger not in NO_LOOP and trigger[0] != "/"):
        yield 5, f"'{names[0]}' loops", made.tasks[names[0]].node.start + 1


def check_level(made: Outline) -> None:
    """Report what needs a higher LEVEL, and an AGENT that names none."""
    agent = made.spec.agent
    if agent is None:
        return
    if made.level is None:
        if not made.broken:
            least = least_level(made)
            at, _ = made.report.offsets(agent.start + 2)
            fix = ((at, at, f"LEVEL {least} "),)
            hint = f"LEVEL {least} is the least that it needs"
            made.report.warn("lang.no_level", "the AGENT has no LEVEL", hint, agent.start + 1, fix)
        return
    start, end = made.report.offsets(made.level)
    if start == end:  # the parser told that it is missing
        return
    level = made.level.value
    if level not in (1, 2, 3, 4, 5) or isinstance(level, float):
        hint = "1 reads, 2 writes, 3 semi_auto, 4 full_auto, 5 metrics and loops"
        made.report.error("lang.level", "LEVEL is a number from 1 to 5", hint, made.level)
        return
    reported: set[str] = set()
    for needed, what, at in capabilities(made):
        if needed > level and what not in reported:
            reported.add(what)
            raised = made.report.replace(made.level, str(needed))
            made.report.error(
                "lang.level_exceeded", f"LEVEL {level} is exceeded: {what}", f"LEVEL {needed}", at, raised
            )
    if level >= 3 and made.config.get("MODE") in ("semi_auto", "full_auto"):
        _check_unwatched(made)
    if level >= 4 and made.config.get("MODE") == "full_auto" and not made.budget and not made.broken:
        hint = "CONFIG { BUDGET { steps: 200 } }; without it the default of 1000 steps and an hour holds"
        made.report.warn("lang.no_budget", "MODE full_auto without a BUDGET", hint, made.level)


def _check_unwatched(made: Outline) -> None:
    for task in made.tasks.values():
        if _judged_next(made, task) or outcome.judges_writes(task):
            continue
        if any(map(outcome.changes_files, task.all_tools.values())):
            hint = "give it a VALIDATOR, success: or a program's exit before it runs without a person"
            message = f"task '{task.name}' writes and nothing judges it"
            made.report.warn("lang.unjudged_write", message, hint, task.node.start + 1)


def _judged_next(made: Outline, task: TaskPlan) -> bool:
    """Whether a move that the law derives after the task leads to one that a VALIDATOR judges."""
    targets = (edge.target for trigger, edge in task.edges.items() if trigger[0] == "/")
    return any(name in made.tasks and made.tasks[name].validator_entry for name in targets)


def _agent_entries(made: Outline) -> Iterator[ast.Entry]:
    agent = made.spec.agent
    for item in (*made.spec.items, *(agent.items if agent else ())):
        if isinstance(item, ast.Entry):
            yield item
