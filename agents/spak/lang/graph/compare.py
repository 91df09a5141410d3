"""The difference of two specs as one graph, in which every node and edge says what became of it.

Tasks are the same task when they have the same name, or when `renames` says so. A task is changed when
anything in it but its edges is, or when START moved to or from it; edges speak for themselves. One that is
the same at another place in the order of tasks is moved. What was removed is drawn where its edges put it,
with the line numbers of the old text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spak.lang.ast import Next, Spec, without_spans
from spak.lang.diff.match import moved
from spak.lang.graph.model import Change, Edge, Graph, Node, graph_of


def graph_difference(old: Spec, new: Spec, renames: Mapping[str, str] | None = None) -> Graph:
    """One graph of both; `renames` gives the new name of each renamed task by its old one."""
    before, after = graph_of(old), graph_of(new)
    names = {node.name for node in after.nodes}
    renamed = {one: other for one, other in (renames or {}).items() if other in names and one not in names}
    earlier = {renamed.get(node.name, node.name): node for node in before.nodes}
    old_bodies = {renamed.get(name, name): body for name, body in _bodies(old).items()}
    new_bodies = _bodies(new)
    nodes = [
        _node(node, earlier.get(node.name), old_bodies.get(node.name), new_bodies.get(node.name))
        for node in after.nodes
    ]
    moves = _moves(list(earlier), [node.name for node in after.nodes])
    nodes = [
        replace(node, change="moved") if node.change == "same" and node.name in moves else node
        for node in nodes
    ]
    nodes += [
        replace(node, start=False, change="removed") for name, node in earlier.items() if name not in names
    ]
    return Graph(after.name or before.name, tuple(nodes), tuple(_edges(before, after, renamed)))


def _moves(before: list[str], after: list[str]) -> set[str]:
    """The tasks of both whose place among those of both is another."""
    kept = set(before) & set(after)
    one, two = ([name for name in names if name in kept] for names in (before, after))
    return moved(one, two) if one != two else set()


def _bodies(spec: Spec) -> dict[str, Any]:
    """What each task holds, without its name and its edges."""
    found: dict[str, Any] = {}
    for task in spec.tasks():
        if task.name and task.name not in found:
            found[task.name] = without_spans(tuple(item for item in task.items if not isinstance(item, Next)))
    return found


def _node(node: Node, old: Node | None, old_body: Any, new_body: Any) -> Node:
    if old is None or (old.kind == "missing") > (node.kind == "missing"):
        return replace(node, change="added")
    if (node.kind == "missing") > (old.kind == "missing"):
        return replace(node, change="removed")
    was = old.name if old.name != node.name else ""
    changed: Change = "same" if old_body == new_body and old.start == node.start and not was else "changed"
    return replace(node, change=changed, was=was)


def _edges(before: Graph, after: Graph, renamed: Mapping[str, str]) -> list[Edge]:
    """Those of the new graph, then those that only the old one had."""
    moved = [
        replace(
            edge,
            source=renamed.get(edge.source, edge.source),
            target=renamed.get(edge.target, edge.target),
        )
        for edge in before.edges
    ]
    old_keys = {(edge.source, edge.trigger, edge.target) for edge in moved}
    new_keys = {(edge.source, edge.trigger, edge.target) for edge in after.edges}
    kept = [
        replace(edge, change="same" if (edge.source, edge.trigger, edge.target) in old_keys else "added")
        for edge in after.edges
    ]
    gone = [
        replace(edge, change="removed")
        for edge in moved
        if (edge.source, edge.trigger, edge.target) not in new_keys
    ]
    return kept + gone
