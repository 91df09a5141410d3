"""`anneal`: a walk that takes better steps always and worse ones less and less often.

The state is folded from the history: the best of the first `starts` random points, then every point tried is
accepted or not by a draw that depends on the seed and the point alone. The temperature begins at the spread
of the random points and falls by a fixed factor with each evaluation: it is near zero after some fifty.
"""

from __future__ import annotations

import random
from math import exp
from statistics import pstdev

from spak.proposers.history import Observation
from spak.proposers.strategies.search import Search

COOLING = 0.93


def draw(search: Search) -> int | None:
    """The number of the next point, None where nothing is left: a step of the walk."""
    here = _fold(search)
    if len(search.seen) < search.starts or here is None:
        return search.anywhere()
    tried = search.tried
    open_ = [number for number in search.neighbours(here.number) if number not in tried]
    return search.rng.choice(open_) if open_ else search.anywhere()


def _fold(search: Search) -> Observation | None:
    """The point where the walk stands; None before anything was measured."""
    first = [item for item in search.seen[: search.starts] if item.loss is not None]
    here = min(first, key=lambda item: item.loss or 0.0, default=None)
    heat = pstdev(item.loss or 0.0 for item in first) if first else 0.0
    for item in search.seen[search.starts :]:
        heat *= COOLING
        if item.loss is not None and (here is None or _accepts(search, here, item, heat)):
            here = item
    return here


def _accepts(search: Search, here: Observation, there: Observation, heat: float) -> bool:
    assert here.loss is not None and there.loss is not None
    worse = there.loss - here.loss
    if worse <= 0:
        return True
    chance = exp(-worse / heat) if heat > 0 else 0.0
    return random.Random(f"{search.seed}/accept/{there.number}").random() < chance
