"""From a Graph to a Layout: how large each node is, what stands in it, and where everything lies.

Edges between the same two tasks become one route with a list of labels; edges from a task to itself become a
loop at its right side. The numbers are whole pixels, the box that holds all of it starts at (0, 0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spak.lang.graph.arrange import Box, Link, Placed, Point, arrange
from spak.lang.graph.measure import clean, shorten, width
from spak.lang.graph.model import Change, Edge, Graph, Node, State

NAME_SIZE, TEXT_SIZE, BADGE_SIZE = 13, 11, 9
MOST_NAME, MOST_LABELS, MOST_LABEL = 30, 8, 24
MARGIN = 18
PAD, GLYPH, ROW, LABEL_ROW = 12, 20, 17, 15
LOOP = 30
"""How far a loop reaches to the right of its node."""
LEGEND, LEGEND_LEFT, LEGEND_GAP = 26, 18, 10


@dataclass(frozen=True, slots=True)
class Badge:
    """A word in a node's corner."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node with its rectangle and what is written in it."""

    node: Node
    x: int
    y: int
    width: int
    height: int
    title: str
    """The name, shortened where it is long."""
    badges: tuple[Badge, ...]
    rows: tuple[tuple[str, str], ...]
    """A word for what it is (detail, validator, was) and the text."""
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """The trigger at a route, and how it changed."""

    text: str
    trigger: str
    change: Change


@dataclass(frozen=True, slots=True)
class Route:
    """All edges from one task to another: points from border to border, labels and their rectangle."""

    source: str
    target: str
    edges: tuple[Edge, ...]
    points: tuple[Point, ...]
    labels: tuple[Label, ...]
    x: int
    y: int
    width: int
    height: int

    @property
    def loop(self) -> bool:
        """Whether it leads back to its own node."""
        return self.source == self.target

    @property
    def up(self) -> bool:
        """Whether it leads against the flow."""
        return not self.loop and self.points[-1][1] < self.points[0][1]

    @property
    def change(self) -> Change:
        """The change that all its edges have in common, else `changed`."""
        changes = {edge.change for edge in self.edges}
        return changes.pop() if len(changes) == 1 else "changed"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is drawn, in pixels from the upper left corner."""

    graph: Graph
    nodes: tuple[PlacedNode, ...]
    routes: tuple[Route, ...]
    width: int
    height: int
    live: bool
    """Whether room was left for states."""
    different: bool
    """Whether this is a difference, with a legend below."""


def lay_out(graph: Graph, states: Mapping[str, State] | None = None) -> Layout:
    """Place a graph. With `states`, an empty one too, each node has a row for its state: places do not depend
    on what the states are."""
    bundles: dict[tuple[str, str], list[Edge]] = {}
    for edge in graph.edges:
        bundles.setdefault((edge.source, edge.target), []).append(edge)
    labels = {pair: _labels(edges) for pair, edges in bundles.items()}
    order = sorted(graph.nodes, key=lambda node: not node.start)
    number = {node.name: index for index, node in enumerate(order)}
    drafts = [_draft(node, states) for node in order]
    boxes = []
    for draft in drafts:
        own = labels.get((draft.node.name, draft.node.name))
        wide, tall = _label_size(own) if own else (0, 0)
        boxes.append(Box(draft.width, draft.height, wide + LOOP if own else 0, tall))
    pairs = [pair for pair in bundles if pair[0] != pair[1]]
    _widen(drafts, boxes, pairs, number)
    links = [Link(number[pair[0]], number[pair[1]], *_label_size(labels[pair])) for pair in pairs]
    placed = arrange(boxes, links)
    nodes = {
        draft.node.name: _at(draft, box.width, centre)
        for draft, box, centre in zip(drafts, boxes, placed.boxes, strict=True)
    }
    found = {pair: index for index, pair in enumerate(pairs)}
    routes = tuple(
        _loop(nodes[pair[0]], tuple(edges), labels[pair])
        if pair[0] == pair[1]
        else _route(found[pair], tuple(edges), labels[pair], placed)
        for pair, edges in bundles.items()
    )
    different = any(node.change for node in graph.nodes)
    wide, high = placed.width + 2 * MARGIN, placed.height + 2 * MARGIN
    if different:
        words = sum(width(text, 11) + LEGEND_GAP for text in LEGEND_WORDS.values())
        wide, high = max(wide, 2 * LEGEND_LEFT - LEGEND_GAP + words), high + LEGEND
    in_order = tuple(nodes[node.name] for node in graph.nodes)
    return Layout(graph, in_order, routes, wide, high, states is not None, different)


# ---- nodes ---------------------------------------------------------------------------------------------


def _draft(node: Node, states: Mapping[str, State] | None) -> PlacedNode:
    """A node with its size, not yet in its place."""
    title = shorten(clean(node.name), MOST_NAME)
    badges = tuple(_badges(node))
    rows = tuple(_rows(node))
    first = GLYPH + width(title, NAME_SIZE) + sum(badge_width(badge) + 6 for badge in badges)
    others = max((GLYPH + width(text, TEXT_SIZE) for _, text in rows), default=0)
    wide = max(first, others, 96) + 2 * PAD
    lines = len(rows) + (states is not None)
    state = states.get(node.name) if states is not None else None
    return PlacedNode(node, 0, 0, wide + wide % 2, 26 + 8 + ROW * lines, title, badges, rows, state)


def badge_width(badge: Badge) -> int:
    """Pixels that a badge takes."""
    return width(badge.text, BADGE_SIZE) + 10


def _badges(node: Node) -> list[Badge]:
    found = []
    if node.start:
        found.append(Badge("START", "start"))
    if node.terminal:
        found.append(Badge("END", "end"))
    if node.change in SIGNS and node.change != "same":
        found.append(Badge(f"{SIGNS[node.change]} {node.change.upper()}", node.change))
    return found


SIGNS: Mapping[str, str] = {"added": "+", "removed": "−", "changed": "~", "moved": "^", "same": "="}
LEGEND_WORDS: Mapping[str, str] = {
    change: f"{sign} {'unchanged' if change == 'same' else change}" for change, sign in SIGNS.items()
}


def _rows(node: Node) -> list[tuple[str, str]]:
    if node.kind == "missing":
        return [("detail", "missing: no such task")]
    parts = [_count(node.steps, "step")] if node.steps else []
    parts += ["plan"] if node.kind == "plan" else []
    parts += [_count(len(node.tools), "tool")] if node.tools else []
    parts += [_count(node.checks, "check")] if node.checks else []
    rows = [("detail", " · ".join(parts) or "no steps")]
    if node.validator:
        rows.append(("validator", shorten(clean(node.validator), MOST_NAME)))
    if node.was:
        rows.append(("was", f"was {shorten(clean(node.was), MOST_NAME - 4)}"))
    return rows


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _widen(
    drafts: list[PlacedNode], boxes: list[Box], pairs: list[tuple[str, str]], number: dict[str, int]
) -> None:
    """Make a node with many edges wider, so that they do not leave it as one line."""
    leaving: dict[str, int] = {}
    for source, _ in pairs:
        leaving[source] = leaving.get(source, 0) + 1
    for name, count in leaving.items():
        index = number[name]
        box = boxes[index]
        wide = min(420, 14 * count + 44)
        if wide > box.width:
            boxes[index] = Box(wide, box.height, box.loop_width, box.tall)


def _at(draft: PlacedNode, wide: int, centre: Point) -> PlacedNode:
    return PlacedNode(
        draft.node,
        centre[0] - wide // 2 + MARGIN,
        centre[1] - draft.height // 2 + MARGIN,
        wide,
        draft.height,
        draft.title,
        draft.badges,
        draft.rows,
        draft.state,
    )


# ---- routes --------------------------------------------------------------------------------------------


def _labels(edges: list[Edge]) -> tuple[Label, ...]:
    """One line for each trigger, and one that counts those beyond MOST_LABELS."""
    shown = edges if len(edges) <= MOST_LABELS else edges[: MOST_LABELS - 1]
    found = []
    for edge in shown:
        sign = f"{SIGNS[edge.change]} " if edge.change not in ("", "same") else ""
        found.append(Label(sign + shorten(clean(edge.trigger), MOST_LABEL), edge.trigger, edge.change))
    if len(shown) < len(edges):
        found.append(Label(f"… {len(edges) - len(shown)} more", "", ""))
    return tuple(found)


def _label_size(labels: tuple[Label, ...]) -> tuple[int, int]:
    wide = max(width(label.text, TEXT_SIZE) for label in labels) + 8
    return wide + wide % 2, LABEL_ROW * len(labels) + 2


def _route(index: int, edges: tuple[Edge, ...], labels: tuple[Label, ...], placed: Placed) -> Route:
    wide, tall = _label_size(labels)
    x, y = placed.labels[index]
    points = tuple((px + MARGIN, py + MARGIN) for px, py in placed.routes[index])
    x, y = x - wide // 2 + MARGIN, y - tall // 2 + MARGIN
    return Route(edges[0].source, edges[0].target, edges, points, labels, x, y, wide, tall)


def _loop(at: PlacedNode, edges: tuple[Edge, ...], labels: tuple[Label, ...]) -> Route:
    wide, tall = _label_size(labels)
    right, middle = at.x + at.width, at.y + at.height // 2
    offset = min(12, at.height // 4)
    points = ((right, middle - offset), (right + LOOP - 6, middle), (right, middle + offset))
    name = at.node.name
    return Route(name, name, edges, points, labels, right + LOOP, middle - tall // 2, wide, tall)
