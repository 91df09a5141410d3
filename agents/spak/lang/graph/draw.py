"""A Layout as SVG, by itself or inside a page.

All text is escaped here, in one place; ids are made of task names and stay the same while a task keeps its
name; nothing is taken from outside (no font, no script, no link). Nodes carry `data-task` and `data-line`,
routes `data-from`, `data-to` and `data-triggers`. A page that shows a run changes three things of a node and
no place: `data-state`, the `href` of its `use` and the word beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from spak.lang.graph.colours import STYLE, TRIGGERS
from spak.lang.graph.glyphs import KINDS, STATES, VALIDATOR
from spak.lang.graph.layout import (
    GLYPH,
    LABEL_ROW,
    LEGEND_GAP,
    LEGEND_LEFT,
    LEGEND_WORDS,
    NAME_SIZE,
    PAD,
    ROW,
    SIGNS,
    Badge,
    Layout,
    PlacedNode,
    Route,
    badge_width,
)
from spak.lang.graph.measure import clean, shorten, width
from spak.lang.graph.route import Point

MOST_EDGES = 40
"""Edges that the description names one by one."""
_CUT = 10
"""How much of its corners a plan's box lacks."""
_ORDER = {"removed": 0, "same": 1, "": 1, "moved": 2, "changed": 2, "added": 3}
"""What is drawn first: where lines run together, the one that stays covers the one that goes."""

NARROW = 560
"""A drawing at most so wide is still legible when it is scaled down to a phone."""


def to_svg(layout: Layout, prefix: str = "g", style: bool = True, interactive: bool = False) -> str:
    """The drawing. `prefix` keeps ids of several drawings in one page apart; with `style` off the page brings
    STYLE itself; `interactive` makes nodes buttons that can be focused."""
    graph = layout.graph
    name = clean(graph.name)
    title = f"Difference of task graphs: {name}" if layout.different else f"Task graph of {name or 'no task'}"
    role = 'role="group"' if interactive else 'role="img"'
    narrow = " narrow" if layout.width <= NARROW else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="spak-graph{narrow}" {role} '
        f'viewBox="0 0 {layout.width} {layout.height}" width="{layout.width}" height="{layout.height}" '
        f'aria-labelledby="{prefix}-title {prefix}-desc">\n'
        f'<title id="{prefix}-title">{_text(title)}</title>\n'
        f'<desc id="{prefix}-desc">{_text(describe(layout))}</desc>\n'
    ]
    if style:
        parts.append(f"<style>\n{STYLE}</style>\n")
    if layout.live:
        parts.append("<defs>" + "".join(_symbol(prefix, state.value, path) for state, path in STATES.items()))
        parts.append("</defs>\n")
    parts.append(f'<rect class="bg" width="{layout.width}" height="{layout.height}" rx="8"/>\n')
    missing = {placed.node.name for placed in layout.nodes if placed.node.kind == "missing"}
    routes = sorted(layout.routes, key=lambda route: _ORDER[route.change])
    parts += [_route(route, prefix, route.target in missing) for route in routes]
    parts += [_labels(route) for route in routes]
    parts += [_node(placed, prefix, layout.live, interactive) for placed in layout.nodes]
    if layout.different:
        parts.append(_legend(layout))
    parts.append("</svg>\n")
    return "".join(parts)


def describe(layout: Layout) -> str:
    """The drawing in words, for whoever cannot see it."""
    graph = layout.graph
    there = [node for node in graph.nodes if node.kind != "missing"]
    sentences = [f"{len(there)} task{'' if len(there) == 1 else 's'}"]
    if graph.start is not None:
        sentences[0] += f", starting at {clean(graph.start.name)}"
    ends = [clean(node.name) for node in there if node.terminal]
    sentences += [f"Ends: {_list(ends)}"] if ends else []
    lost = [clean(node.name) for node in graph.nodes if node.kind == "missing"]
    sentences += [f"Missing: {_list(lost)}"] if lost else []
    for change in ("added", "removed", "changed", "moved"):
        names = [clean(node.name) for node in graph.nodes if node.change == change]
        sentences += [f"{change.capitalize()}: {_list(names)}"] if names else []
    states = [f"{clean(placed.node.name)} {placed.state}" for placed in layout.nodes if placed.state]
    sentences += [f"States: {_list(states)}"] if states else []
    for edge in graph.edges[:MOST_EDGES]:
        word = f" ({edge.change})" if edge.change not in ("", "same") else ""
        sentences.append(f"{clean(edge.source)} goes to {clean(edge.target)} on {clean(edge.trigger)}{word}")
    if len(graph.edges) > MOST_EDGES:
        sentences.append(f"And {len(graph.edges) - MOST_EDGES} more edges")
    return ". ".join(sentences) + "."


def node_id(name: str, prefix: str = "g") -> str:
    """The id of a task's node: its name, with what an id or a selector cannot hold spelled as .hex."""
    return f"{prefix}-n-{_word(name)}"


def route_id(source: str, target: str, prefix: str = "g") -> str:
    """The id of a route's element in a drawing."""
    return f"{prefix}-e-{_word(source)}--{_word(target)}"


# ---- nodes ---------------------------------------------------------------------------------------------


def _node(placed: PlacedNode, prefix: str, live: bool, interactive: bool) -> str:
    node = placed.node
    classes = ["node", node.kind, *(["start"] if node.start else []), *(["end"] if node.terminal else [])]
    if node.change:
        classes.append(f"d-{node.change}")
    tooltip = _tooltip(placed)
    buttons = ' role="button" tabindex="0"' if interactive else ""
    state = f' data-state="{placed.state}"' if placed.state else ""
    file = f' data-file="{_attribute(node.file)}"' if node.file else ""
    parts = [
        f'<g class="{" ".join(classes)}" id="{node_id(node.name, prefix)}" '
        f'data-task="{_attribute(node.name)}" data-line="{node.line}"{file}{state}{buttons} '
        f'transform="translate({placed.x} {placed.y})">'
        f"<title>{_text(tooltip)}</title>",
        _outline(placed),
        f'<path class="glyph" transform="translate({PAD} 12)" d="{KINDS[node.kind]}"/>',
        f'<text class="name" x="{PAD + GLYPH}" y="22">{_text(placed.title)}</text>',
    ]
    x = PAD + GLYPH + width(placed.title, NAME_SIZE) + 6
    for badge in placed.badges:
        parts.append(_badge(badge, x))
        x += badge_width(badge) + 6
    y = 22
    for word, text in placed.rows:
        y += ROW
        if word == "validator":
            parts.append(f'<path class="glyph" transform="translate({PAD} {y - 10})" d="{VALIDATOR}"/>')
        parts.append(f'<text class="{word}" x="{PAD + GLYPH}" y="{y}">{_text(text)}</text>')
    if live:
        y += ROW
        symbol = f' href="#{prefix}-s-{placed.state}"' if placed.state else ""
        parts.append(
            f'<g class="state"><use{symbol} x="{PAD}" y="{y - 10}" width="12" height="12"/>'
            f'<text x="{PAD + GLYPH}" y="{y}">{placed.state or ""}</text></g>'
        )
    parts.append("</g>\n")
    return "".join(parts)


def _outline(placed: PlacedNode) -> str:
    """The shape: round corners, cut ones for a plan; a second line inside where the run ends."""
    wide, high = placed.width, placed.height
    if placed.node.kind == "plan":
        shape = f'<path class="box" d="{_cut(0, 0, wide, high, _CUT)}"/>'
        inner = f'<path class="inner" d="{_cut(3, 3, wide - 6, high - 6, _CUT - 2)}"/>'
    else:
        shape = f'<rect class="box" width="{wide}" height="{high}" rx="8"/>'
        inner = f'<rect class="inner" x="3" y="3" width="{wide - 6}" height="{high - 6}" rx="6"/>'
    return shape + (inner if placed.node.terminal else "")


def _cut(x: int, y: int, wide: int, high: int, cut: int) -> str:
    across, down = wide - 2 * cut, high - 2 * cut
    return f"M{x + cut} {y}h{across}l{cut} {cut}v{down}l{-cut} {cut}h{-across}l{-cut} {-cut}v{-down}z"


def _badge(badge: Badge, x: int) -> str:
    wide = badge_width(badge)
    return (
        f'<g class="badge b-{badge.kind}"><rect x="{x}" y="11" width="{wide}" height="14" rx="7"/>'
        f'<text x="{x + wide / 2:g}" y="21" text-anchor="middle">{_text(badge.text)}</text></g>'
    )


def _tooltip(placed: PlacedNode) -> str:
    """All that is known of a task, in lines."""
    node = placed.node
    lines = [clean(node.name)]
    if node.kind == "missing":
        lines.append(f"missing: named on line {node.line}, defined nowhere")
    words = [word for word, on in (("start", node.start), ("end", node.terminal)) if on]
    lines += [", ".join(words)] if words else []
    lines += [shorten(clean(node.goal), 300)] if node.goal else []
    lines += [f"{node.steps} step{'' if node.steps == 1 else 's'}"] if node.steps else []
    lines += [f"tools: {_list([clean(tool) for tool in node.tools])}"] if node.tools else []
    lines += [f"validator: {clean(node.validator)}"] if node.validator else []
    lines += [f"proposer: {clean(node.proposer)}"] if node.proposer else []
    lines += [f"from {clean(node.file)}"] if node.file else []
    lines += [f"state: {placed.state}"] if placed.state else []
    lines += [node.change + (f", was {clean(node.was)}" if node.was else "")] if node.change else []
    return "\n".join(lines)


# ---- routes --------------------------------------------------------------------------------------------


def _route(route: Route, prefix: str, missing: bool) -> str:
    classes = ["edge", *(["loop"] if route.loop else []), *(["back"] if route.up else [])]
    if route.change:
        classes.append(f"d-{route.change}")
    if missing:
        classes.append("to-missing")
    triggers = " ".join(clean(edge.trigger) for edge in route.edges)
    verbs = ", ".join(f"{_sign(edge.change)}{clean(edge.trigger)}" for edge in route.edges)
    tooltip = f"{clean(route.source)} to {clean(route.target)}: {verbs}"
    line, tip = (_loop if route.loop else _line)(route)
    return (
        f'<g class="{" ".join(classes)}" id="{route_id(route.source, route.target, prefix)}" '
        f'data-from="{_attribute(route.source)}" data-to="{_attribute(route.target)}" '
        f'data-triggers="{_attribute(triggers)}" data-line="{route.edges[0].line}">'
        f'<title>{_text(tooltip)}</title><path class="line" d="{line}"/><path class="tip" d="{tip}"/></g>\n'
    )


def _labels(route: Route) -> str:
    """The triggers, on a ground that covers the line."""
    anchor, x = ("start", route.x + 4) if route.loop else ("middle", route.x + route.width // 2)
    ground = (
        ""
        if route.loop
        else f'<rect x="{route.x}" y="{route.y}" width="{route.width}" height="{route.height}" rx="3"/>'
    )
    texts = []
    for index, label in enumerate(route.labels):
        kind = f' class="x-{label.change}"' if label.change else ""
        if not kind and label.trigger in TRIGGERS:
            kind = f' class="t-{label.trigger}"'
        y = route.y + 12 + index * LABEL_ROW
        texts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}"{kind}>{_text(label.text)}</text>')
    hidden = f"<title>{_text(', '.join(clean(edge.trigger) for edge in route.edges))}</title>"
    return f'<g class="label">{hidden}{ground}{"".join(texts)}</g>\n'


def _line(route: Route) -> tuple[str, str]:
    """The path of a line and its tip."""
    points = route.points
    (x, y), before = points[-1], points[-2]
    down = 1 if y > before[1] else -1
    tip = f"M{x} {y}l-4.5 {-9 * down}q4.5 {2.5 * down:g} 9 0z"
    ended = [*points[:-1], (x, y - 6 * down)]
    path = [f"M{points[0][0]} {points[0][1]}"]
    index = 1
    while index < len(ended):
        at, point = ended[index - 1], ended[index]
        follows = ended[index + 1] if index + 1 < len(ended) else None
        if index + 2 < len(ended) and (slope := _slope(route, *ended[index - 1 : index + 3])):
            path.append(_past_label(at, point, ended[index + 1], ended[index + 2], slope))
            index += 2
        elif point[0] == at[0] and (follows is None or follows[1] != point[1]):
            path.append(f"V{point[1]}")
        elif point[0] == at[0] or point[1] == at[1]:
            path.append(_corner(at, point, follows))
        else:
            middle = (at[1] + point[1]) / 2
            path.append(f"C{at[0]} {middle:g} {point[0]} {middle:g} {point[0]} {point[1]}")
        index += 1
    return "".join(path), tip


def _slope(route: Route, before: Point, near: Point, far: Point, after: Point) -> float:
    """How far sideways, for each pixel down, a line may go on behind its label; 0 where it stands upright."""
    label = route.y + route.height // 2
    upright = near[0] == far[0] and min(near[1], far[1]) <= label <= max(near[1], far[1])
    if (
        not upright
        or after[1] == far[1]
        or not (before[0] < near[0] < after[0] or before[0] > near[0] > after[0])
    ):
        return 0.0
    middle = (near[1] + far[1]) / 2
    most = min(
        abs(near[0] - before[0]) / abs(middle - before[1]),
        abs(after[0] - near[0]) / abs(after[1] - middle),
        route.width / (abs(far[1] - near[1]) + 1),
    )
    return most if after[0] > near[0] else -most


def _past_label(before: Point, near: Point, far: Point, after: Point, slope: float) -> str:
    """One bend from end to end, with the label upon it."""
    x, y = near[0], (near[1] + far[1]) / 2
    half, rest = (y - before[1]) / 2, (after[1] - y) / 2
    shift = slope * abs(half), slope * abs(rest)
    return (
        f"C{before[0]} {before[1] + half:g} {x - shift[0]:.1f} {y - half:g} {x} {y:g}"
        f"C{x + shift[1]:.1f} {y + rest:g} {after[0]} {after[1] - rest:g} {after[0]} {after[1]}"
    )


def _corner(at: Point, point: Point, follows: Point | None) -> str:
    """A straight line that bends round where an upright one meets a level one."""
    if follows is None:
        return f"L{point[0]} {point[1]}"
    radius = min(6, (abs(point[0] - at[0]) + abs(point[1] - at[1])) // 2)
    radius = min(radius, (abs(point[0] - follows[0]) + abs(point[1] - follows[1])) // 2)
    enter = (point[0] - radius * _side(point[0] - at[0]), point[1] - radius * _side(point[1] - at[1]))
    leave = (
        point[0] + radius * _side(follows[0] - point[0]),
        point[1] + radius * _side(follows[1] - point[1]),
    )
    return f"L{enter[0]} {enter[1]}Q{point[0]} {point[1]} {leave[0]} {leave[1]}"


def _side(number: int) -> int:
    return (number > 0) - (number < 0)


def _loop(route: Route) -> tuple[str, str]:
    (x, top), (far, _), (_, bottom) = route.points
    path = f"M{x} {top}C{far + 8} {top - 10} {far + 8} {bottom + 10} {x + 6} {bottom + 1}"
    return path, f"M{x} {bottom}l9 -4.5q-2.5 4.5 -1 9z"


# ---- the rest ------------------------------------------------------------------------------------------


def _legend(layout: Layout) -> str:
    y = layout.height - 14
    parts = []
    x = LEGEND_LEFT
    for change, text in LEGEND_WORDS.items():
        parts.append(f'<text class="x-{change}" x="{x}" y="{y}">{text}</text>')
        x += width(text, 11) + LEGEND_GAP
    return f'<g class="legend">{"".join(parts)}</g>\n'


def _symbol(prefix: str, name: str, path: str) -> str:
    return f'<symbol id="{prefix}-s-{name}" viewBox="0 0 12 12"><path d="{path}"/></symbol>'


def _sign(change: str) -> str:
    return f"{SIGNS[change]} " if change and change != "same" else ""


def _list(words: Iterable[str]) -> str:
    words = list(words)
    return ", ".join(words[:MOST_EDGES]) + (
        f" and {len(words) - MOST_EDGES} more" if len(words) > MOST_EDGES else ""
    )


def _word(name: str) -> str:
    if name.isascii() and name.replace("_", "").isalnum():
        return name
    return "".join(
        char if char == "_" or (char.isascii() and char.isalnum()) else f".{ord(char):x}." for char in name
    )


def _text(text: str) -> str:
    return escape(text, quote=False)


def _attribute(text: str) -> str:
    """A value in quotes: what XML cannot hold is replaced, the rest escaped."""
    return escape(clean(text) if not text.isprintable() else text).replace("\n", "&#10;")
