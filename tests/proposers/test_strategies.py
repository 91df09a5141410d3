"""The strategies on recorded timings of the attention kernel: what they find, and how soon."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from spak.ports import PlanRequest, Trial
from spak.proposers import space as spaces
from spak.proposers.history import Observation
from spak.proposers.strategies import bayes
from spak.proposers.strategies.search import Search
from spak.proposers.tuner import Tuner

DATA = json.loads((Path(__file__).parent / "attention_times.json").read_text())
SPACE: Mapping[str, Any] = DATA["space"]
PARSED = spaces.parse(SPACE)


def recorded() -> dict[int, int]:
    """The microseconds of each point, by its number."""
    names = [name for name in SPACE if name != "require"]
    points = (
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(SPACE[name] for name in names))
    )
    numbers = [number for point in points if (number := PARSED.number(point)) is not None]
    return dict(zip(numbers, DATA["us"], strict=True))


TIMES = recorded()
BEST = min(TIMES.values())


def search(strategy: str, seed: int, evaluations: int) -> list[int]:
    trials: list[Trial] = []
    options = {"tool": "instantiate", "strategy": strategy}
    for turn in range(evaluations):
        request = PlanRequest("p", "t", "s", turn, seed, options, SPACE, {}, tuple(trials))
        params = Tuner().propose(request)[0].params
        number = PARSED.number(params)
        assert number is not None
        trials.append(Trial({}, params, "measured", float(TIMES[number])))
    return [int(trial.value or 0) for trial in trials]


def within(times: list[int], factor: float) -> int:
    """Evaluations until a time within the factor of the best; one more than were made when there is none."""
    return next((k + 1 for k, time in enumerate(times) if time <= BEST * factor), len(times) + 1)


def test_the_table_covers_the_space_and_is_hard() -> None:
    assert len(TIMES) == PARSED.size == 2304
    assert sum(time <= 1.05 * BEST for time in TIMES.values()) <= 0.01 * len(TIMES)
    assert sum(time <= 1.20 * BEST for time in TIMES.values()) <= 0.02 * len(TIMES)


def test_the_default_finds_it_within_sixty_evaluations() -> None:
    runs = [search("bayes", seed, 60) for seed in range(8)]
    assert median(within(times, 1.05) for times in runs) <= 30
    assert all(within(times, 1.20) <= 60 for times in runs)
    assert all(DATA["naive_us"] >= 20 * min(times) for times in runs)


def test_climbing_beats_chance() -> None:
    found = [min(search("climb", seed, 60)) for seed in range(10)]
    chance = [min(search("random", seed, 60)) for seed in range(60)]
    assert median(found) < median(chance)


def test_a_long_search_is_modelled_by_its_best_and_its_latest_points() -> None:
    seen = [Observation(number, float(number % 97)) for number in range(500)]
    kept = bayes._recalled(seen, bayes._by_loss(seen))
    assert len(kept) <= bayes.RECALLED and kept[-1] == seen[-1]
    assert {item.loss for item in kept[:5]} <= {float(loss) for loss in range(13)}
    assert [item.number for item in kept] == sorted(item.number for item in kept)


def test_scores_stand_by_rank_and_failures_last() -> None:
    seen = [Observation(0, 1e9), Observation(1, None), Observation(2, -1e9), Observation(3, 1e9)]
    found = bayes.scores(seen)
    assert found[2] < found[0] == found[3] < found[1]
    assert all(map(math.isfinite, found)) and all(map(math.isfinite, bayes.scores([Observation(0, None)])))


def test_more_is_expected_beside_the_best_point_than_at_a_point_that_was_seen() -> None:
    """Measured again a point improves on nothing; its neighbours may."""
    seen = [Observation(number, float(TIMES[number])) for number in (0, 700, 1400)]
    process = bayes._Process(PARSED, seen, None)
    best = min(seen, key=lambda item: item.loss or 0.0).number
    at_seen = max(process.improvement(item.number) for item in seen)
    assert all(process.improvement(number) > at_seen for number in PARSED.neighbours(best))


def test_a_draw_of_a_huge_space_judges_so_many_points_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []
    monkeypatch.setattr(bayes._Process, "improvement", lambda process, number: judged.append(number) or 0.0)
    huge = spaces.parse({f"P{place}": {"range": [0, 255]} for place in range(12)})
    seen = (Observation(0, 1.0),)
    assert bayes.draw(Search(huge, seen, (), 1, 1, random.Random(1))) == judged[0]
    assert len(judged) == len(set(judged)) == bayes.POOL


def test_a_draw_of_many_parameters_judges_no_more_points_than_it_has_time_for() -> None:
    largest = spaces.parse({f"P{place:02}": {"range": [0, 255]} for place in range(64)})
    for points in (1, 20, 120):
        count = bayes.judged(largest, points)
        assert 1 <= count <= bayes.POOL and count * points * (64 + points) <= bayes.WORK
    assert bayes.judged(PARSED, bayes.RECALLED) > 117, "the largest pool of a measured space"


def test_the_covariance_of_two_choices_falls_with_what_lies_between_them() -> None:
    line = bayes._line(range(256), 1.0)
    assert len(line) == 511 and all(line[-places] == line[places] for places in range(1, 256))
    assert line[:256] == sorted(line[:256], reverse=True) and line[255] == math.exp(-1)
    assert bayes._line(("a", "b", "c"), 1.0) == [1.0, *[math.exp(-1)] * 4]
    assert bayes._line((True,), 1.0) == [1.0]
