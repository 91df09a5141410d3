"""Heights, and the way that each link takes.

Boxes and labels keep to their layers; between two layers is a gap, and only there does a line move sideways.
So a line never runs over a box or a label, however full the drawing is. A link's points are joined like this:

    same x or same y   a straight line; where a level line meets an upright one the corner is rounded
    else               an S with upright ends, inside the gap

Lanes (see layers.py) leave and enter through level tracks in the gaps and stand beside the drawing: links
that run down on the right, links that run up on the left.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from spak.lang.graph.layers import Skeleton
from spak.lang.graph.place import Ports

GAP, MOST_GAP, TRACK, LANE = 20, 64, 5, 9
Point = tuple[int, int]
_Way = tuple[Point, "_Way | None"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Centres of the boxes and labels, points of the links from border to border, all from (0, 0) on."""

    boxes: list[Point]
    labels: list[Point]
    routes: list[tuple[Point, ...]]
    width: int
    height: int


@dataclass(slots=True)
class _Lane:
    """All links that one lane takes to its box; `gap` is the one where it enters."""

    target: int
    back: bool
    links: list[int]
    gap: int
    x: int = 0


def routed(made: Skeleton, found: Ports, across: list[float]) -> Placed:
    """The finished drawing of one connected part."""
    count = len(made.boxes)
    least = min(at - made.left[item] for item, at in enumerate(across))
    x = [round(at - least) for at in across]
    width = max(at + round(made.right[item]) for item, at in enumerate(x))
    lanes = _lanes(made)
    tracks = _tracks(made, lanes)
    tops, bottoms = _heights(made, found, x, tracks)
    right, left = _stand(made, lanes, tops, width)
    level = _levels(tops, bottoms, tracks)
    ways = _ways(made, found, x, tops, bottoms)
    routes = [_route(made, found, number, x, tops, bottoms, ways) for number in range(len(made.links))]
    for lane in lanes:
        for number in lane.links:
            routes[number] = _through(made, found, number, lane, routes[number], level)
    middles = [(top + bottom) // 2 for top, bottom in zip(tops, bottoms, strict=True)]
    centres = [(x[item] + left, middles[made.layer[item]]) for item in range(count + len(made.links))]
    if left:
        routes = [tuple((at + left, y) for at, y in route) for route in routes]
    return Placed(centres[:count], centres[count:], routes, width + left + right, bottoms[-1])


def _lanes(made: Skeleton) -> list[_Lane]:
    found: dict[tuple[int, bool], _Lane] = {}
    for number, link in enumerate(made.links):
        if made.lane[number]:
            back = made.back[number]
            gap = made.layer[link.target] - (0 if back else 1)
            lane = found.setdefault((link.target, back), _Lane(link.target, back, [], gap))
            lane.links.append(number)
    return list(found.values())


def _leave_gap(made: Skeleton, number: int) -> int:
    """The gap (by the layer above it) where a link goes from its label to its lane."""
    return made.layer[made.label(number)] - (1 if made.back[number] else 0)


def _tracks(made: Skeleton, lanes: list[_Lane]) -> list[list[tuple[int, int]]]:
    """The level tracks of each gap: (link, -1) where a link leaves, (-1, target) where a lane enters."""
    tracks: list[list[tuple[int, int]]] = [[] for _ in made.layers]
    for lane in lanes:
        tracks[lane.gap].append((-1, lane.target))
        for number in lane.links:
            tracks[_leave_gap(made, number)].append((number, -1))
    return tracks


def _heights(
    made: Skeleton, found: Ports, x: list[int], tracks: list[list[tuple[int, int]]]
) -> tuple[list[int], list[int]]:
    """Top and bottom of each layer; a gap is as high as its steepest line and its tracks need."""
    widest = [0] * len(made.layers)
    count = len(made.boxes)
    for item, below in enumerate(made.down):
        for other in below:
            distance = abs(x[item] - x[other])
            if distance > widest[made.layer[item]]:
                widest[made.layer[item]] = distance
    tall = [max(box.height, box.tall) for box in made.boxes] + made.height[count:]
    tallest = [max((tall[item] for item in layer), default=0) for layer in made.layers]
    tops, bottoms, y = [], [], 0
    for number, high in enumerate(tallest):
        tops.append(y)
        bottoms.append(y + high)
        gap = GAP if high else GAP // 2
        gap += min(MOST_GAP - GAP, widest[number] // 8)
        room = TRACK * (len(tracks[number]) + 1)
        y += high + max(gap, min(room, 4 * MOST_GAP) + GAP if tracks[number] else 0)
    return tops, bottoms


def _stand(made: Skeleton, lanes: list[_Lane], tops: list[int], width: int) -> tuple[int, int]:
    """Give each lane its x, sharing one where they do not meet; the room taken right and left."""
    taken = {False: 0, True: 0}
    for back in (False, True):
        spans = []
        for index, lane in enumerate(lanes):
            if lane.back == back:
                ends = [lane.gap, *(_leave_gap(made, number) for number in lane.links)]
                spans.append((min(ends), max(ends), index))
        free: list[int] = []
        busy: list[tuple[int, int]] = []
        for first, last, index in sorted(spans):
            while busy and busy[0][0] < first:
                heappush(free, heappop(busy)[1])
            if free:
                column = heappop(free)
            else:
                column = taken[back]
                taken[back] += 1
            heappush(busy, (last, column))
            lanes[index].x = -LANE * (column + 1) if back else width + LANE * (column + 1)
    return tuple(LANE * (taken[back] + 1) if taken[back] else 0 for back in (False, True))  # type: ignore[return-value]


def _levels(
    tops: list[int], bottoms: list[int], tracks: list[list[tuple[int, int]]]
) -> dict[tuple[int, int, int], int]:
    """The y of each track."""
    level = {}
    for gap, uses in enumerate(tracks):
        room = (tops[gap + 1] if gap + 1 < len(tops) else bottoms[gap]) - bottoms[gap]
        for index, (number, target) in enumerate(uses):
            level[gap, number, target] = bottoms[gap] + (index + 1) * room // (len(uses) + 1)
    return level


def _ways(made: Skeleton, found: Ports, x: list[int], tops: list[int], bottoms: list[int]) -> dict[int, _Way]:
    """From each piece of a trunk to the border of its target; each ends with the way of the next piece."""
    ways: dict[int, _Way] = {}
    for (target, turn), pieces in made.trunks.items():
        way = _entry(made, found, target, turn, x, tops, bottoms)
        for piece in pieces:
            layer = made.layer[piece]
            near, far = (bottoms[layer], tops[layer]) if turn else (tops[layer], bottoms[layer])
            if x[piece] != way[0][0]:
                way = ((x[piece], far), way)
            elif way[1] is not None and way[1][0][0] == x[piece]:
                way = way[1]
            way = ways[piece] = ((x[piece], near), way)
    return ways


def _entry(
    made: Skeleton, found: Ports, target: int, turn: bool, x: list[int], tops: list[int], bottoms: list[int]
) -> _Way:
    """From the edge of the target's layer to its border."""
    enter = found.enter_bottom if turn else found.enter_top
    end = x[target] + round(enter[target])
    edge = (bottoms if turn else tops)[made.layer[target]]
    return (end, edge), ((end, _side(made, target, turn, tops, bottoms)), None)


def _route(
    made: Skeleton,
    found: Ports,
    number: int,
    x: list[int],
    tops: list[int],
    bottoms: list[int],
    ways: dict[int, _Way],
) -> tuple[Point, ...]:
    """From the source's border past the label to the target's border."""
    link, turn, label = made.links[number], made.back[number], made.label(number)
    start = x[link.source] + round(found.leave[number])
    layer = made.layer[label]
    near, far = (bottoms[layer], tops[layer]) if turn else (tops[layer], bottoms[layer])
    points = [
        (start, _side(made, link.source, not turn, tops, bottoms)),
        (start, (tops if turn else bottoms)[made.layer[link.source]]),
        (x[label], near),
        (x[label], far),
    ]
    piece = made.ahead.get(label)
    way: _Way | None = (
        _entry(made, found, link.target, turn, x, tops, bottoms) if piece is None else ways[piece]
    )
    while way is not None:
        points.append(way[0])
        way = way[1]
    return _short(points)


def _side(made: Skeleton, box: int, bottom: bool, tops: list[int], bottoms: list[int]) -> int:
    """The y of a box's upper or lower border."""
    layer = made.layer[box]
    top = (tops[layer] + bottoms[layer]) // 2 - made.height[box] // 2
    return top + made.height[box] if bottom else top


def _through(
    made: Skeleton,
    found: Ports,
    number: int,
    lane: _Lane,
    route: tuple[Point, ...],
    level: dict[tuple[int, int, int], int],
) -> tuple[Point, ...]:
    """The route of a link that takes a lane: to its label, level to the lane, along it, level to the box."""
    leave = level[_leave_gap(made, number), number, -1]
    enter = level[lane.gap, -1, lane.target]
    end = route[-1][0]
    up = lane.back
    begin = [point for point in route if (point[1] > leave if up else point[1] < leave)]
    at = begin[-1][0]
    return _short([*begin, (at, leave), (lane.x, leave), (lane.x, enter), (end, enter), route[-1]])


def _short(points: list[Point]) -> tuple[Point, ...]:
    """Without points that lie on a straight line between their neighbours, and without doubles."""
    kept: list[Point] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and kept[-2][0] == kept[-1][0] == point[0]:
            kept[-1] = point
        else:
            kept.append(point)
    return tuple(kept)
