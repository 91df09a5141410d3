"""`surrogate`: a cheap model of all that was seen says which point to try next.

After `starts` random points each draw looks at a pool, the untried neighbours of the best few points and some
points drawn evenly, and takes the one with the lowest expected loss. What is expected of a point is the sum
of the effects of its choices (spak.proposers.effects) and, since choices interact, what nearby points were
off by: the errors of the model there, weighted by how few parameters differ. Doubt counts in favour: far from
everything seen there is more of it.

A model that was once unlucky with a choice may never ask for it again. So every third draw asks the best
point's neighbours instead, and takes the one whose new choice was seen least.

Tried beside it on recorded timings and found worse: the best point's neighbours alone as pool, steps of two
parameters, even draws instead of the least seen choice, more hope, more random points at the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

from spak.cancel import check
from spak.proposers.effects import Effects, fit
from spak.proposers.expression import Scalar
from spak.proposers.history import Observation
from spak.proposers.space import Space
from spak.proposers.strategies.search import Search

TOP = 3
"""Best points whose neighbours stand in the pool."""
EVEN = 60
"""Points of the pool that are drawn evenly."""
REACH = 1.0
"""How fast the weight of an error falls with each parameter that differs."""
HOPE = 0.5
"""How much doubt counts in favour of a point."""
CHECK = 3
"""Every so many draws the least seen choice is tried at the best point."""


def draw(search: Search) -> int | None:
    """The number of the next point, None where nothing is left: the lowest expected loss."""
    best = sorted((item for item in search.seen if item.loss is not None), key=lambda item: item.loss or 0.0)
    if len(search.seen) < search.starts or not best:
        return search.spread_out()
    if len(search.tried) % CHECK == CHECK - 1:
        number = least_seen(search, best[0].number)
        if number is not None:
            return number
    pool = pool_of(search, best[:TOP])
    model = model_of(search.space, search.seen)

    def expected(number: int) -> float:
        check(search.cancel)
        return model.expected(search.space, number)

    return min(pool, key=expected, default=None)


@dataclass(frozen=True, slots=True)
class Model:
    """The effects of choices and what they miss near the points that were seen."""

    effects: Effects
    errors: Sequence[tuple[tuple[Scalar, ...], float]]
    """The points seen and by how much the effects alone miss them."""

    def expected(self, space: Space, number: int) -> float:
        """The loss to expect of a point, less the hope for what is unknown about it."""
        point = space.point(number)
        values = tuple(point.values())
        near = weighted = 0.0
        for seen, error in self.errors:
            weight = exp(-REACH * sum(a != b for a, b in zip(values, seen, strict=True)))
            near += weight
            weighted += weight * error
        doubt = self.effects.spread / sqrt(1.0 + 3.0 * near)
        return self.effects.total(point) + weighted / (near + 0.1) - HOPE * doubt


def model_of(space: Space, seen: Sequence[Observation], prior: Effects | None = None) -> Model:
    """The model of what was seen, its effects drawn towards those of `prior`."""
    effects = fit(space, seen, prior)
    bad = effects.worst
    errors = []
    for item in seen:
        point = space.point(item.number)
        loss = bad if item.loss is None else item.loss
        errors.append((tuple(point.values()), loss - effects.total(point)))
    return Model(effects, errors)


def least_seen(search: Search, best: int) -> int | None:
    """The untried neighbour of a point whose new choice was seen least; None where there is none."""
    counts = search.counts()
    here = set(search.space.point(best).items())
    tried = search.tried
    near = [number for number in search.neighbours(best) if number not in tried]
    search.rng.shuffle(near)
    return min(
        near,
        key=lambda number: min(
            counts[choice] for choice in search.space.point(number).items() if choice not in here
        ),
        default=None,
    )


def pool_of(search: Search, best: Sequence[Observation]) -> list[int]:
    """Untried points without repeats, in an order that the draw decides, so that ties are broken evenly."""
    tried = search.tried
    near = (number for item in best for number in search.neighbours(item.number))
    even = (search.anywhere() for _ in range(EVEN))
    pool = sorted({number for number in (*near, *even) if number is not None and number not in tried})
    search.rng.shuffle(pool)
    return pool
