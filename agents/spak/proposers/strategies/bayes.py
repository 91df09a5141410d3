"""`bayes`: Bayesian optimisation, a Gaussian process over the choices and expected improvement.

After a few random points, half of `starts`, each draw looks at a pool, the untried neighbours of the best few
points and some points drawn evenly, and takes the one of which most improvement is expected (Jones, Schonlau
and Welch, 1998). The covariance of two points is the mean of two forms:

    whole  falls with every parameter that differs; of numbers the nearer ones count less
    parts  is the mean over the parameters alone: what is known of a choice holds beside all others

Losses stand by their rank, as the normal score of it: some points of a space are ten times slower than the
others, which says nothing about the fast ones. A point that failed is the worst.

With a prior the search begins with the best points of the earlier one, half of `starts` of them, and no
random ones; what is expected of a point before anything near it was seen is what the earlier effects say.

A search of more than RECALLED points is modelled by the best and the latest of them, so that a draw does not
take longer and longer; in a space of many parameters fewer points of the pool are judged (WORK). Plain
arithmetic in a fixed order.

Tried beside it on measured spaces and found no better: other lengths, noise and shares of the two forms,
choices without an order, half the pool, every third draw at the least seen choice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import erf, exp, pi, sqrt
from operator import mul
from statistics import NormalDist

from spak.cancel import check
from spak.proposers.effects import PENALTY, Effects, fit
from spak.proposers.history import Observation
from spak.proposers.space import Space
from spak.proposers.strategies.search import Search

TOP = 3
"""Best points whose neighbours are in the pool."""
EVEN = 60
"""Points of the pool that are drawn evenly."""
LENGTH = 0.5
"""How fast the covariance falls where one parameter differs; twice as fast in the form of parts."""
NEAR = 0.25
"""How far apart two different numbers are at least; the ends of a range are 1 apart."""
NOISE = 0.01
"""Variance of a measurement, where that of the space is 1."""
RECALLED = 120
"""Points that the model is made of at the most."""
POOL = 2_000
"""Points of a pool that are judged at the most; the pool has no order."""
WORK = 6_000_000
"""Terms that are added up for a pool at the most: below a second. It bounds no pool of a measured space."""
_SCORE = NormalDist()


def draw(search: Search) -> int | None:
    """The number of the next point, None where nothing is left."""
    first = max(search.starts // 2, 1)
    known = _by_loss(search.prior)
    if known and len(search.tried) < first:
        return next((item.number for item in known if item.number not in search.tried), search.spread_out())
    best = _by_loss(search.seen)
    if not best or (not known and len(search.seen) < first):
        return search.spread_out()
    recalled = _recalled(search.seen, best)
    model = _Process(search.space, recalled, fit_scores(search) if known else None)

    def improvement(number: int) -> float:
        check(search.cancel)
        return model.improvement(number)

    pool = _pool(search, best[:TOP])
    return max(pool[: judged(search.space, len(recalled))], key=improvement, default=None)


def judged(space: Space, points: int) -> int:
    """How many points of a pool are judged beside a model of so many points."""
    return min(POOL, WORK // (points * (len(space.choices) + points)))


def _pool(search: Search, best: Sequence[Observation]) -> list[int]:
    """Untried points without repeats, in an order that the draw decides, so that ties are broken evenly."""
    tried = search.tried
    near = (number for item in best for number in search.neighbours(item.number))
    even = (search.anywhere() for _ in range(EVEN))
    pool = sorted({number for number in (*near, *even) if number is not None and number not in tried})
    search.rng.shuffle(pool)
    return pool


def _by_loss(items: Sequence[Observation]) -> list[Observation]:
    """Those that did not fail, the best first."""
    return sorted((item for item in items if item.loss is not None), key=lambda item: item.loss or 0.0)


def _recalled(seen: Sequence[Observation], best: Sequence[Observation]) -> Sequence[Observation]:
    """The best and the latest, in the order in which they were seen."""
    if len(seen) <= RECALLED:
        return seen
    kept = {item.number for item in (*best[: RECALLED // 2], *seen[-RECALLED // 2 :])}
    return [item for item in seen if item.number in kept]


def scores(items: Sequence[Observation]) -> list[float]:
    """The normal score of each loss among them; equal ones share their rank."""
    losses = [item.loss for item in items if item.loss is not None]
    worst = max(losses, default=0.0) + PENALTY
    found = [worst if item.loss is None else item.loss for item in items]
    order = sorted(found)
    ranks = ((bisect_left(order, loss) + bisect_right(order, loss)) / 2 for loss in found)
    return [_SCORE.inv_cdf(rank / len(order)) for rank in ranks]


def fit_scores(search: Search) -> Effects:
    """The effects of choices on the scores of the earlier search."""
    scored = zip(search.prior, scores(search.prior), strict=True)
    return fit(search.space, [Observation(item.number, score) for item, score in scored])


class _Process:
    """The Gaussian process that explains what was seen."""

    def __init__(self, space: Space, seen: Sequence[Observation], prior: Effects | None) -> None:
        self._space, self._prior = space, prior
        self._whole = [_line(choices, LENGTH) for choices in space.choices.values()]
        self._parts = [_line(choices, 2 * LENGTH) for choices in space.choices.values()]
        self._points = [_places(space, item.number) for item in seen]
        rest = [score - self._expected(item.number) for item, score in zip(seen, scores(seen), strict=True)]
        self._mean = sum(rest) / len(rest)
        rest = [value - self._mean for value in rest]
        self._least = min(value + self._expected(item.number) for item, value in zip(seen, rest, strict=True))
        self._factor: list[list[float]] = []
        """The lower triangle of the covariance's Cholesky factor, its diagonal inverted."""
        for place, point in enumerate(self._points):
            row = self._solved(self._covariances(point)[:place])
            row.append(1 / sqrt(max(1 + NOISE - sum(map(mul, row, row)), NOISE)))
            self._factor.append(row)
        self._weights = self._solved(rest)
        self._variance = max(sum(map(mul, self._weights, self._weights)) / len(rest), 1e-12)

    def improvement(self, number: int) -> float:
        """By how much the point is expected to be better than the best, in scores."""
        row = self._solved(self._covariances(_places(self._space, number)))
        mean = sum(map(mul, row, self._weights)) + self._expected(number)
        deviation = sqrt(max((1 - sum(map(mul, row, row))) * self._variance, 1e-12))
        gain = float(self._least - mean) / deviation
        density = exp(-gain * gain / 2) / sqrt(2 * pi)
        return deviation * (gain * (1 + erf(gain / sqrt(2))) / 2 + density)

    def _expected(self, number: int) -> float:
        """What the earlier search lets expect."""
        return self._prior.total(self._space.point(number)) if self._prior is not None else 0.0

    def _covariances(self, point: Sequence[int]) -> list[float]:
        """Those of a point with the points seen."""
        found = []
        for seen in self._points:
            product, total = 1.0, 0.0
            for of_whole, of_parts, at, other in zip(self._whole, self._parts, point, seen, strict=True):
                product *= of_whole[at - other]
                total += of_parts[at - other]
            found.append((product + total / len(seen)) / 2)
        return found

    def _solved(self, given: Sequence[float]) -> list[float]:
        """The solution of the factor's triangle for as many values as are given."""
        found: list[float] = []
        for value, row in zip(given, self._factor, strict=False):
            found.append((value - sum(map(mul, row, found))) * row[-1])
        return found


def _places(space: Space, number: int) -> tuple[int, ...]:
    """Which choice of each parameter a point has."""
    point = space.point(number)
    return tuple(space.choices[name].index(value) for name, value in point.items())


def _line(choices: Sequence[object], rate: float) -> list[float]:
    """The covariance of two choices of a parameter, at the difference of their places, also one below 0."""
    last = len(choices) - 1
    ordered = last > 1 and all(type(choice) in (int, float) for choice in choices)
    apart = [0.0, *(NEAR + (1 - NEAR) * places / last if ordered else 1.0 for places in range(1, last + 1))]
    found = [exp(-rate * distance) for distance in apart]
    return [*found, *found[:0:-1]]
