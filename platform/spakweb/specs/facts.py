"""What lists and pages say about a version without parsing it again: `facts(text)`.

Takes a text, gives a small dictionary of plain values. A text with mistakes has facts too: what could be
read, and how many mistakes there are. IMPORTs are not followed: a spec on the platform is one text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from spak import config
from spak.lang import Parsed, parse
from spak.lang.catalog import Catalog
from spak.lang.check import examine
from spak.lang.diagnostics import in_order
from spak.lang.graph import graph_of

MOST = 200
"""Names of tasks or tools that are kept."""


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    """What a spec may name on this installation."""
    return config.catalog()


def facts(text: str) -> dict[str, Any]:
    return facts_of(parse(text))


def facts_of(parsed: Parsed) -> dict[str, Any]:
    made = examine(parsed.spec, catalog())
    found = in_order([*parsed.diagnostics, *made.report.found])
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
        "axioms": len(made.axioms),
        "heuristics": len(made.heuristics),
        "budgets": {key: str(value) for key, value in made.budget.items()},
        "errors": sum(item.severity == "error" for item in found),
        "warnings": sum(item.severity == "warning" for item in found),
    }
