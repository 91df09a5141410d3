"""An additive model of a search: how much each choice of each parameter adds to the loss.

Takes the observations; gives, for a move from a measured point to another, the expected change of the loss.
The model is main effects only, fitted by a few rounds of averaging what the other parameters leave
unexplained, drawn towards zero where a choice was seldom seen. It ignores interactions; the point that a move
starts from carries them. Plain arithmetic in a fixed order, so that it gives the same answer everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from spak.proposers.expression import Scalar
from spak.proposers.history import Observation
from spak.proposers.space import Point, Space

ROUNDS = 20
SHRINK = 1.0
"""Observations of zero effect that each choice starts with."""
PENALTY = 0.5
"""What a failure adds to the worst loss seen."""


@dataclass(frozen=True, slots=True)
class Effects:
    """How much each value of each parameter moves the loss, as far as was seen."""

    mean: float
    worst: float
    """The loss that a failure counts as."""
    effect: Mapping[str, Mapping[Scalar, float]]
    seen: Mapping[str, Mapping[Scalar, int]]
    spread: float
    """Of the losses around the model: the unit in which doubt is counted."""

    def total(self, point: Point) -> float:
        """The loss of a point as the effects alone have it."""
        return self.mean + sum(self.effect[name][value] for name, value in point.items())

    def move(self, here: Point, there: Point, hope: float) -> float:
        """The change of the loss that the move should bring, less `hope` times the doubt about it."""
        change = 0.0
        for name, value in there.items():
            if value != here[name]:
                change += self.effect[name][value] - self.effect[name][here[name]]
                change -= hope * self.spread / sqrt(SHRINK + self.seen[name][value])
        return change


def fit(space: Space, seen: Sequence[Observation], prior: Effects | None = None) -> Effects:
    """The effects that explain the observations best; where a choice was seldom seen they are drawn towards
    those of `prior`, without one towards zero."""
    losses = [item.loss for item in seen if item.loss is not None]
    bad = max(losses) + PENALTY if losses else 0.0
    points = [space.point(item.number) for item in seen]
    rest = [bad if item.loss is None else item.loss for item in seen]
    mean = sum(rest) / len(rest) if rest else 0.0
    rest = [loss - mean for loss in rest]
    start = {name: dict.fromkeys(choices, 0.0) for name, choices in space.choices.items()}
    if prior is not None:
        start = {name: dict(values) for name, values in prior.effect.items()}
        rest = [
            loss - sum(start[name][value] for name, value in point.items())
            for loss, point in zip(rest, points, strict=True)
        ]
    effect = {name: dict(values) for name, values in start.items()}
    where = {
        name: {
            value: [place for place, point in enumerate(points) if point[name] == value] for value in choices
        }
        for name, choices in space.choices.items()
    }
    for _ in range(ROUNDS):
        for name, places_of in where.items():
            for value, places in places_of.items():
                old = effect[name][value]
                drawn = SHRINK * start[name][value]
                new = (sum(rest[place] + old for place in places) + drawn) / (len(places) + SHRINK)
                for place in places:
                    rest[place] += old - new
                effect[name][value] = new
    spread = sqrt(sum(loss * loss for loss in rest) / len(rest)) if rest else 0.0
    counts = {
        name: {value: len(places) for value, places in places_of.items()} for name, places_of in where.items()
    }
    return Effects(mean, bad, effect, counts, spread)
