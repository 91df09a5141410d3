"""`portfolio`: two models of the space, of which the one that has served better is asked more often.

After `starts` random points each draw looks at the pool of `surrogate` and takes the point with the lowest
expected loss. What is expected of a point is the sum of the effects of its choices, corrected by what nearby
points were off by, and the models differ in what is near:

    flat    each parameter that differs counts the same (spak.proposers.strategies.surrogate)
    shaped  a parameter counts as much as it matters, and of numbers the nearer ones count less

The first copes with few points, the second with many choices of one parameter and with points that fail. A
model has served when its point was among the best fifth of those before. Which model made a point is found
again from the seed and the place in the history, so that nothing but the history is needed. Every third draw
tries the least seen choice at the best point, as `surrogate` does.

With a prior the search begins with the best points of the earlier one, half of `starts` of them, and no
random ones; the effects are drawn towards the earlier ones where a choice was seldom seen. What was seen
outweighs it.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

from spak.cancel import check
from spak.proposers.effects import Effects, fit
from spak.proposers.history import Observation
from spak.proposers.space import Space
from spak.proposers.strategies.search import Search
from spak.proposers.strategies.surrogate import CHECK, HOPE, TOP, least_seen, model_of, pool_of

GOOD = 5
"""A point has served when it is among the best one of so many."""
MEMORY = 0.95
"""How much of what a model was credited with is left after each point."""
LEAST, MOST = 0.3, 3.0
"""Bounds of the weight of a parameter; on average it is 1."""


def draw(search: Search) -> int | None:
    """The number of the next point, None where nothing is left."""
    best = sorted((item for item in search.seen if item.loss is not None), key=lambda item: item.loss or 0.0)
    known = sorted(
        (item for item in search.prior if item.loss is not None), key=lambda item: item.loss or 0.0
    )
    if known and len(search.tried) < max(search.starts // 2, 1):
        return next((item.number for item in known if item.number not in search.tried), search.spread_out())
    if not best or (not known and len(search.seen) < search.starts):
        return search.spread_out()
    if len(search.tried) % CHECK == CHECK - 1:
        number = least_seen(search, best[0].number)
        if number is not None:
            return number
    pool = pool_of(search, best[:TOP])
    prior = fit(search.space, search.prior) if known else None
    if _shaped(search):
        shaped = _Shaped.of(search.space, search.seen, prior)
        return min(pool, key=lambda number: _looking(search, shaped.expected(number)), default=None)
    flat = model_of(search.space, search.seen, prior)
    return min(pool, key=lambda number: _looking(search, flat.expected(search.space, number)), default=None)


def _looking(search: Search, expected: float) -> float:
    check(search.cancel)
    return expected


def _shaped(search: Search) -> bool:
    """Whether the shaped model makes the next point; the flat one otherwise."""
    served, asked = [1.0, 1.0], [2.0, 2.0]
    losses: list[float] = []
    for place, item in enumerate(search.seen):
        if place >= search.starts:
            model = _choice(search.seed, place, served, asked)
            good = item.loss is not None and bisect_left(losses, item.loss) <= len(losses) // GOOD
            asked[model] += 1.0
            served[model] += float(good)
            served = [1.0 + MEMORY * (value - 1.0) for value in served]
            asked = [2.0 + MEMORY * (value - 2.0) for value in asked]
        if item.loss is not None:
            insort(losses, item.loss)
    return _choice(search.seed, len(search.seen), served, asked) == 1


def _choice(seed: int, place: int, served: Sequence[float], asked: Sequence[float]) -> int:
    """0 or 1, each as often as it has served."""
    flat, shaped = (served[model] / asked[model] for model in (0, 1))
    return int(random.Random(f"{seed}/{place}/model").random() * (flat + shaped) >= flat)


@dataclass(frozen=True, slots=True)
class _Shaped:
    """The model whose distances follow what matters. Choices are counted, in the order of the space."""

    space: Space
    effects: Effects
    sums: Sequence[Sequence[float]]
    """By parameter and choice: the effect."""
    apart: Sequence[Sequence[Sequence[float]]]
    """By parameter and two choices: how far they are apart."""
    errors: Sequence[tuple[Sequence[int], float]]
    """The points seen and by how much the effects alone miss them."""

    @classmethod
    def of(cls, space: Space, seen: Sequence[Observation], prior: Effects | None) -> _Shaped:
        effects = fit(space, seen, prior)
        sums, ranges = [], []
        for name, choices in space.choices.items():
            of = effects.effect[name]
            sums.append([of[choice] for choice in choices])
            known = [of[choice] for choice in choices if effects.seen[name][choice]]
            ranges.append(max(known) - min(known) if known else 0.0)
        mean = sum(ranges) / len(ranges) or 1.0
        weights = [min(MOST, max(LEAST, size / mean)) for size in ranges]
        apart = []
        for weight, choices in zip(weights, space.choices.values(), strict=True):
            ordered = len(choices) > 2 and all(type(choice) in (int, float) for choice in choices)
            steps = range(len(choices))
            apart.append([[weight * _apart(a, b, len(choices), ordered) for b in steps] for a in steps])
        errors = []
        for item in seen:
            places = _places(space, item.number)
            loss = effects.worst if item.loss is None else item.loss
            errors.append(
                (places, loss - effects.mean - sum(row[at] for row, at in zip(sums, places, strict=True)))
            )
        return cls(space, effects, sums, apart, errors)

    def expected(self, number: int) -> float:
        """The loss to expect of a point, less the hope for what is unknown about it."""
        places = _places(self.space, number)
        rows = [table[at] for table, at in zip(self.apart, places, strict=True)]
        near = weighted = 0.0
        for seen, error in self.errors:
            weight = exp(-sum(row[at] for row, at in zip(rows, seen, strict=True)))
            near += weight
            weighted += weight * error
        doubt = self.effects.spread / sqrt(1.0 + 3.0 * near)
        total = self.effects.mean + sum(row[at] for row, at in zip(self.sums, places, strict=True))
        return total + weighted / (near + 0.1) - HOPE * doubt


def _places(space: Space, number: int) -> tuple[int, ...]:
    """Which choice of each parameter a point has."""
    point = space.point(number)
    return tuple(space.choices[name].index(value) for name, value in point.items())


def _apart(one: int, other: int, count: int, ordered: bool) -> float:
    """From 0 for the same choice to 1; of numbers at least a half."""
    if one == other:
        return 0.0
    return 0.5 + 0.5 * abs(one - other) / (count - 1) if ordered else 1.0
