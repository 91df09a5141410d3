"""The second stage: changes that no evidence can pass. Only a person with that right decides them.

Privileged is what loosens the spec by the table of `spak.lang.diff`, which reviews read too, or may do so.
Besides, every change that is not on the list of *free* ones below is privileged, so that a change nobody
thought of needs a person. Free, where the table has nothing against them, are: heuristics,
predictions, goals and prompts; MEMORY; how a PROPOSER searches, not its tool, its arguments or its file;
patience; budgets and retries downwards; tools taken away; reading steps and edges taken out; an edge for a
trigger that a task gives only when it is done; and a SYSTEM_MODEL that comes or goes with its items.
"""

from __future__ import annotations

import re

from spak.evolve.gate.stage import Stage
from spak.lang import parse
from spak.lang.catalog import Catalog
from spak.lang.diff import Change, Difference, compare
from spak.lang.diff.judges import writes
from spak.lang.diff.view import view

DONE = frozenset({"success", "metric_improved", "plateau"})
FREE = re.compile(
    r"SYSTEM_MODEL(/(heuristic|prediction)/\d+)?|CONFIG/MEMORY|tasks/[^/]+/GOAL|"
    r"tasks/[^/]+/PROPOSER/(strategy|starts|batch|patience|islands|population|migrate|crossover|failures)|"
    r"tasks/[^/]+/RULE/patience|tasks/[^/]+/steps/[^/]+/prompt_template"
)
DOWNWARDS = re.compile(
    r"CONFIG/BUDGET/[^/]+|tasks/[^/]+/(RETRIES|BUDGET/[^/]+|RULE/evaluations|PROPOSER/(tokens|block))"
)
TOOLS = re.compile(r"tasks/[^/]+/TOOLS")
STEP = re.compile(r"tasks/([^/]+)/steps/([^/]+)")
EDGE = re.compile(r"tasks/[^/]+/NEXT/([^/]+)")


def privileged(base: str, text: str, catalog: Catalog, found: Difference | None = None) -> Stage:
    """The verdict, with every privileged change by its path; `found` is the texts' difference, where it is
    known already."""
    found = found or compare(parse(base), parse(text), catalog)
    marked = [
        {"op": change.op, "path": change.path, "before": change.before, "after": change.after}
        for change in found.changes
        if not _free(change, found, base, catalog)
    ]
    marked += [
        {"op": item.change, "path": item.path, "capability": item.kind, "name": item.name, "why": item.why}
        for item in found.capabilities
        if item.widens is not False
    ]
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
    known = view(parse(base).spec).tasks.get(task)
    item = known.steps.get(step) if known is not None else None
    return item is not None and item.kind.startswith("tool.") and not writes(item, catalog)
