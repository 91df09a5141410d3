"""Tests by betting: evidence that may be looked at after every observation, and be stopped at any time.

A bettor starts with 1 and stakes a fixed part of the wealth against the null at each observation. Under the
null the wealth has expectation at most 1 at every time, so it reaches 1/alpha with chance at most alpha
(Ville's inequality), however often one looks.

    Betting      wins and losses of pairs; the null: a win is at most as likely as a loss
    Within       the same pairs; the null: the mean outcome is a margin below 0, or lower
    mean_above   bounded values; the null: their mean is at most a bound
    spent        the alpha of the k-th candidate of a campaign; over all candidates it sums to alpha

Sources: Waudby-Smith and Ramdas 2024 (betting), Grünwald et al. 2024 (e-values); the series 1/(k(k+1)) is the
notes' way to spend alpha over candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, log, log1p

STAKE = Fraction(1, 2)
PARTS = tuple(Fraction(number, 10) for number in (1, 2, 4, 6, 8))
"""Of the largest safe stake of `Within`; fixed beforehand, so that none has to be guessed."""
GRID = tuple(number / 20 for number in range(1, 20))
"""Parts of the largest stake that is safe; the wealth is their mean, so no part has to be guessed."""


@dataclass(frozen=True, slots=True)
class Betting:
    """The evidence of paired outcomes: `e` multiplies by 1 + stake for a win, 1 - stake for a loss, and stays
    for a tie. Exact in rationals, so that equal outcomes give equal verdicts everywhere."""

    stake: Fraction = STAKE
    wins: int = 0
    losses: int = 0
    ties: int = 0
    peak: Fraction = Fraction(1)
    """The most that `e` has ever been: what is compared with 1/alpha."""

    @property
    def e(self) -> Fraction:
        """The capital now, from 1."""
        return (1 + self.stake) ** self.wins * (1 - self.stake) ** self.losses

    def after(self, outcome: int) -> Betting:
        """With one more pair: 1 a win of the candidate, -1 a loss, 0 a tie."""
        match outcome:
            case 1:
                made = replace(self, wins=self.wins + 1)
            case -1:
                made = replace(self, losses=self.losses + 1)
            case 0:
                made = replace(self, ties=self.ties + 1)
            case _:
                raise ValueError(f"{outcome} is not an outcome of a pair")
        return replace(made, peak=max(self.peak, made.e))

    def accepts(self, alpha: Fraction) -> bool:
        """Whether the capital was ever as high as 1/alpha."""
        return self.peak * alpha >= 1

    def least_wins(self, alpha: Fraction) -> int:
        """Wins in a row, from now on, that would be accepted: 0 where it is accepted already."""
        count, made = 0, self
        while not made.accepts(alpha):
            count, made = count + 1, made.after(1)
        return count


@dataclass(frozen=True, slots=True)
class Within(Betting):
    """The evidence that a candidate is not worse than its base by `margin` (between 0 and 1, in passes of all
    pairs): a bet against each outcome plus the margin, the mean over PARTS of the largest stake that is safe.
    Ties are evidence too. It claims no gain, so it is for candidates that only take something out."""

    margin: Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise ValueError(f"a margin of {self.margin}")

    @property
    def e(self) -> Fraction:
        """The capital now, from 1."""
        won, tied = ((value + self.margin) / (1 - self.margin) for value in (1, 0))
        return sum(
            (
                (1 + part * won) ** self.wins * (1 + part * tied) ** self.ties * (1 - part) ** self.losses
                for part in PARTS
            ),
            Fraction(0),
        ) / len(PARTS)


def spent(alpha: Fraction, k: int) -> Fraction:
    """The alpha of the k-th candidate, from 1: alpha / (k (k + 1))."""
    if k < 1:
        raise ValueError(f"candidate {k}")
    return alpha / (k * (k + 1))


def mean_above(values: Sequence[float], bound: float, low: float = -1.0, high: float = 1.0) -> float:
    """The evidence that values within [low, high] have a mean above the bound: the largest mean wealth over
    the grid of stakes at any time. At 20 the bound is rejected at 5 %. The order has to be fixed beforehand.
    """
    if not low <= bound < high or any(not low <= value <= high for value in values):
        raise ValueError("values or bound are out of range")
    if bound == low:
        return float("inf") if any(value > low for value in values) else 1.0
    logs = [0.0] * len(GRID)
    peak = 1.0
    for value in values:
        logs = [
            wealth + log1p(part / (bound - low) * (value - bound))
            for part, wealth in zip(GRID, logs, strict=True)
        ]
        peak = max(peak, _mean_exp(logs))
    return peak


def needed_ties(bound: float, alpha: float = 0.05, most: int = 1_000_000) -> int | None:
    """How many values of exactly 0 it takes until a bound below 0 is rejected; None above `most`."""
    if bound >= 0:
        return None
    logs = [0.0] * len(GRID)
    gains = [log1p(-part / (bound + 1) * bound) for part in GRID]
    low, high = 1, most
    if _mean_exp([gain * high for gain in gains]) < 1 / alpha:
        return None
    while low < high:
        middle = (low + high) // 2
        enough = (
            _mean_exp([base + gain * middle for base, gain in zip(logs, gains, strict=True)]) >= 1 / alpha
        )
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def _mean_exp(logs: Iterable[float]) -> float:
    listed = list(logs)
    top = max(listed)
    total = top + log(sum(exp(item - top) for item in listed) / len(listed))
    return exp(total) if total < 700 else float("inf")
