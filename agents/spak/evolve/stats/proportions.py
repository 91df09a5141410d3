"""Rates of successes: Wilson and exact intervals, and the chance that k runs of a case all pass."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, sqrt

from spak.evolve.stats.beta import quantile

Z95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


def wilson(successes: int, n: int, z: float = Z95) -> tuple[float, float]:
    """The Wilson score interval of a rate; of nothing it is (0, 1).

    Source: Wilson 1927; it holds near 0 and 1 and at small n, where the usual interval fails.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n}")
    if n == 0:
        return 0.0, 1.0
    rate, square = successes / n, z * z
    middle = (rate + square / (2 * n)) / (1 + square / n)
    half = z / (1 + square / n) * sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high


def exact(successes: int, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """The interval of the rates that neither one-sided binomial test rejects at alpha / 2; of nothing (0, 1).

    It covers at least 1 - alpha of the time at every n. Source: Clopper and Pearson 1934.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n}")
    low = quantile(alpha / 2, successes, n - successes + 1) if successes else 0.0
    high = quantile(1 - alpha / 2, successes + 1, n - successes) if successes < n else 1.0
    return low, high


def pass_power(counts: Iterable[tuple[int, int]], k: int) -> float | None:
    """pass^k: the mean over cases of the chance that k runs drawn from a case's n all passed.

    `counts` are (passed, n) by case; the unbiased estimate C(passed, k) / C(n, k). None where no case has k
    runs. Source: Yao et al. 2024 (tau-bench).
    """
    found = [comb(passed, k) / comb(n, k) for passed, n in counts if n >= k]
    return sum(found) / len(found) if found else None
