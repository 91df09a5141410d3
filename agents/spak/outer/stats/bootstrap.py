"""The bootstrap interval of a mean: resampling whole cases, with a seed, so that it comes out again."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

ROUNDS = 2_000


def interval_of_mean(
    values: Sequence[float], seed: int = 0, rounds: int = ROUNDS
) -> tuple[float, float] | None:
    """The 95 % percentile interval of the values' mean; None where fewer than two values say anything.

    One value per case: runs of one case are not independent. Source: Efron 1979.
    """
    count = len(values)
    if count < 2:
        return None
    if min(values) == max(values):  # every sample has this sum: nothing to draw
        mean = sum(values) / count
        return mean, mean
    draw = Random(seed)
    means = sorted(sum(draw.choices(values, k=count)) / count for _ in range(rounds))
    return means[int(0.025 * rounds)], means[min(int(0.975 * rounds), rounds - 1)]
