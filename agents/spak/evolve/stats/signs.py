"""The exact sign test over paired outcomes, its interval, and how many pairs a difference takes to show."""

from __future__ import annotations

from math import ceil, comb, sqrt

from spak.evolve.stats.proportions import exact

Z_POWER = 0.8416212335729143
"""The 80 % point of the normal distribution."""
Z_ALPHA = 1.959963984540054


def sign_test(wins: int, losses: int) -> float:
    """The two-sided p-value of that many wins and losses under a fair coin; ties are left out.

    Computed in integers. Source: Dixon and Mood 1946; on paired outcomes this is McNemar's exact test.
    """
    if wins < 0 or losses < 0:
        raise ValueError(f"{wins} wins, {losses} losses")
    n = wins + losses
    tail = sum(comb(n, i) for i in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / (1 << n))


def net_interval(wins: int, losses: int, ties: int, alpha: float = 0.05) -> tuple[float, float] | None:
    """The interval, at level 1 - alpha, of the chance of a win less that of a loss; None of no pairs.

    It lies on one side of 0 exactly where the sign test has p < alpha: the share of wins among deciding pairs
    is the interval of that test (Clopper and Pearson 1934). It is scaled by the share of pairs that decide,
    for which alpha / 5 is enough: tests/evolve/test_stats.py computes the coverage.
    """
    deciding = wins + losses
    if not deciding + ties:
        return None
    worst, best = exact(wins, deciding, alpha)
    few, many = exact(deciding, deciding + ties, alpha / 5)
    low, high = 2 * worst - 1, 2 * best - 1
    return low * (few if low > 0 else many), high * (few if high < 0 else many)


def needed(wins: int, losses: int, ties: int) -> int | None:
    """How many pairs would show a difference like the one seen, at 5 % with power 80 %.

    None where nothing decided, or wins and losses are equal: there is no difference to show. The share of
    wins is drawn towards a half by one pair, since few pairs overstate it; the normal approximation of the
    sign test then gives deciding pairs, and the share of ties scales them to all.
    """
    deciding = wins + losses
    if wins == losses:
        return None
    share = (max(wins, losses) + 0.5) / (deciding + 1)
    root = (Z_ALPHA / 2 + Z_POWER * sqrt(share * (1 - share))) / (share - 0.5)
    return ceil(max(root * root, 6) * (deciding + ties) / deciding)
