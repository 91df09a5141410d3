"""The second stage: changes that no evidence can pass. Only a person with that right decides them.

The list says what is *free*; everything else is privileged, so that a change nobody thought of needs a
person. Free are: heuristics, predictions, goals and prompts; MEMORY; how a PROPOSER searches, not its tool,
its arguments or its file; patience, upwards where evaluations limit the search; budgets and retries
downwards; tools taken away; reading steps taken out; edges taken out; and an edge for a trigger that a task
gives only when it is done. Validators, conditions, axioms, policy, suites, splits, tools gained, command
lines, edges that lead around a judge, sandbox, network, level and mode are not.
"""

from __future__ import annotations

import re

from spak.lang import parse
from spak.lang.catalog import Catalog
from spak.lang.diff import Capability, Change, Difference, compare
from spak.outer.gate.stage import Stage

DONE = frozenset({"success", "metric_improved", "plateau"})
FREE = re.compile(
    r"SYSTEM_MODEL/(heuristic|prediction)/\d+|CONFIG/MEMORY|tasks/[^/]+/GOAL|"
    r"tasks/[^/]+/PROPOSER/(strategy|starts|batch|patience|islands|population|migrate|crossover|failures)|"
    r"tasks/[^/]+/RULE/patience|tasks/[^/]+/steps/[^/]+/prompt_template"
)
DOWNWARDS = re.compile(
    r"CONFIG/BUDGET/[^/]+|tasks/[^/]+/(RETRIES|BUDGET/[^/]+|RULE/evaluations|PROPOSER/(tokens|block))"
)
TOOLS = re.compile(r"tasks/[^/]+/TOOLS")
STEP = re.compile(r"tasks/([^/]+)/steps/([^/]+)")
EDGE = re.compile(r"tasks/[^/]+/NEXT/([^/]+)")


def privileged(
    base: str, text: str, catalog: Catalog, grammar_patch: str = "", found: Difference | None = None
) -> Stage:
    """The verdict, with every privileged change by its path; `found` is the texts' difference, where it is
    known already."""
    found = found or compare(parse(base), parse(text), catalog)
    marked = [
        {"op": change.op, "path": change.path, "before": change.before, "after": change.after}
        for change in found.changes
        if not _free(change, found, base, catalog)
    ]
    marked += [
        {"op": item.change, "path": item.path, "capability": item.kind, "name": item.name}
        for item in found.capabilities
        if item.widens is not False and item.kind != "tool" and not _bounded(item, base, text, catalog)
    ]
    marked += [
        {"op": item.change, "path": item.path, "capability": "tool", "name": item.name}
        for item in found.capabilities
        if item.kind == "tool" and item.widens is not False
    ]
    if grammar_patch:
        marked.append({"op": "change", "path": "grammar", "before": None, "after": None})
    if marked:
        named = dict.fromkeys(str(item["path"]) for item in marked if item["path"])
        paths = ", ".join(named or [str(item["name"]) for item in marked])
        return Stage("privileges", "privileged", f"a person has to decide: {paths}", {"changes": marked})
    return Stage("privileges", "pass")


def _free(change: Change, found: Difference, base: str, catalog: Catalog) -> bool:
    path = change.path
    if FREE.fullmatch(path):
        return True
    if DOWNWARDS.fullmatch(path):
        return _lower(change)
    if TOOLS.fullmatch(path):
        return change.op == "change" and _fewer(change)
    edge = EDGE.fullmatch(path)
    if edge is not None:
        return change.op == "remove" or (change.op == "add" and edge[1] in DONE)
    step = STEP.fullmatch(path)
    return step is not None and change.op == "remove" and _reads(base, step[1], step[2], catalog)


def _bounded(item: Capability, base: str, text: str, catalog: Catalog) -> bool:
    """Whether it is the patience of a search whose evaluations did not go up: patience stops such a search
    early, and evaluations are what it may spend."""
    if (item.kind, item.name) != ("budget", "patience") or not item.path.startswith("tasks/"):
        return False
    from spak.program import compile as compile_program

    task = item.path.removeprefix("tasks/")
    found = [compile_program(parse(one), catalog, {}).tasks.get(task) for one in (base, text)]
    limits = [one.rule.evaluations if one is not None and one.rule is not None else 0 for one in found]
    return 0 < limits[1] <= limits[0]


def _lower(change: Change) -> bool:
    """A number that went down and stays a limit: 0 is none."""
    before, after = change.before, change.after
    numbers = type(before) in (int, float) and type(after) in (int, float)
    return change.op == "change" and numbers and 0 < after < before


def _fewer(change: Change) -> bool:
    before, after = change.before, change.after
    if not isinstance(before, (list, tuple)) or not isinstance(after, (list, tuple)):
        return False
    return bool(after) and all(item in before for item in after)


def _reads(base: str, task: str, step: str, catalog: Catalog) -> bool:
    """Whether a step of the base does nothing but read."""
    from spak.program import compile as compile_program

    program = compile_program(parse(base), catalog, {})
    known = program.tasks.get(task)
    item = next((item for item in known.steps if item.id == step), None) if known is not None else None
    entry = catalog.tool(item.name) if item is not None and item.kind == "tool" else None
    return entry is not None and not entry.writes
