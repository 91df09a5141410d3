"""A graph as text for other programs: JSON with places, mermaid, dot.

Names of tasks and triggers are data in all of them: nodes get ids of their own, names stand in quotes with
what the format would read otherwise escaped.
"""

from __future__ import annotations

from typing import Any

from spak.lang.graph.layout import SIGNS, Layout, PlacedNode, Route
from spak.lang.graph.measure import clean
from spak.lang.graph.model import Edge, Graph, Node

VERSION = 1
"""Of the JSON document: raise it when a key goes or means something else."""


def to_json(layout: Layout) -> dict[str, Any]:
    """Nodes with their rectangles, one edge for each trigger, and the routes that edges share."""
    graph = layout.graph
    start = graph.start
    return {
        "format": VERSION,
        "name": graph.name,
        "start": start.name if start is not None else None,
        "width": layout.width,
        "height": layout.height,
        "nodes": [_node(placed) for placed in layout.nodes],
        "edges": [_edge(edge) for edge in graph.edges],
        "routes": [_route(route) for route in layout.routes],
    }


def _node(placed: PlacedNode) -> dict[str, Any]:
    node = placed.node
    found: dict[str, Any] = {
        "id": node.name,
        "kind": node.kind,
        "start": node.start,
        "terminal": node.terminal,
        "goal": node.goal,
        "steps": node.steps,
        "checks": node.checks,
        "tools": list(node.tools),
        "validator": node.validator or None,
        "proposer": node.proposer or None,
        "line": node.line,
        "x": placed.x,
        "y": placed.y,
        "width": placed.width,
        "height": placed.height,
    }
    if node.file:
        found["file"] = node.file
    if placed.state is not None:
        found["state"] = placed.state.value
    if node.change:
        found["change"] = node.change
    if node.was:
        found["was"] = node.was
    return found


def _edge(edge: Edge) -> dict[str, Any]:
    found: dict[str, Any] = {
        "from": edge.source,
        "to": edge.target,
        "trigger": edge.trigger,
        "line": edge.line,
    }
    return found | ({"change": edge.change} if edge.change else {})


def _route(route: Route) -> dict[str, Any]:
    return {
        "from": route.source,
        "to": route.target,
        "triggers": [edge.trigger for edge in route.edges],
        "points": [list(point) for point in route.points],
        "label": {"x": route.x, "y": route.y, "width": route.width, "height": route.height},
    }


# ---- mermaid -------------------------------------------------------------------------------------------

_SHAPES = {"steps": ("[", "]"), "plan": ("{{", "}}"), "missing": ("[", "]")}
_CLASSES = """\
  classDef start stroke-width:3px
  classDef missing stroke-dasharray:5 4
  classDef added stroke:#116d32,stroke-width:3px
  classDef removed stroke:#b3261e,stroke-dasharray:2 3
  classDef changed stroke:#8a5200,stroke-width:3px
  classDef moved stroke:#6f3cc4,stroke-width:3px
"""


def to_mermaid(graph: Graph) -> str:
    """A flowchart; edges between the same two tasks are one arrow."""
    ids = _ids(graph)
    lines = ["flowchart TD"]
    for node in graph.nodes:
        opening, closing = ("([", "])") if node.terminal else _SHAPES[node.kind]
        lines.append(f'  {ids[node.name]}{opening}"{_mermaid(_caption(node))}"{closing}')
    for (source, target), edges in _bundles(graph).items():
        label = "<br/>".join(_mermaid(_trigger(edge)) for edge in edges)
        gone = all(edge.change == "removed" for edge in edges)
        arrow = ("-.", ".->") if gone else ("--", "-->")
        lines.append(f'  {ids[source]} {arrow[0]} "{label}" {arrow[1]} {ids[target]}')
    for word in ("start", "missing", "added", "removed", "changed", "moved"):
        named = [
            ids[node.name]
            for node in graph.nodes
            if word in (node.kind, node.change) or (word == "start" and node.start)
        ]
        lines += [f"  class {','.join(named)} {word}"] if named else []
    return "\n".join(lines) + "\n" + (_CLASSES if graph.nodes else "")


def _mermaid(text: str) -> str:
    """Text inside quotes: whatever is no plain letter or sign becomes a numbered entity."""
    plain = "_-.,+~ "
    return "".join(
        char if (char.isalnum() or char in plain or ord(char) > 127) else f"#{ord(char)};" for char in text
    )


# ---- dot -----------------------------------------------------------------------------------------------

_COLOURS = {"added": "#116d32", "removed": "#b3261e", "changed": "#8a5200", "moved": "#6f3cc4"}


def to_dot(graph: Graph) -> str:
    """A digraph for Graphviz."""
    lines = [
        f"digraph {_dot(clean(graph.name) or 'tasks')} {{",
        '  node [shape=box, style=rounded, fontname="monospace"]',
        '  edge [fontname="monospace", fontsize=11]',
    ]
    ids = _ids(graph)
    for node in graph.nodes:
        styles = [f"label={_dot(_caption(node))}"]
        styles += ["shape=octagon, style=solid"] if node.kind == "plan" else []
        styles += ["style=dashed"] if node.kind == "missing" else []
        styles += ["peripheries=2"] if node.terminal else []
        styles += ["penwidth=2"] if node.start else []
        styles += [f'color="{_COLOURS[node.change]}"'] if node.change in _COLOURS else []
        lines.append(f"  {ids[node.name]} [{', '.join(styles)}]")
    for (source, target), edges in _bundles(graph).items():
        label = "\n".join(_trigger(edge) for edge in edges)
        changes = {edge.change for edge in edges}
        change = changes.pop() if len(changes) == 1 else "changed"
        colour = f', color="{_COLOURS[change]}"' if change in _COLOURS else ""
        dashed = ", style=dashed" if change == "removed" else ""
        lines.append(f"  {ids[source]} -> {ids[target]} [label={_dot(label)}{colour}{dashed}]")
    return "\n".join([*lines, "}"]) + "\n"


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# ---- both ----------------------------------------------------------------------------------------------


def _ids(graph: Graph) -> dict[str, str]:
    return {node.name: f"n{index}" for index, node in enumerate(graph.nodes)}


def _bundles(graph: Graph) -> dict[tuple[str, str], list[Edge]]:
    found: dict[tuple[str, str], list[Edge]] = {}
    for edge in graph.edges:
        found.setdefault((edge.source, edge.target), []).append(edge)
    return found


def _caption(node: Node) -> str:
    """The name, and in words what a shape or a colour may say too."""
    words = [word for word, on in (("START", node.start), ("END", node.terminal)) if on]
    words += ["missing"] if node.kind == "missing" else []
    words += [f"was {clean(node.was)}"] if node.was else []
    sign = f"{SIGNS[node.change]} " if node.change not in ("", "same") else ""
    return sign + clean(node.name) + (f" ({', '.join(words)})" if words else "")


def _trigger(edge: Edge) -> str:
    sign = f"{SIGNS[edge.change]} " if edge.change not in ("", "same") else ""
    return sign + clean(edge.trigger)
