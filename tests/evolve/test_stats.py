"""The figures beside independent answers: their definitions, enumeration, and simulation with fixed seeds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import combinations, product
from math import ceil, comb, erf, log, sqrt
from random import Random
from statistics import NormalDist, fmean, stdev

import pytest

from spak.evolve.stats import (
    Betting,
    exact,
    interval_of_mean,
    mean_above,
    needed,
    net_interval,
    pass_power,
    sign_test,
    spent,
    wilson,
)
from spak.evolve.stats.betting import needed_ties

ALPHA = Fraction(1, 20)


def test_wilson_holds_the_rates_that_a_score_test_does_not_reject() -> None:
    """Its ends solve (rate - p)^2 = z^2 p (1 - p) / n; found here by bisection."""
    z = NormalDist().inv_cdf(0.975)
    assert erf(z / sqrt(2)) == pytest.approx(0.95)

    def rejected(p: float, rate: float, n: int) -> bool:
        return (rate - p) ** 2 > z * z * p * (1 - p) / n

    for n in (1, 2, 7, 20, 400):
        for k in {0, 1, n // 2, n - 1, n}:
            ends = []
            for outer in (0.0, 1.0):
                inside, outside = k / n, outer
                for _ in range(60):
                    middle = (inside + outside) / 2
                    inside, outside = (inside, middle) if rejected(middle, k / n, n) else (middle, outside)
                ends.append(inside)
            assert wilson(k, n) == pytest.approx(tuple(ends), abs=1e-9)
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_sign_test_counts_every_way_that_coins_can_fall() -> None:
    for n in range(11):
        falls = [sum(some) for some in product((0, 1), repeat=n)]
        for wins in range(n + 1):
            as_far = sum(abs(2 * heads - n) >= abs(2 * wins - n) for heads in falls)
            assert sign_test(wins, n - wins) == as_far / len(falls)


def test_pass_power_is_what_drawing_runs_gives() -> None:
    runs = [(1, 1, 0, 1), (0, 0, 0, 1), (1, 1, 1, 1)]
    for k in (1, 2, 3, 4):
        drawn = [[all(some) for some in combinations(case, k)] for case in runs]
        wanted = sum(sum(case) / len(case) for case in drawn) / len(drawn)
        assert pass_power([(sum(case), len(case)) for case in runs], k) == pytest.approx(wanted)
    assert pass_power([(1, 1)], 2) is None


def test_needed_pairs_show_the_difference_in_four_of_five() -> None:
    draw = Random(1)
    for wins, losses, ties in ((14, 6, 0), (9, 3, 8), (30, 20, 50)):
        count = needed(wins, losses, ties)
        assert count is not None
        share = (wins + 0.5) / (wins + losses + 1)
        decides = (wins + losses) / (wins + losses + ties)
        shown = 0
        for _ in range(400):
            deciding = sum(draw.random() < decides for _ in range(count))
            won = sum(draw.random() < share for _ in range(deciding))
            shown += sign_test(won, deciding - won) < 0.05
        assert 0.7 < shown / 400 < 0.95
    assert needed(0, 0, 5) is None
    assert needed(3, 3, 0) is None


def test_betting_needs_the_wins_in_a_row_that_the_notes_name() -> None:
    """8 alone, 10 as the first of a campaign, 19 as the tenth: alpha 0.05, stake a half."""
    assert Betting().least_wins(ALPHA) == 8
    assert Betting().least_wins(spent(ALPHA, 1)) == 10
    assert Betting().least_wins(spent(ALPHA, 10)) == 19
    assert sum(spent(ALPHA, k) for k in range(1, 2_000)) < ALPHA
    for k in (1, 4, 25):
        assert Betting().least_wins(spent(ALPHA, k)) == ceil(log(float(1 / spent(ALPHA, k))) / log(1.5))


def test_betting_accepts_a_fair_coin_seldom_however_often_one_looks() -> None:
    draw, accepted = Random(2), 0
    for _ in range(2_000):
        found = Betting()
        for _ in range(100):
            found = found.after(draw.choice((1, -1)))
            if found.accepts(ALPHA):
                accepted += 1
                break
    assert accepted / 2_000 <= 0.05
    assert accepted > 0


def test_betting_is_the_likelihood_ratio_of_its_stake() -> None:
    """An e-process with a fixed stake is the ratio of a coin of share (1 + stake) / 2 to a fair one."""
    draw = Random(3)
    outcomes = [draw.choice((1, -1, 0)) for _ in range(60)]
    found = Betting(Fraction(2, 5))
    ratio = 1.0
    for outcome in outcomes:
        found = found.after(outcome)
        ratio *= {1: 0.7 / 0.5, -1: 0.3 / 0.5, 0: 1.0}[outcome]
    assert float(found.e) == pytest.approx(ratio)
    with pytest.raises(ValueError, match="not an outcome"):
        found.after(2)


def test_verdicts_are_those_of_the_wealth_process_as_it_is_published() -> None:
    """Waudby-Smith and Ramdas 2024, section 4: K_t = K_(t-1) (1 + lambda (x_t - m)), rejected when K_t >= 1 /
    alpha for the first time; here in 60 decimal digits, on every short sequence and on long drawn ones."""
    getcontext().prec = 60

    def rejected_at(outcomes: Sequence[int], stake: Decimal, alpha: Fraction) -> int:
        capital, bound = Decimal(1), Decimal(alpha.denominator) / Decimal(alpha.numerator)
        for number, outcome in enumerate(outcomes, 1):
            x, m = (Decimal(outcome) + 1) / 2, Decimal("0.5")
            capital *= 1 + 2 * stake * (x - m)
            if capital >= bound:
                return number
        return 0

    def ours(outcomes: Sequence[int], stake: Fraction, alpha: Fraction) -> int:
        found = Betting(stake)
        for number, outcome in enumerate(outcomes, 1):
            found = found.after(outcome)
            if found.accepts(alpha):
                return number
        return 0

    draw = Random(8)
    sequences = [*product((1, -1, 0), repeat=7)]
    sequences += [tuple(draw.choices((1, -1, 0), (draw.random(), 0.3, 0.2), k=150)) for _ in range(300)]
    seen = 0
    for stake, alpha in (
        (Fraction(1, 2), ALPHA),
        (Fraction(2, 5), spent(ALPHA, 3)),
        (Fraction(1, 2), Fraction(1, 8)),
    ):
        for outcomes in sequences:
            wanted = rejected_at(outcomes, Decimal(stake.numerator) / stake.denominator, alpha)
            assert ours(outcomes, stake, alpha) == wanted
            seen += wanted > 0
    assert seen > 300


def test_evidence_for_a_mean_is_valid_and_finds_what_is_there() -> None:
    draw = Random(4)

    def accepted(mean: float, bound: float, n: int) -> float:
        rounds = 150
        share = (mean + 1) / 2
        hits = 0
        for _ in range(rounds):
            values = [1.0 if draw.random() < share else -1.0 for _ in range(n)]
            hits += mean_above(values, bound) >= 20
        return hits / rounds

    assert accepted(-0.1, -0.1, 60) <= 0.05
    assert accepted(0.4, -0.1, 100) >= 0.9


def test_ties_alone_show_non_inferiority_only_when_there_are_enough() -> None:
    """With every case equal a bound of -2 points takes some 200 cases, near the rule of three."""
    count = needed_ties(-0.02)
    assert count is not None
    assert 140 < count < 260
    assert mean_above([0.0] * count, -0.02) >= 20 > mean_above([0.0] * (count - 1), -0.02)
    assert needed_ties(0.0) is None
    with pytest.raises(ValueError, match="range"):
        mean_above([2.0], 0.0)


@pytest.mark.findings("E8")
@pytest.mark.parametrize("count", [2, 3, 5, 8, 20])
def test_the_interval_of_a_mean_covers_what_it_states(count: int) -> None:
    draw, inside, rounds = Random(count), 0, 4_000
    for _ in range(rounds):
        low, high = interval_of_mean([draw.gauss(1.0, 2.0) for _ in range(count)]) or (2.0, 0.0)
        inside += low <= 1.0 <= high
    assert 0.93 <= inside / rounds <= 0.97
    values = [draw.expovariate(1.0) for _ in range(60)]
    half = 2.0010 * stdev(values) / sqrt(60)  # the 97.5 % point of t with 59 degrees, from a table
    assert interval_of_mean(values) == pytest.approx((fmean(values) - half, fmean(values) + half), abs=1e-4)


@pytest.mark.findings("E8")
def test_values_that_do_not_differ_have_no_interval() -> None:
    assert interval_of_mean([]) is interval_of_mean([1.0]) is interval_of_mean([0.1] * 10) is None


@pytest.mark.findings("E8")
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 20, 60])
def test_the_exact_interval_of_a_rate_covers_at_least_what_it_states(n: int) -> None:
    """Computed, not drawn: the chance of every count at every rate of a grid."""
    intervals = [exact(k, n) for k in range(n + 1)]
    for rate in (number / 200 for number in range(201)):
        chances = [comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)]
        inside = sum(c for c, (low, high) in zip(chances, intervals, strict=True) if low <= rate <= high)
        assert inside >= 0.95 - 1e-9, (rate, inside)
    assert exact(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 of 2"):
        exact(3, 2)


@pytest.mark.findings("E8", "S5.7")
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 20])
def test_the_interval_of_a_comparison_covers_at_least_what_it_states(n: int) -> None:
    """Computed, not drawn: every number of wins and losses, at every pair of chances of a grid."""
    counts = [(wins, losses) for wins in range(n + 1) for losses in range(n + 1 - wins)]
    ends = {each: net_interval(*each, n - sum(each)) or (1.0, -1.0) for each in counts}
    assert all(high - low > 0.05 for low, high in ends.values()), "none without a width"
    grid = [(a / 20, b / 20) for a in range(21) for b in range(21 - a)]
    for won, lost in grid:
        inside = 0.0
        for (wins, losses), (low, high) in ends.items():
            if low - 1e-9 <= won - lost <= high + 1e-9:
                ties = n - wins - losses
                ways = comb(n, wins) * comb(n - wins, losses)
                inside += ways * won**wins * lost**losses * max(1 - won - lost, 0.0) ** ties
        assert inside >= 0.95 - 1e-9, (won, lost, inside)


@pytest.mark.findings("S5.7")
def test_verdict_and_interval_of_a_comparison_agree() -> None:
    for alpha in (0.05, 0.025):
        for wins, losses, ties in product(range(16), range(16), (0, 30)):
            if (found := net_interval(wins, losses, ties, alpha)) is None:
                assert wins + losses + ties == 0
                continue
            apart = found[0] > 0 or found[1] < 0
            assert apart == (sign_test(wins, losses) < alpha), (wins, losses, ties, alpha)
