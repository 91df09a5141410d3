"""The rules of measuring that every profiler shares: C, C++ and Python candidates, GPU kernels and `Metric`.

Takes two functions that sample a side on an input, what draws an input and a coin, and a MetricRule's
integers; gives the pairs of a Measurement, and the figures that are published. It knows neither what is
sampled nor in which unit, and names no winner: the kernel derives that from the pairs, with the same `decide`
that stopped the sampling here.

    RIVALS      whom each role is compared with
    compare     pairs until the rule has decided; each pair is three couples
    Draw        one couple after another: both sides get the same fresh input, in an order that is drawn
    Figures     median, least, spread and the interval of the median
    settled     a final figure is taken again while its spread is above a tenth

Source: notes on measuring (decision rule).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from spak.kernel.metric.decision import Verdict, decide, is_win

COUPLES = 3
PROCESSES = 4
"""Processes of a side at a time; a sampler that keeps none ignores the index."""
RIVALS: Mapping[str, tuple[str, ...]] = {
    "baseline": (),
    "candidate": ("incumbent",),
    "final": ("baseline", "runner_up"),
}
"""Whom each role is compared with, of those that the call brings."""
SPREAD_PPM = 100_000
"""A final figure whose median lies further above its least value than this is taken again."""
ROUNDS = 4
"""Rounds of a final figure at most."""

Input = TypeVar("Input")
Sample = Callable[[int, Input], int]
"""Gives a positive integer for a process's index and an input."""


@dataclass(frozen=True, slots=True)
class Sampling(Generic[Input]):
    """How inputs and orders are drawn, and when time is up."""

    draw: Callable[[], Input]
    coin: Callable[[], bool]
    late: Callable[[], bool]
    couples: int = COUPLES
    renew: bool = True
    """Whether new processes are taken while the candidate leads (see `compare`)."""


@dataclass(frozen=True, slots=True)
class Draw(Generic[Input]):
    """A pair before it is sampled: the letter of the side (`c` or `i`) and the input of each window."""

    windows: tuple[tuple[str, Input], ...]

    @classmethod
    def of(cls, sampling: Sampling[Input]) -> Draw[Input]:
        """Three couples in orders that are drawn; both sides of a couple get the same fresh input."""
        windows: list[tuple[str, Input]] = []
        for _ in range(sampling.couples):
            given = sampling.draw()
            windows += [(letter, given) for letter in ("ci" if sampling.coin() else "ic")]
        return cls(tuple(windows))

    def pair(self, rival: str, process: int, samples: Sequence[int]) -> dict[str, Any]:
        """The pair as it is recorded."""
        taken = list(zip((letter for letter, _ in self.windows), samples, strict=True))
        return {
            "rival": rival,
            "process": process,
            "order": "".join(letter for letter, _ in taken),
            "candidate": [value for letter, value in taken if letter == "c"],
            "incumbent": [value for letter, value in taken if letter == "i"],
        }


def compare(
    sampling: Sampling[Input],
    candidate: Sample[Input],
    rival: Sample[Input],
    name: str,
    rule: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Pairs `{rival, process, order, candidate, incumbent}` as taken, until the rule has decided.

    The first four pairs have processes of their own, and later ones take turns in those. A process can be a
    few per cent quicker or slower for as long as it lives (where its pages lie), so such pairs are not
    independent, which the rule supposes. So while the candidate has won two of three pairs or more, each
    further pair has new processes. Simulated with equal sides and a bias of 3 % (8 %), 0.8 % (14 %) of
    comparisons said "improved" without that and 0 to 0.2 % (0.5 to 0.8 %) with it, as if every pair had its
    own; equal sides are seldom ahead so often, so that it costs next to nothing.
    """
    higher = bool(rule.get("higher"))

    def taken() -> Iterator[dict[str, Any]]:
        wins, last = 0, -1
        for count in itertools.count():
            if count < PROCESSES or (sampling.renew and 3 * wins >= 2 * count):
                last += 1
                process = last
            else:
                process = last - count % PROCESSES
            draw = Draw.of(sampling)
            sides = {"c": candidate, "i": rival}
            samples = [sides[letter](process, given) for letter, given in draw.windows]
            pair = draw.pair(name, process, samples)
            best = max if higher else min
            mine, other = best(pair["candidate"]), best(pair["incumbent"])
            wins += is_win(mine, other, rule["margin_num"], rule["margin_den"], higher)
            yield pair

    return until_decided(taken(), sampling.late, rule)


def until_decided(
    taken: Iterator[dict[str, Any]], late: Callable[[], bool], rule: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The pairs of an endless iterator up to the first at which sampling ends.

    That is when the rule has decided, or, undecided, when the first pair is worse than the rival by more than
    a tenth, when winning every pair that is left would not make it an improvement, or when time is up: an
    undecided comparison is no improvement. `rule["higher"]` other than 0: larger values are better.
    """
    higher = bool(rule.get("higher"))
    pairs: list[dict[str, Any]] = []
    while len(pairs) < rule["max_pairs"]:
        pairs.append(next(taken))
        verdict = decide(pairs, rule, higher)
        if verdict.outcome != "undecided" or late() or not _may_improve(verdict, rule):
            break
        if len(pairs) == 1 and _hopeless(pairs[0], higher):
            break
    return pairs


def improved(pairs: Sequence[Mapping[str, Any]], rule: Mapping[str, int]) -> bool:
    """Whether the kernel will call the candidate of these pairs improved; smaller values are better."""
    return decide(pairs, rule).outcome == "improved"


def _may_improve(verdict: Verdict, rule: Mapping[str, int]) -> bool:
    """Whether the bar can still be reached when all pairs that are left are won; a rule with too few pairs to
    ever reach it takes all of them."""
    most = rule["max_pairs"]
    bar = rule["evidence"] * 2**most
    return bool(3 ** (verdict.wins + most - verdict.pairs) >= bar or 3**most < bar)


def _hopeless(pair: Mapping[str, Any], higher: bool) -> bool:
    mine: list[int] = pair["candidate"]
    other: list[int] = pair["incumbent"]
    return 11 * max(mine) < 10 * max(other) if higher else 10 * min(mine) > 11 * min(other)


@dataclass(frozen=True, slots=True)
class Figures:
    """What is published of the samples of a side, in integers."""

    median: int
    least: int
    spread_ppm: int
    """How far the median lies above the least, in millionths of it."""
    low: int
    high: int
    """The interval that holds the median of all such samples with a confidence of at least 95 %, where there
    are six or more; else the least and the largest sample."""

    @classmethod
    def of(cls, samples: Sequence[int]) -> Figures:
        """Figures of one sample or more."""
        ordered = sorted(samples)
        median, least = statistics.median_low(ordered), ordered[0]
        skip = _outer(len(ordered))
        return cls(
            median,
            least,
            (median - least) * 1_000_000 // max(least, 1),
            ordered[skip],
            ordered[len(ordered) - 1 - skip],
        )


def _outer(count: int) -> int:
    """How many order statistics may be left out on each side of a 95 % interval of the median: the sign
    test's, which assumes nothing of the distribution."""
    total = skip = 0
    for index in range(count // 2):
        total += math.comb(count, index)
        if 40 * total > 2**count:  # more than 2.5 % on one side
            break
        skip = index
    return skip


def settled(
    first: Mapping[str, Sequence[int]],
    again: Callable[[], Mapping[str, Sequence[int]]],
    late: Callable[[], bool],
) -> list[Mapping[str, Figures]]:
    """The figures of every round of a final measurement, the one to publish last.

    A round is taken again while the larger spread of its sides is above a tenth, up to four rounds. What is
    published is the round whose larger spread is the least: it is chosen by how quiet it was, never by how
    fast anything was in it.
    """
    rounds = [{name: Figures.of(samples) for name, samples in first.items() if samples}]
    while _noise(rounds[-1]) > SPREAD_PPM and len(rounds) < ROUNDS and not late():
        rounds.append({name: Figures.of(samples) for name, samples in again().items() if samples})
    quietest = min(rounds, key=_noise)
    rounds.append(rounds.pop(next(index for index, found in enumerate(rounds) if found is quietest)))
    return list(rounds)


def _noise(found: Mapping[str, Figures]) -> int:
    return max((figures.spread_ppm for figures in found.values()), default=0)
