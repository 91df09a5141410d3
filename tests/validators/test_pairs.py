"""The rules of measuring by themselves: what is drawn, when sampling ends, intervals, rounds."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import spak.validators
from spak.kernel.metric.decision import DEFAULTS, decide
from spak.validators import pairs
from spak.validators.pairs import Figures


def sampling(seed: int, late: bool = False) -> pairs.Sampling[int]:
    drawn = random.Random(seed)
    return pairs.Sampling(lambda: drawn.getrandbits(30), lambda: bool(drawn.getrandbits(1)), lambda: late)


def test_both_sides_of_a_couple_get_the_same_fresh_input_in_a_drawn_order() -> None:
    seen: dict[str, list[tuple[int, int]]] = {"c": [], "i": []}

    def side(letter: str, value: int) -> pairs.Sample[int]:
        def sample(process: int, given: int) -> int:
            seen[letter].append((process, given))
            return value

        return sample

    found = pairs.compare(sampling(1), side("c", 100), side("i", 100), "incumbent", DEFAULTS)
    assert seen["c"] == seen["i"]
    inputs = [given for _, given in seen["c"]]
    assert len(set(inputs)) == len(inputs) == 3 * len(found)
    assert {pair["order"] for pair in found} > {found[0]["order"]}
    assert decide(found, DEFAULTS).outcome == "not_improved"


def processes(mine: int, other: int, renew: bool = True) -> list[int]:
    made = dataclasses.replace(sampling(3), renew=renew)
    return [pair["process"] for pair in pairs.compare(made, lambda *_: mine, lambda *_: other, "x", DEFAULTS)]


def test_a_candidate_that_leads_gets_new_processes() -> None:
    assert processes(90, 100) == list(range(8))
    assert processes(100, 100) == [0, 1, 2, 3, 3, 2, 1, 0]
    assert set(processes(90, 100, renew=False)) == {0, 1, 2, 3}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_bias_of_processes_is_no_improvement(seed: int) -> None:
    """Equal sides whose processes differ by up to 8 % for as long as they live: without new ones, one
    comparison in eight said improved."""
    drawn = random.Random(seed)
    improved = 0
    for number in range(150):
        bias: dict[tuple[str, int], float] = {}

        def side(letter: str, bias: dict[tuple[str, int], float] = bias) -> pairs.Sample[int]:
            def sample(process: int, given: int) -> int:
                slow = bias.setdefault((letter, process), 1 + 0.08 * drawn.random())
                return int(1e6 * slow * (1 + drawn.expovariate(33)))

            return sample

        found = pairs.compare(sampling(number), side("c"), side("i"), "incumbent", DEFAULTS)
        improved += decide(found, DEFAULTS).outcome == "improved"
    assert improved <= 4


@pytest.mark.parametrize(
    ("mine", "other", "higher", "late", "count", "outcome"),
    [
        (90, 100, 0, False, 8, "improved"),
        (100, 100, 0, False, 8, "not_improved"),
        (111, 100, 0, False, 1, "undecided"),
        (90, 100, 1, False, 1, "undecided"),
        (110, 100, 1, False, 8, "improved"),
        (90, 100, 0, True, 1, "undecided"),
    ],
)
def test_when_sampling_ends(mine: int, other: int, higher: int, late: bool, count: int, outcome: str) -> None:
    rule = DEFAULTS | {"higher": higher}
    found = pairs.compare(sampling(2, late), lambda *_: mine, lambda *_: other, "incumbent", rule)
    assert (len(found), decide(found, rule, bool(higher)).outcome) == (count, outcome)


def taken(wins: Sequence[bool]) -> int:
    """How many pairs are sampled where these are won."""
    endless = ({"candidate": [90 if won else 100], "incumbent": [100]} for won in wins)
    return len(pairs.until_decided(endless, lambda: False, DEFAULTS))


def test_sampling_ends_when_no_improvement_can_be_reached() -> None:
    """54 of 80 pairs are needed, so that the 27th loss settles it; not one pair earlier."""
    even = [index % 2 == 0 for index in range(80)]
    assert taken(even) == [index for index, won in enumerate(even, 1) if not won][26]
    late = [index % 2 == 0 for index in range(52)] + [True] * 28  # 26 losses, then only wins
    found = [{"candidate": [90 if won else 100], "incumbent": [100]} for won in late[: taken(late)]]
    assert len(found) == 78
    assert decide(found, DEFAULTS).outcome == "improved"
    short = pairs.compare(sampling(1), lambda *_: 104, lambda *_: 100, "x", DEFAULTS | {"max_pairs": 3})
    assert len(short) == 3  # too few to ever improve: all are taken


def test_ending_early_takes_no_improvement_away() -> None:
    """Of any series of wins that 80 pairs would have called improved, none ends before."""
    drawn = random.Random(6)
    improved = 0
    for _ in range(400):
        odds = drawn.uniform(0.4, 0.9)
        wins = [drawn.random() < odds for _ in range(80)]
        found = [{"candidate": [90 if won else 100], "incumbent": [100]} for won in wins]
        whole = next(
            (
                verdict
                for count in range(1, 81)
                if (verdict := decide(found[:count], DEFAULTS)).outcome != "undecided"
            ),
            decide(found, DEFAULTS),
        )
        count = taken(wins)
        early = decide(found[:count], DEFAULTS)
        assert early == whole or (whole.outcome != "improved" and early.outcome == "undecided")
        improved += early.outcome == "improved"
    assert improved > 50


def test_noise_alone_is_no_improvement() -> None:
    """200 comparisons of equal sides whose samples vary by a third, as on a busy machine."""
    drawn = random.Random(4)
    improved = 0
    for seed in range(200):
        noisy = [lambda *_: 1000 + int(drawn.expovariate(1 / 100)) for _ in range(2)]
        found = pairs.compare(sampling(seed), noisy[0], noisy[1], "incumbent", DEFAULTS)
        improved += decide(found, DEFAULTS).outcome == "improved"
    assert improved <= 10  # at most one in twenty, whatever the noise


@pytest.mark.parametrize(
    ("count", "ranks"), [(1, (0, 0)), (5, (0, 4)), (6, (0, 5)), (16, (3, 12)), (24, (6, 17))]
)
def test_the_interval_of_the_median_is_that_of_the_sign_test(count: int, ranks: tuple[int, int]) -> None:
    samples = random.Random(count).sample(range(100, 200), count)
    found = Figures.of(samples)
    assert (found.low, found.high) == (sorted(samples)[ranks[0]], sorted(samples)[ranks[1]])


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    drawn = random.Random(9)
    held = 0
    for _ in range(1000):
        found = Figures.of([int(drawn.expovariate(1 / 1000)) + 1 for _ in range(24)])
        held += found.low <= 694 <= found.high  # the median is 1000 ln 2 + 1
    assert held >= 950


Round = Mapping[str, Sequence[int]]


@pytest.mark.parametrize(
    ("rounds", "taken", "published"),
    [
        ([{"a": [100, 105]}], 1, 100),
        ([{"a": [100, 150, 160]}, {"a": [100, 109]}, {"a": [90]}], 2, 100),
        (
            [{"a": [100, 150, 160]}, {"a": [90, 120, 130]}, {"a": [80, 119, 130]}, {"a": [70, 119, 130]}],
            4,
            120,
        ),
    ],
)
def test_a_final_figure_is_taken_again_while_it_spreads(
    rounds: list[Round], taken: int, published: int
) -> None:
    left = iter(rounds[1:])
    found = pairs.settled(rounds[0], lambda: next(left), lambda: False)
    assert (len(found), found[-1]["a"].median) == (taken, published)


def test_a_round_is_not_begun_when_time_is_up() -> None:
    assert len(pairs.settled({"a": [100, 200, 300]}, lambda: {"a": [1]}, lambda: True)) == 1


def test_the_rules_are_written_once() -> None:
    """Every profiler asks this module whom to compare with and when to stop; none decides by itself."""
    folder = Path(spak.validators.__file__).parent
    for name in ("cpu_profiler.py", "cpu_session.py", "cuda_timing.py", "metric.py"):
        text = (folder / name).read_text(encoding="utf-8")
        assert "import decide" not in text and "metric.decision import DEFAULTS, " not in text, name
        assert '"runner_up")' not in text and "statistics.median_low(times)" not in text, name
    users = ("cpu_profiler.py", "cuda_timing.py", "metric.py")
    assert all("pairs.RIVALS" in (folder / name).read_text(encoding="utf-8") for name in users)
