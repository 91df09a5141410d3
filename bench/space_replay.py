"""A search on a measured space: what a strategy proposes is looked up instead of compiled and timed.

Takes a Cache, a strategy, a seed and a budget; gives the points in the order in which they were tried. The
strategy is asked as the tuner asks it, with the same draws, so that the points are those that a run with this
seed would try.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from spak.proposers.history import Observation
from spak.proposers.strategies import Search, Strategy
from spak.spaces.cache import Cache, Row

STARTS, PATIENCE = 6, 12
"""What the tuner takes where a spec does not say."""


def search(
    cache: Cache,
    strategy: Strategy,
    seed: int,
    budget: int,
    good_ns: float = 0.0,
    prior: Sequence[Observation] = (),
) -> list[Row]:
    """The points tried, at most `budget`; it ends with the first that takes at most `good_ns`."""
    seen: list[Observation] = []
    tried: list[Row] = []
    for turn in range(budget):
        rng = random.Random(f"{seed}/{turn}/0")
        number = strategy(Search(cache.space, tuple(seen), (), STARTS, PATIENCE, rng, None, tuple(prior)))
        if number is None:
            break
        row = cache.rows[number]
        tried.append(row)
        ok = row.outcome == "ok"
        seen.append(Observation(number, math.log(row.median_ns) if ok else None))
        if ok and row.median_ns <= good_ns:
            break
    return tried


def evaluations(tried: Sequence[Row], good_ns: float) -> int | None:
    """How many points it took until one took at most `good_ns`; None where none did."""
    return next(
        (at for at, row in enumerate(tried, 1) if row.outcome == "ok" and row.median_ns <= good_ns), None
    )
