"""A layered drawing of any directed graph: boxes and links in, places and routes out.

Knows nothing of tasks. Connected parts are drawn apart and set side by side in rows, the part of the first
box first. Everything is deterministic: same boxes and links, same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from spak.lang.graph.layers import Box, Link, skeleton
from spak.lang.graph.order import untangle
from spak.lang.graph.place import across, ports
from spak.lang.graph.route import Placed, Point, routed

__all__ = ["Box", "Link", "Placed", "Point", "arrange"]

APART = 36
"""Room between connected parts."""


def arrange(boxes: Sequence[Box], links: Sequence[Link]) -> Placed:
    """Place the boxes and labels and route the links; a link joins two different boxes."""
    parts = _parts(len(boxes), links)
    drawn = [_draw([boxes[box] for box in own], own, [links[n] for n in inner]) for own, inner in parts]
    centres: list[Point] = [(0, 0)] * len(boxes)
    labels: list[Point] = [(0, 0)] * len(links)
    routes: list[tuple[Point, ...]] = [()] * len(links)
    limit = max(drawn[0].width if drawn else 0, 1.4 * sqrt(sum(one.width * one.height for one in drawn)))
    x = y = tall = wide = 0
    for (own, inner), one in zip(parts, drawn, strict=True):
        if x and x + one.width > limit:
            x, y, tall = 0, y + tall + APART, 0
        for box, (cx, cy) in zip(own, one.boxes, strict=True):
            centres[box] = (cx + x, cy + y)
        for link, (cx, cy), route in zip(inner, one.labels, one.routes, strict=True):
            labels[link] = (cx + x, cy + y)
            routes[link] = tuple((px + x, py + y) for px, py in route) if x or y else route
        tall = max(tall, one.height)
        wide = max(wide, x + one.width)
        x += one.width + APART
    return Placed(centres, labels, routes, wide, y + tall)


def _draw(boxes: list[Box], own: list[int], links: list[Link]) -> Placed:
    number = {box: index for index, box in enumerate(own)}
    inner = [Link(number[link.source], number[link.target], link.width, link.height) for link in links]
    made = skeleton(boxes, inner)
    untangle(made)
    found = ports(made)
    return routed(made, found, across(made, found))


def _parts(count: int, links: Sequence[Link]) -> list[tuple[list[int], list[int]]]:
    """The boxes and links of each connected part, in order of their first box."""
    root = list(range(count))

    def find(box: int) -> int:
        while root[box] != box:
            root[box] = root[root[box]]
            box = root[box]
        return box

    for link in links:
        one, other = find(link.source), find(link.target)
        root[max(one, other)] = min(one, other)
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for box in range(count):
        parts.setdefault(find(box), ([], []))[0].append(box)
    for number, link in enumerate(links):
        parts[find(link.source)][1].append(number)
    return list(parts.values())
