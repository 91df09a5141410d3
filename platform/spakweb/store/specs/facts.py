"""What lists and pages say about a version without parsing it again: `facts_of(whole, law)`.

Takes a text with its IMPORTs put in (team_files.py) and the law that its team is under, gives a small
dictionary of plain values. A text with mistakes has facts too: what could be read, and how many mistakes
there are. `findings` are the mistakes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.conf import settings

from spak import config
from spak.kernel.foresee import foresee
from spak.lang.catalog import Catalog
from spak.lang.check import examine
from spak.lang.checks.policy import check_law
from spak.lang.diagnostics import Diagnostic, in_order
from spak.lang.graph import graph_of
from spak.lang.imports import Resolved
from spak.lang.outline import Outline
from spak.own import own
from spak.policy.law import Law
from spak.runner import SHIPPED, Own

MOST = 200
"""Names of tasks or tools that are kept."""


@lru_cache(maxsize=1)
def ours() -> Own:
    """What the packages of the settings add to what ships; nothing without any."""
    return own(config.Settings(packages=tuple(settings.PACKAGES))) if settings.PACKAGES else SHIPPED


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    """What a spec may name on this installation."""
    return config.catalog(ours())


def findings(whole: Resolved, law: Law) -> tuple[Diagnostic, ...]:
    """What is wrong with a spec, its imports, its POLICY and the axioms that are rules."""
    return _found(whole, examine(whole.parsed.spec, catalog()), law)


def _found(whole: Resolved, made: Outline, law: Law) -> tuple[Diagnostic, ...]:
    judged = (*check_law(whole, law), *foresee(made, whole, law))
    return in_order([*whole.parsed.diagnostics, *made.report.found, *judged])


def facts_of(whole: Resolved, law: Law) -> dict[str, Any]:
    """What lists and pages say of a spec: its tasks, tools, level and problems."""
    parsed = whole.parsed
    made = examine(parsed.spec, catalog())
    found = _found(whole, made, law)
    graph = graph_of(parsed.spec)
    tasks = [node for node in graph.nodes if node.kind != "missing"]
    tools = sorted({tool for node in tasks for tool in node.tools})
    return {
        "name": graph.name,
        "level": int(made.level.value) if made.level is not None else None,
        "start": graph.start.name if graph.start else "",
        "tasks": [node.name for node in tasks][:MOST],
        "task_count": len(tasks),
        "edge_count": len(graph.edges),
        "missing": [node.name for node in graph.nodes if node.kind == "missing"][:MOST],
        "tools": tools[:MOST],
        "validators": sorted({node.validator for node in tasks if node.validator})[:MOST],
        "goals": {node.name: node.goal for node in tasks[:MOST] if node.goal},
        "export": made.export,
        "axioms": len(made.axioms),
        "heuristics": len(made.heuristics),
        "budgets": {key: str(value) for key, value in made.budget.items()},
        "errors": sum(item.severity == "error" for item in found),
        "warnings": sum(item.severity == "warning" for item in found),
    }
