"""`climb`: a few random points, then one step at a time from the best of them; restart when stuck.

The state is folded from the history: `starts` points, the best of which is where the climb stands; each later
point moves it when it is better and is a miss when it is not. After `patience` misses in a row, or when all
neighbours are tried, the next points are random again.

Which neighbour comes first is what makes a climb quick: an additive model of all that was measured so far
(spak.proposers.effects) orders them by the change that it expects, with some hope for choices seldom seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from spak.proposers.effects import fit
from spak.proposers.history import Observation
from spak.proposers.strategies.search import Search

HOPE = 0.5
"""How much doubt about a choice counts in its favour."""


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a climb is: the best point since its start, the random points taken, the misses in a row."""

    best: Observation | None = None
    started: int = 0
    misses: int = 0


def draw(search: Search) -> int | None:
    """The number of the next point, None where nothing is left: one step from the best."""
    stand = fold(search)
    if stand.started < search.starts or stand.best is None:
        return search.spread_out()
    return _step(search, stand.best.number)


def fold(search: Search) -> Stand:
    """Where the climb stands after all that was seen."""
    stand = Stand()
    for item in search.seen:
        better = item.loss is not None and (
            stand.best is None or stand.best.loss is None or item.loss < stand.best.loss
        )
        best = item if better else stand.best
        if stand.started < search.starts:
            stand = Stand(best, stand.started + 1)
        else:
            stand = Stand(best, stand.started, 0 if better else stand.misses + 1)
        if stand.misses >= search.patience:
            stand = Stand()
    return stand


def _step(search: Search, here: int) -> int | None:
    tried = search.tried
    open_ = [number for number in search.neighbours(here) if number not in tried]
    if not open_:
        return search.spread_out()
    search.rng.shuffle(open_)
    effects = fit(search.space, search.seen)
    point = search.space.point(here)
    return min(open_, key=lambda number: effects.move(point, search.space.point(number), HOPE))
