"""The decision on paired samples: crossings by hand, refusals, and how often noise is called a gain."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.kernel.metric.decision import DEFAULTS, Verdict, decide

WIN = {"candidate": [90, 95, 99], "incumbent": [100, 101, 102]}
LOSS = {"candidate": [100, 101, 102], "incumbent": [100, 101, 102]}


def test_eight_wins_in_a_row_are_an_improvement() -> None:
    """3^8 = 6561 is over 20 * 2^8 = 5120; 3^7 = 2187 is not over 2560."""
    assert decide([WIN] * 8, DEFAULTS) == Verdict("improved", 8, 8)
    assert decide([WIN] * 7, DEFAULTS) == Verdict("undecided", 7, 7)


def test_eight_losses_in_a_row_end_it() -> None:
    assert decide([LOSS] * 8, DEFAULTS) == Verdict("not_improved", 8, 0)
    assert decide([LOSS] * 7, DEFAULTS) == Verdict("undecided", 7, 0)


def test_one_loss_costs_three_pairs() -> None:
    """10 wins of 11: 3^10 = 59049 is over 20 * 2^11 = 40960; 9 of 10 is not: 19683 against 20480."""
    pairs = [LOSS] + [WIN] * 10
    assert decide(pairs, DEFAULTS) == Verdict("improved", 11, 10)
    assert decide(pairs[:-1], DEFAULTS).outcome == "undecided"


def test_no_pairs_decide_nothing() -> None:
    assert decide([], DEFAULTS) == Verdict("undecided", 0, 0)


@pytest.mark.parametrize(
    ("candidate", "incumbent", "wins"),
    [([98], [100], 1), ([99], [100], 0), ([100], [100], 0), ([989], [1000], 1), ([990], [1000], 0)],
)
def test_a_win_is_by_more_than_the_margin(candidate: list[int], incumbent: list[int], wins: int) -> None:
    assert decide([{"candidate": candidate, "incumbent": incumbent}], DEFAULTS).wins == wins


def test_minima_decide() -> None:
    pair = {"candidate": [500, 90, 700], "incumbent": [100, 100, 100]}
    assert decide([pair], DEFAULTS).wins == 1


def test_where_higher_is_better_maxima_decide() -> None:
    pair = {"candidate": [5, 110, 7], "incumbent": [100, 90, 100]}
    assert decide([pair], DEFAULTS, higher=True).wins == 1
    assert decide([{"candidate": [100], "incumbent": [100]}], DEFAULTS, higher=True).wins == 0


def test_samples_past_the_verdict_are_refused() -> None:
    """Who goes on until it looks better is found out, whichever way the verdict was."""
    for pairs in ([WIN] * 9, [LOSS] * 9, [LOSS] * 8 + [WIN] * 40):
        verdict = decide(pairs, DEFAULTS)
        assert (verdict.outcome, verdict.reason) == ("invalid", "samples_past_verdict")


def test_more_pairs_than_the_rule_allows_are_refused() -> None:
    rule = {**DEFAULTS, "max_pairs": 4}
    assert decide([WIN, LOSS] * 2, rule).outcome == "undecided"
    assert decide([WIN, LOSS] * 3, rule).reason == "too_many_pairs"


@pytest.mark.parametrize("bad", [[], [0], [-5], [1.5], [True], [None], ["9"], 7, None, [10, 0]])
def test_a_sample_that_is_no_positive_integer_is_refused(bad: Any) -> None:
    for pair in ({"candidate": bad, "incumbent": [9]}, {"candidate": [9], "incumbent": bad}):
        verdict = decide([pair], DEFAULTS)
        assert (verdict.outcome, verdict.reason) == ("invalid", "bad_sample")
    assert decide([{}], DEFAULTS).reason == "bad_sample"


@given(st.lists(st.booleans(), max_size=100), st.integers(2, 1000), st.integers(1, 80))
def test_it_is_the_betting_rule(wins: list[bool], evidence: int, max_pairs: int) -> None:
    """Against the rule in its textbook form: a capital that grows by half or halves, as a fraction."""
    rule = {**DEFAULTS, "evidence": evidence, "max_pairs": max_pairs}
    gain = loss = Fraction(1)
    expected, used = "undecided", 0
    for won in wins[:max_pairs]:
        used += 1
        gain *= Fraction(3, 2) if won else Fraction(1, 2)
        loss *= Fraction(1, 2) if won else Fraction(3, 2)
        if gain >= evidence or loss >= evidence:
            expected = "improved" if gain >= evidence else "not_improved"
            break
    verdict = decide([WIN if won else LOSS for won in wins[:used]], rule)
    assert (verdict.outcome, verdict.pairs) == (expected, used)


def _sampled(draw: Callable[[], tuple[int, int]]) -> Verdict:
    pairs: list[dict[str, Sequence[int]]] = []
    while True:
        couples = [draw() for _ in range(3)]
        pairs.append({"candidate": [one for one, _ in couples], "incumbent": [two for _, two in couples]})
        verdict = decide(pairs, DEFAULTS)
        if verdict.outcome != "undecided" or len(pairs) == DEFAULTS["max_pairs"]:
            return verdict


def _improved(gain: float, runs: int) -> int:
    """How many of the runs end as improved, with noise of 6 % and bursts that double a sample."""
    source = random.Random(f"decide {gain}")

    def sample(base: float) -> int:
        slow = 2.0 if source.random() < 0.05 else 1.0
        return int(base * slow * (1 + abs(source.gauss(0, 0.06))))

    def draw() -> tuple[int, int]:
        return sample(1e6 * (1 - gain)), sample(1e6)

    return sum(_sampled(draw).outcome == "improved" for _ in range(runs))


def test_noise_is_seldom_called_a_gain() -> None:
    """At most 1 of 20 by the theorem, whatever the noise; the margin makes it less."""
    assert _improved(0.0, 400) <= 20


def test_a_gain_of_a_tenth_is_found() -> None:
    assert _improved(0.10, 100) >= 98
