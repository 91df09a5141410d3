"""Where the items of each layer stand, from left to right, and where links meet the boxes.

Each item wants to stand straight below (or above) its neighbours. In a layer whose order is fixed, the places
that come closest to all wishes, with nothing overlapping, are an isotonic regression: neighbours whose wishes
conflict are pooled into a block that stands at the weighted mean (pool adjacent violators, linear). Sweeps
down and up carry the wishes through the layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from spak.lang.graph.layers import Skeleton

INSET, SPACING = 22, 28
"""How near a corner a link may meet a box, and how far links stand apart where there is room."""
WORK = 7_000
"""Items that all sweeps together may place, about, beyond two sweeps down and up."""
Pulls = list[tuple[int, float]]


@dataclass(slots=True)
class Ports:
    """Where links meet boxes, as offsets from the centre of the box."""

    leave: list[float]
    """Of each link, at its source."""
    enter_top: list[float]
    """Of each box: all links from above arrive at one point."""
    enter_bottom: list[float]


def ports(made: Skeleton) -> Ports:
    """Spread over the sides of each box, in the order of what they lead to."""
    place = [0] * len(made.layer)
    for layer in made.layers:
        for at, item in enumerate(layer):
            place[item] = at
    count = len(made.boxes)
    found = Ports([0.0] * len(made.links), [0.0] * count, [0.0] * count)
    leaving: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    entering: dict[tuple[int, bool], list[float]] = {}
    for number, link in enumerate(made.links):
        turn = made.back[number]
        leaving.setdefault((link.source, turn), []).append((place[made.label(number)], number))
        arriving = entering.setdefault((link.target, not turn), [])
        if not made.lane[number]:
            arriving.append(place[made.arrives[number]])
    for side in dict.fromkeys([*leaving, *entering]):
        box, top = side
        group = leaving.get(side, [])
        if side in entering:
            marks = entering[side]
            far = 1e9 if top else -1.0  # only lanes: right of all when it comes from above, else left
            group.append((sum(marks) / len(marks) if marks else far, -1))
        group.sort()
        room = made.boxes[box].width - 2 * INSET
        step = min(SPACING, room / (len(group) - 1)) if len(group) > 1 else 0.0
        for index, (_, number) in enumerate(group):
            offset = (index - (len(group) - 1) / 2) * step
            if number >= 0:
                found.leave[number] = offset
            else:
                (found.enter_top if top else found.enter_bottom)[box] = offset
    return found


def across(made: Skeleton, found: Ports) -> list[float]:
    """The x of each item's centre."""
    above, below = _wishes(made, found)
    x = [0.0] * len(made.layer)
    steps = [_steps(made, layer) for layer in made.layers]
    for layer, step in zip(made.layers, steps, strict=True):
        at = 0.0
        for item, more in zip(layer, step, strict=True):
            at += more
            x[item] = at
    rounds = min(8, max(2, WORK // len(x)))
    order = range(len(made.layers))
    for _ in range(rounds):
        for number in order:
            _settle(made.layers[number], steps[number], x, above, made.weight)
        for number in reversed(order):
            _settle(made.layers[number], steps[number], x, below, made.weight)
    both = [one + other for one, other in zip(above, below, strict=True)]
    for number in order:
        _settle(made.layers[number], steps[number], x, both, made.weight)
    _straighten(made, x)
    return x


def _steps(made: Skeleton, layer: list[int]) -> list[float]:
    """The least distance of each item from the one before."""
    steps, before = [], 0.0
    for item in layer:
        steps.append(before + made.left[item])
        before = made.right[item]
    return steps


def _wishes(made: Skeleton, found: Ports) -> tuple[list[Pulls], list[Pulls]]:
    """Of each item, beside each neighbour above and below: how far right of it the item wants to stand.

    A label of a link to the next rank keeps the same distance from both boxes, that of the port where it
    leaves; so the boxes of a chain stand exactly below each other, whatever their ports. One that goes to a
    trunk follows its box and pulls nothing, and a trunk pulls its box only where no such label does: else
    they would bend a long chain more and more.
    """
    above: list[Pulls] = [[] for _ in made.layer]
    below: list[Pulls] = [[] for _ in made.layer]

    def pull(item: int, other: int, shift: float) -> None:
        (above if made.layer[other] < made.layer[item] else below)[item].append((other, shift))

    farthest = {pieces[-1] for pieces in made.trunks.values() if pieces}
    for number, link in enumerate(made.links):
        label, leave = made.label(number), found.leave[number]
        pull(label, link.source, leave)
        if made.lane[number]:
            continue
        if label not in made.ahead:
            pull(link.source, label, -leave)
            pull(label, link.target, leave)
            pull(link.target, label, -leave)
        elif made.ahead[label] in farthest:
            pull(made.ahead[label], label, 0.0)
    for (box, turn), pieces in made.trunks.items():
        if pieces:
            enter = (found.enter_bottom if turn else found.enter_top)[box]
            pull(pieces[0], box, enter)
            if not (below if turn else above)[box]:
                pull(box, pieces[0], -enter)
        for near, far in pairwise(pieces):
            pull(near, far, 0.0)
            pull(far, near, 0.0)
    return above, below


def _settle(
    layer: list[int],
    steps: list[float],
    x: list[float],
    near: list[Pulls],
    weight: list[float],
) -> None:
    """Place one layer as near to its wishes as its order allows."""
    sums: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    base = 0.0
    bases = []
    for item, step in zip(layer, steps, strict=True):
        base += step
        bases.append(base)
        neighbours = near[item]
        if len(neighbours) == 1:
            other, shift = neighbours[0]
            heavy = weight[item]
            total = (x[other] + shift - base) * heavy
        elif neighbours:
            heavy = weight[item] * len(neighbours)
            total = (_middle(sorted([x[other] + shift for other, shift in neighbours])) - base) * heavy
        else:
            heavy = 0.05
            total = (x[item] - base) * heavy
        size = 1
        while sums and sums[-1] * heavy > total * weights[-1]:
            total += sums.pop()
            heavy += weights.pop()
            size += sizes.pop()
        sums.append(total)
        weights.append(heavy)
        sizes.append(size)
    at = 0
    for total, heavy, size in zip(sums, weights, sizes, strict=True):
        mean = total / heavy
        for index in range(at, at + size):
            x[layer[index]] = mean + bases[index]
        at += size


def _middle(values: list[float]) -> float:
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _straighten(made: Skeleton, x: list[float]) -> None:
    """Give runs of trunk pieces one x, wherever the room that their neighbours leave has one for all."""
    low, high = _room(made, x)
    for pieces in made.trunks.values():
        run: list[int] = []
        left, right = -1e9, 1e9
        for item in pieces:
            if max(left, low[item]) > min(right, high[item]):
                _align(run, left, right, x)
                run, left, right = [], -1e9, 1e9
            run.append(item)
            left, right = max(left, low[item]), min(right, high[item])
        _align(run, left, right, x)


def _align(run: list[int], left: float, right: float, x: list[float]) -> None:
    if not run:
        return
    at = min(max(_middle(sorted(x[item] for item in run)), left), right)
    for item in run:
        x[item] = at


def _room(made: Skeleton, x: list[float]) -> tuple[list[float], list[float]]:
    """How far left and right a trunk piece may move, half of the room where the neighbour may move too."""
    first = len(made.boxes) + len(made.links)
    low, high = list(x), list(x)
    for layer in made.layers:
        for at, item in enumerate(layer):
            if item < first:
                continue
            low[item] = high[item] = x[item]
            if at:
                other = layer[at - 1]
                free = x[item] - x[other] - made.left[item] - made.right[other]
                low[item] -= max(0.0, free / 2 if other >= first else free)
            else:
                low[item] = -1e9
            if at + 1 < len(layer):
                other = layer[at + 1]
                free = x[other] - x[item] - made.left[other] - made.right[item]
                high[item] += max(0.0, free / 2 if other >= first else free)
            else:
                high[item] = 1e9
    return low, high
