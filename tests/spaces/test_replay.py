"""Searches on a measured space: the points that the tuner would propose, and the published comparison."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from bench import strategies_figures as figures
from bench.bench_strategies import SEEDS, interval, slower, spaces
from bench.space_replay import evaluations, search
from spak.ports import PlanRequest, Trial
from spak.proposers import space as parsing
from spak.proposers.history import Observation
from spak.proposers.strategies import STRATEGIES, Search
from spak.proposers.tuner import DEFAULTS, Tuner
from spak.spaces import Cache, Header, Row
from spak.spaces.cache import Source

SPACE: dict[str, Any] = {"X": {"range": [0, 7]}, "Y": [1, 2, 4, 8], "Z": ["a", "b", "c"]}


def tiny(scale: int = 1) -> Cache:
    """96 points, of which a tenth fail; the best is X = 5, Y = 4, Z = b."""
    space = parsing.parse(SPACE)
    rows = []
    for number in range(space.size):
        point = space.point(number)
        x, y = int(point["X"]), math.log2(int(point["Y"]))
        time = 1000 * scale * (10 + (x - 5) ** 2 + 3 * (y - 2) ** 2 + 4 * (point["Z"] != "b"))
        failed = x == 7 and point["Z"] == "a"
        rows.append(
            Row(number, point, "wrong", "incorrect")
            if failed
            else Row(number, point, "ok", median_ns=int(time))
        )
    source = Source.of("own.py", b"")
    return Cache(Header(source, source, SPACE, space.size, 1, "", "", "", {}), rows, space)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_search_tries_what_the_tuner_proposes(strategy: str) -> None:
    cache, trials = tiny(), list[Trial]()
    tried = search(cache, STRATEGIES[strategy], 3, 15)
    for row in tried:
        options = {"tool": "t", "strategy": strategy}
        request = PlanRequest("p", "t", "s", len(trials), 3, options, SPACE, {}, tuple(trials))
        assert Tuner().propose(request)[0].params == row.params
        ok = row.outcome == "ok"
        trials.append(Trial({}, row.params, "measured" if ok else "fail", row.median_ns if ok else None))


def test_it_ends_with_the_first_good_point() -> None:
    cache = tiny()
    tried = search(cache, STRATEGIES["bayes"], 1, 96, 10_000)
    assert evaluations(tried, 10_000) == len(tried) and tried[-1].params == {"X": 5, "Y": 4, "Z": "b"}
    assert evaluations(tried[:-1], 10_000) is None
    assert len(search(cache, STRATEGIES["random"], 1, 200)) == 96


def test_a_prior_of_another_size_finds_it_sooner() -> None:
    """The same space at three times the size: the order of its points is what a prior tells."""
    small, large = tiny(), tiny(3)
    with_prior, without = 0, 0
    for seed in range(10):
        first = search(small, STRATEGIES["bayes"], seed, 20)
        prior = tuple(
            Observation(row.number, math.log(row.median_ns) if row.outcome == "ok" else None) for row in first
        )
        found = search(large, STRATEGIES["bayes"], seed + 50, 96, 30_000, prior)
        with_prior += len(found)
        without += len(search(large, STRATEGIES["bayes"], seed + 50, 96, 30_000))
        best = min((item for item in prior if item.loss is not None), key=lambda item: item.loss or 0.0)
        assert found[0].number == best.number
    assert with_prior < without


def test_a_prior_of_failures_alone_tells_nothing() -> None:
    cache = tiny()
    failed = tuple(Observation(row.number, None) for row in cache.rows if row.outcome != "ok")
    strategy = STRATEGIES["bayes"]
    assert search(cache, strategy, 2, 12, prior=failed) == search(cache, strategy, 2, 12)


def test_a_prior_that_covers_the_space_leaves_nothing_twice() -> None:
    cache = tiny()
    prior = tuple(Observation(row.number, 1.0) for row in cache.rows)
    tried = search(cache, STRATEGIES["bayes"], 2, 200, prior=prior)
    assert sorted(row.number for row in tried) == list(range(96))
    assert STRATEGIES["bayes"](Search(cache.space, (), (), 1, 12, random.Random(1))) is not None


def test_how_two_strategies_are_compared() -> None:
    assert slower([1, 2, 3], [1, 2, 3])[0] == 0.5
    assert slower([5, None], [1, 4])[0] == 1.0 and slower([None], [None])[0] == 0.5
    assert interval(list(range(1, 101))) == (40, 61)
    assert interval([None] * 100) == (101, 101)


def test_the_page_shows_what_was_found() -> None:
    found = figures.results()
    assert figures.page(figures.PAGE.read_text(encoding="utf-8"), found) == figures.PAGE.read_text(
        encoding="utf-8"
    )
    assert figures.PICTURE.read_text(encoding="utf-8") == figures.picture(found)
    assert all(len(seeds) == SEEDS for space in found.values() for seeds in space.values())
    assert set(found) <= set(spaces())


def test_the_default_is_best_or_within_noise_of_the_best() -> None:
    """No strategy is better by more than the interval of the comparison, on any space."""
    better = {
        (name, label)
        for name, found in figures.results().items()
        for label, seeds in found.items()
        for share, half in [slower(found[DEFAULTS["strategy"]], seeds)]
        if share - half > 0.5
    }
    assert not better
    assert "**On no space is a strategy better\nthan `bayes`" in figures.PAGE.read_text(encoding="utf-8")
