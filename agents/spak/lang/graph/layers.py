"""The first half of a layered drawing: cycles broken, ranks given, long links cut into pieces.

Takes boxes and links by number; gives a Skeleton: items in layers, each joined only to items of the layers
beside its own. Even layers hold the boxes, odd ones the labels of the links, so that a label has a place of
its own like a box. A label stands next to its link's source.

1. Walk the links depth first from the first box; a link back to a box still on the path is turned round, and
   so is every link to the first box, which stands on top.
2. A box is one rank below its lowest predecessor; one with more links down than up moves down to them.
3. A link over several ranks passes each layer as an item without size. Links to one target share these items
   (a trunk): forty tasks that `fail` to one are one line with forty feeders, and the items stay few.
4. When the trunks together are longer than LIMIT allows, or links pass more of them than BENDS allows, the
   longest become lanes: they run beside the drawing and take no items at all. This is what keeps hostile
   graphs linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Box:
    """What is to be placed. `loop_width` is kept free on its right, for a loop and its `tall` label."""

    width: int
    height: int
    loop_width: int = 0
    tall: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """From box to box, never the same one; the size is that of its label."""

    source: int
    target: int
    width: int = 0
    height: int = 0


@dataclass(slots=True)
class Skeleton:
    """Items 0 to n-1 are the boxes, the next ones the labels of the links, the rest pieces of trunks."""

    boxes: Sequence[Box]
    links: Sequence[Link]
    back: list[bool]
    """Whether the link runs upwards."""
    layer: list[int]
    left: list[float]
    """How far an item reaches from its centre, its margin included."""
    right: list[float]
    height: list[int]
    weight: list[float]
    """How much it matters that the item stands straight below its neighbours."""
    up: list[list[int]]
    down: list[list[int]]
    trunks: dict[tuple[int, bool], list[int]]
    """By target and whether it runs upwards: the pieces, the one beside the target first."""
    ahead: dict[int, int]
    """Label or piece of a trunk to the piece that follows on the way to the target."""
    arrives: list[int]
    """The last item of each link before its target."""
    lane: list[bool]
    """Whether the link leaves its label for a lane beside the drawing."""
    layers: list[list[int]] = field(default_factory=list)

    def label(self, link: int) -> int:
        """The number of the box that holds a link's label."""
        return len(self.boxes) + link


BOX_MARGIN, LABEL_MARGIN, TRUNK_MARGIN = 16.0, 7.0, 8.0
LOOSE = 0.05
"""The weight of a label whose link goes far: it follows its box and keeps nobody from standing straight."""
LIMIT, FREE = 2, 400
"""Items that trunks may have: for each box and link, and in any drawing."""
BENDS = 6
"""How often links may pass each of these items, at the worst with a bend each time."""


def skeleton(boxes: Sequence[Box], links: Sequence[Link]) -> Skeleton:
    """The items of a connected drawing; the first box is where it begins."""
    back = turned(len(boxes), links)
    ranks = ranked(len(boxes), links, back)
    size = len(boxes) + len(links)
    made = Skeleton(
        boxes,
        links,
        back,
        layer=[2 * rank for rank in ranks],
        left=[box.width / 2 + BOX_MARGIN for box in boxes],
        right=[box.width / 2 + box.loop_width + BOX_MARGIN for box in boxes],
        height=[box.height for box in boxes],
        weight=[1.0] * size,
        up=[[] for _ in range(size)],
        down=[[] for _ in range(size)],
        trunks={},
        ahead={},
        arrives=list(range(len(boxes), size)),
        lane=[False] * len(links),
    )
    for link, turn in zip(links, back, strict=True):
        made.layer.append(made.layer[link.source] + (-1 if turn else 1))
        made.left.append(link.width / 2 + LABEL_MARGIN)
        made.right.append(link.width / 2 + LABEL_MARGIN)
        made.height.append(link.height)
    _add_trunks(made)
    made.layers = [[] for _ in range(max(made.layer) + 1)]
    _fill(made)
    return made


def turned(count: int, links: Sequence[Link]) -> list[bool]:
    """Which links close a cycle, on a walk that takes boxes and links in order, or lead to the first."""
    out: list[list[int]] = [[] for _ in range(count)]
    for number, link in enumerate(links):
        out[link.source].append(number)
    back = [False] * len(links)
    state = [0] * count  # 0 not seen, 1 on the path, 2 done
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        path = [(root, iter(out[root]))]
        while path:
            box, rest = path[-1]
            for number in rest:
                target = links[number].target
                if state[target] == 1 or target == 0:
                    back[number] = True
                elif state[target] == 0:
                    state[target] = 1
                    path.append((target, iter(out[target])))
                    break
            else:
                state[box] = 2
                path.pop()
    return back


def ranked(count: int, links: Sequence[Link], back: Sequence[bool]) -> list[int]:
    """The rank of each box: from 0, and larger than that of all it is linked from."""
    below: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for link, turn in zip(links, back, strict=True):
        upper, lower = (link.target, link.source) if turn else (link.source, link.target)
        below[upper].append(lower)
        waiting[lower] += 1
    above = list(waiting)
    ranks = [0] * count
    order = [box for box in range(count) if not waiting[box]]
    for box in order:
        for other in below[box]:
            ranks[other] = max(ranks[other], ranks[box] + 1)
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    for box in reversed(order):
        if box and len(below[box]) > above[box]:
            ranks[box] = min(ranks[other] for other in below[box]) - 1
    return ranks


def _add_trunks(made: Skeleton) -> None:
    """Join each link's label to its boxes, through a trunk where ranks lie between."""
    far: dict[tuple[int, bool], int] = {}
    passed: dict[tuple[int, bool], int] = {}
    for number, link in enumerate(made.links):
        key = link.target, made.back[number]
        span = abs(made.layer[link.target] - made.layer[made.label(number)]) - 1
        far[key] = max(far.get(key, 0), span)
        passed[key] = passed.get(key, 0) + span
    room = FREE + LIMIT * (len(made.boxes) + len(made.links))
    bends = BENDS * (FREE + room)
    for key in sorted(far, key=lambda key: (far[key], passed[key], key)):
        room -= far[key]
        bends -= passed[key]
        if far[key] and (room < 0 or bends < 0):
            continue
        made.trunks[key] = _trunk(made, *key, far[key])
    for number, link in enumerate(made.links):
        turn, label = made.back[number], made.label(number)
        _join(made, link.source, label, turn)
        trunk = made.trunks.get((link.target, turn))
        between = abs(made.layer[link.target] - made.layer[label]) - 1
        if trunk is None:
            made.lane[number] = True
            made.weight[label] = LOOSE
        elif between:
            made.ahead[label] = trunk[between - 1]
            made.weight[label] = LOOSE
            made.arrives[number] = trunk[0]
            _join(made, label, trunk[between - 1], turn)
        else:
            _join(made, label, link.target, turn)


def _trunk(made: Skeleton, target: int, turn: bool, size: int) -> list[int]:
    """The pieces of a trunk, the one beside the target first."""
    step = 1 if turn else -1
    pieces: list[int] = []
    for distance in range(1, size + 1):
        piece = len(made.layer)
        made.layer.append(made.layer[target] + step * distance)
        made.left.append(TRUNK_MARGIN)
        made.right.append(TRUNK_MARGIN)
        made.height.append(0)
        made.weight.append(1.0)
        made.up.append([])
        made.down.append([])
        if pieces:
            made.ahead[piece] = pieces[-1]
        _join(made, piece, pieces[-1] if pieces else target, turn)
        pieces.append(piece)
    return pieces


def _join(made: Skeleton, one: int, other: int, turn: bool) -> None:
    upper, lower = (other, one) if turn else (one, other)
    made.down[upper].append(lower)
    made.up[lower].append(upper)


def _fill(made: Skeleton) -> None:
    """The layers, in the order of a walk down from the top: no crossing where the graph is a tree."""
    seen = [False] * len(made.layer)
    for root in sorted(range(len(made.layer)), key=made.layer.__getitem__):
        stack = [root]
        while stack:
            item = stack.pop()
            if not seen[item]:
                seen[item] = True
                made.layers[made.layer[item]].append(item)
                stack.extend(reversed(made.down[item]))
