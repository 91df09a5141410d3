"""The order of the items in each layer, with few crossings.

Sweeps down and up sort each layer by where its neighbours stand (their mean, every second time their median);
the best order seen is kept. Small drawings then swap neighbours as long as that helps. The number of sweeps
falls with the size, so that the time stays linear. Nothing is random: equal keys keep their order.
"""

from __future__ import annotations

from bisect import bisect_right, insort

from spak.lang.graph.layers import Skeleton

WORK = 12_000
"""Items that all sweeps together may look at, about."""
SMALL = 500
"""Items up to which neighbours are swapped one by one."""


def untangle(made: Skeleton) -> None:
    """Reorder the layers."""
    items = len(made.layer)
    place = [0] * items
    _number(made.layers, place)
    best = crossings(made, place)
    kept = [list(layer) for layer in made.layers]
    idle = 0
    for turn in range(min(24, max(2, WORK // items))):
        if best == 0 or idle == 4:
            break
        _sweep(made, place, turn % 2 == 0, turn % 4 > 1)
        if items <= SMALL:
            _swap(made, place)
        found = crossings(made, place)
        idle += 1
        if found < best:
            best, idle = found, 0
            kept = [list(layer) for layer in made.layers]
    made.layers = kept


def crossings(made: Skeleton, place: list[int]) -> int:
    """How many pairs of segments cross."""
    total = 0
    for layer in made.layers:
        seen: list[int] = []
        for item in layer:
            below = made.down[item]
            ends = [place[below[0]]] if len(below) == 1 else sorted(place[other] for other in below)
            for end in ends:
                total += len(seen) - bisect_right(seen, end)
            for end in ends:
                if seen and end < seen[-1]:
                    insort(seen, end)
                else:
                    seen.append(end)
    return total


def _sweep(made: Skeleton, place: list[int], downwards: bool, median: bool) -> None:
    near = made.up if downwards else made.down
    keys: dict[int, float] = {}
    for layer in made.layers[1:] if downwards else made.layers[-2::-1]:
        if len(layer) < 2:
            continue
        for item in layer:
            neighbours = near[item]
            if len(neighbours) == 1:
                keys[item] = place[neighbours[0]]
            elif not neighbours:
                keys[item] = place[item]
            elif median:
                keys[item] = _median(sorted(place[other] for other in neighbours))
            else:
                keys[item] = sum([place[other] for other in neighbours]) / len(neighbours)
        layer.sort(key=keys.__getitem__)
        for at, item in enumerate(layer):
            place[item] = at


def _median(values: list[int]) -> float:
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def _swap(made: Skeleton, place: list[int]) -> None:
    """Swap neighbours while a swap takes crossings away; a few rounds."""
    for _ in range(4):
        gained = False
        for layer in made.layers:
            for at in range(len(layer) - 1):
                one, other = layer[at], layer[at + 1]
                gain = 0
                for near in (made.up, made.down):
                    if near[one] and near[other]:
                        gain += _inversions(near[one], near[other], place)
                if gain > 0:
                    layer[at], layer[at + 1] = other, one
                    place[one], place[other] = at + 1, at
                    gained = True
        if not gained:
            return


def _inversions(left: list[int], right: list[int], place: list[int]) -> int:
    """Crossings of two items in this order, less those in the other order."""
    found = 0
    for one in left:
        for other in right:
            if place[one] > place[other]:
                found += 1
            elif place[one] < place[other]:
                found -= 1
    return found


def _number(layers: list[list[int]], place: list[int]) -> None:
    for layer in layers:
        for at, item in enumerate(layer):
            place[item] = at
