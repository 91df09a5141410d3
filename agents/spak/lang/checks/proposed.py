"""Checks of the calls that a proposer makes of its options: PROPOSER tuner names a tool, its arguments and
the argument that a point of SPACE goes into, so that a call which the tool refuses is known before the run.

Takes an Outline; reports into its Report. Values that only the run chooses stand as UNKNOWN before the
tool's schema.
"""

from __future__ import annotations

from typing import Any

from spak.lang import ast, values
from spak.lang.catalog import ToolEntry
from spak.lang.near import did_you_mean
from spak.lang.outline import Choice, Outline, TaskPlan
from spak.lang.schema import UNKNOWN, Violation, violations
from spak.lang.template import holes

OPTIONS = {"tool", "args", "params_key"}
"""A proposer with these options calls that tool."""


def check_calls(made: Outline) -> None:
    """Each task whose plans are calls of a tool that its proposer's options name."""
    for task in made.tasks.values():
        choice = task.proposer
        planned = task.plans or any(step.kind == "plan" for step in task.steps)
        if choice is None or choice.entry is None or not planned:
            continue
        if set(choice.entry.schema.get("properties", {})) >= OPTIONS:
            _check(made, task, choice)


def _check(made: Outline, task: TaskPlan, choice: Choice) -> None:
    at = {entry.key: entry.value for entry in choice.options.entries} if choice.options is not None else {}
    given = values.plain_map(choice.options, made.report, _leaf)
    name, args = given.get("tool"), given.get("args", {})
    if not isinstance(name, str) or not isinstance(args, dict):
        return  # the schema of the options says so
    tool = made.catalog.tool(name)
    if tool is None:
        hint = did_you_mean(name, made.catalog.tools) or f"known: {', '.join(made.catalog.tools)}"
        made.report.error("lang.unknown_tool", f"unknown tool '{name}'", hint, at["tool"])
        return
    if tool.name not in {known.name for known in map(made.catalog.tool, task.tools) if known}:
        message = f"PROPOSER {choice.name} proposes {name}, which TASK {task.name} may not use"
        hint = f"TOOLS [{', '.join([*task.tools, name])}]"
        made.report.error("lang.proposer_tool", message, hint, at["tool"])
    assert choice.entry is not None
    usual = choice.entry.schema["properties"]["params_key"].get("default", "")
    key = given.get("params_key", usual)
    point = {one: UNKNOWN for one in task.space or {} if one != "require"}
    for item in violations(tool.schema, {**args, **({key: point} if key else point)}):
        message = f"each call of {name} would be refused: {item.sentence('argument')}"
        place = at.get("args" if item.path.split("/")[1:2] != [key] else "params_key", choice.at)
        made.report.error("lang.argument", message, _hint(tool, item, key, point), place)


def _leaf(value: ast.Text | ast.Name) -> Any:
    """A word or a text; UNKNOWN for an input, a stand-in for a text with inputs in it."""
    if isinstance(value, ast.Name):
        return UNKNOWN if value.value.startswith("input.") else value.value
    return {"$text": []} if holes(value.value) else value.value


def _hint(tool: ToolEntry, item: Violation, key: str, point: dict[str, Any]) -> str:
    """Where a point can go, when the tool has not the argument that it would go into."""
    known: dict[str, Any] = tool.schema.get("properties", {})
    if key in known or item.code != "schema.unknown_member":
        return item.hint
    maps = [name for name, kind in known.items() if kind.get("type") == "object"]
    ways = [f'params_key: "{name}"' for name in maps]
    if set(point) <= set(known):
        ways.append('params_key: ""')
    return " or ".join(ways) or f"{tool.name} takes {', '.join(known)}"
