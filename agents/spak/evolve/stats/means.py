"""The t interval of a mean: approximate, since it takes the values for normally distributed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from statistics import fmean, stdev

from spak.evolve.stats.beta import quantile


def interval_of_mean(values: Sequence[float], alpha: float = 0.05) -> tuple[float, float] | None:
    """The interval at level 1 - alpha; None where the values do not differ, from which no width follows.

    One value per case: runs of one case are not independent. Source: Student 1908.
    """
    count = len(values)
    if count < 2 or min(values) == max(values):
        return None
    half = t_point(count - 1, alpha) * stdev(values) / sqrt(count)
    mean = fmean(values)
    return mean - half, mean + half


@lru_cache
def t_point(freedom: int, alpha: float = 0.05) -> float:
    """What a t variable exceeds in absolute value with chance alpha."""
    x = quantile(alpha, freedom / 2, 0.5)
    return sqrt(freedom * (1 / x - 1))
