"""Spaces: points and their numbers, even draws, neighbours, and what is no space."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest

from spak.errors import UsageError
from spak.proposers import space as spaces

SPACE = {
    "TILE": [16, 48, 64],
    "VECS": {"range": [1, 3]},
    "WIDTH": {"log": [4, 8]},
    "MODE": ["a", "b"],
    "require": ["TILE % (VECS * WIDTH) == 0"],
}


MANY = [f"P{k}" for k in range(20)]


def naive(space: dict[str, Any]) -> list[dict[str, Any]]:
    every = itertools.product([16, 48, 64], [1, 2, 3], [4, 8], ["a", "b"])
    points = [dict(zip(("TILE", "VECS", "WIDTH", "MODE"), values, strict=True)) for values in every]
    return [point for point in points if point["TILE"] % (point["VECS"] * point["WIDTH"]) == 0]


def test_numbers_and_points_are_one_to_one() -> None:
    space = spaces.parse(SPACE)
    wanted = naive(SPACE)
    assert space.size == len(wanted)
    points = [space.point(number) for number in range(space.size)]
    assert sorted(map(repr, map(sorted, (point.items() for point in points)))) == sorted(
        map(repr, map(sorted, (point.items() for point in wanted)))
    )
    assert [space.number(point) for point in points] == list(range(space.size))


def test_the_order_of_members_means_nothing() -> None:
    turned = dict(reversed(list(SPACE.items())))
    assert spaces.parse(turned) == spaces.parse(SPACE)


@pytest.mark.findings("b10")
@pytest.mark.parametrize(
    ("bounds", "values"),
    [
        ([0.1, 0.3, 0.1], (0.1, 0.2, 0.3)),
        ([0.1, 0.7, 0.2], (0.1, 0.3, 0.5, 0.7)),
        ([0.0, 1.0, 0.1], (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)),
        ([-0.3, 0.3, 0.3], (-0.3, 0, 0.3)),
        ([1e-5, 3e-5, 1e-5], (1e-5, 2e-5, 3e-5)),
        ([1, 1.3, 0.1], (1, 1.1, 1.2, 1.3)),
        ([0.1, 0.35, 0.1], (0.1, 0.2, 0.3)),
        ([0.1, 25.6, 0.1], tuple(float(f"{k // 10}.{k % 10}") for k in range(1, 257))),
        ([2**53 - 3, 2**53 - 1, 2], (2**53 - 3, 2**53 - 1)),
    ],
)
def test_a_range_of_decimals_is_counted_in_whole_steps(
    bounds: list[float], values: tuple[float, ...]
) -> None:
    found = spaces.parse({"A": {"range": bounds}}).choices["A"]
    assert found == values
    assert all(str(one) == str(int(one) if one == int(one) else one) for one in found)
    assert spaces.parse({"A": {"range": bounds}, "require": [f"A == {values[-1]}"]}).size == 1


@pytest.mark.findings("b10")
def test_a_doubled_range_has_its_last_value_and_is_never_cut_short() -> None:
    assert spaces.parse({"A": {"log": [0.1, 0.8]}}).choices["A"] == (0.1, 0.2, 0.4, 0.8)
    assert spaces.parse({"A": {"log": [1e-5, 8e-5]}}).choices["A"] == (1e-5, 2e-5, 4e-5, 8e-5)
    with pytest.raises(UsageError, match="256"):
        spaces.parse({"A": {"log": [1e-100, 1e100]}})


def test_ranges() -> None:
    space = spaces.parse(
        {
            "a": {"range": [1, 8, 3]},
            "b": {"range": [0, 1, 0.25]},
            "c": {"log": [3, 25]},
            "d": [True, 0.5, "x"],
        }
    )
    assert space.choices == {
        "a": (1, 4, 7),
        "b": (0, 0.25, 0.5, 0.75, 1),
        "c": (3, 6, 12, 24),
        "d": (True, 0.5, "x"),
    }
    assert all(type(value) is int for value in (space.choices["b"][0], space.choices["b"][-1]))


@pytest.mark.parametrize(
    "point",
    [
        {},
        {"TILE": 48, "VECS": 3, "WIDTH": 8},
        {"TILE": 64, "VECS": 3, "WIDTH": 8, "MODE": "a"},
        {"TILE": 48, "VECS": True, "WIDTH": 8, "MODE": "a"},
        {"TILE": "48", "VECS": 1, "WIDTH": 8, "MODE": "a"},
        {"TILE": 48, "VECS": 1, "WIDTH": 8, "MODE": "a", "MORE": 1},
    ],
)
def test_other_points_have_no_number(point: dict[str, Any]) -> None:
    assert spaces.parse(SPACE).number(point) is None


def test_untried_is_even_and_ends() -> None:
    space = spaces.parse(SPACE)
    tried = frozenset(range(0, space.size, 2)) | {-5, space.size + 1}
    rng = random.Random("even")
    counts = Counter(space.untried(rng, tried) for _ in range(4000))
    assert set(counts) == {number for number in range(space.size) if number % 2}
    assert max(counts.values()) < 1.5 * min(counts.values())
    assert space.untried(rng, frozenset(range(space.size))) is None


def test_neighbours_reach_every_choice_and_stay_valid() -> None:
    space = spaces.parse(SPACE)
    here = space.number({"TILE": 64, "VECS": 2, "WIDTH": 8, "MODE": "a"})
    assert here is not None
    found = [space.point(number) for number in space.neighbours(here)]
    assert here not in space.neighbours(here)
    assert len(found) == len({tuple(point.values()) for point in found})
    for name, choices in space.choices.items():
        assert {point[name] for point in found} == set(choices)
    # VECS = 3 fits no TILE of 64: the tile moves with it, and nothing else does.
    assert [point for point in found if point["VECS"] == 3] == [
        {"MODE": "a", "TILE": 48, "VECS": 3, "WIDTH": 8}
    ]


def test_neighbours_leave_out_what_a_requirement_on_one_parameter_forbids() -> None:
    space = spaces.parse({"A": [1, 2, 3, 4], "B": ["x", "y"], "require": ["A != 3"]})
    for here in range(space.size):
        point = space.point(here)
        moved = [{**point, "A": value} for value in (1, 2, 4) if value != point["A"]]
        moved.append({**point, "B": "y" if point["B"] == "x" else "x"})
        assert [space.point(number) for number in space.neighbours(here)] == moved


def test_neighbours_of_the_largest_space_are_numbers_that_it_knows() -> None:
    space = spaces.parse({f"P{place:02}": {"range": [0, 255]} for place in range(64)})
    here = random.Random(1).randrange(space.size)
    found = space.neighbours(here)
    assert len(set(found)) == 64 * 255
    for number in (found[0], found[9_000], found[-1]):
        assert space.number(space.point(number)) == number
        assert len(set(space.point(number).items()) - set(space.point(here).items())) == 1


def test_nearest_mends_an_invalid_point() -> None:
    space = spaces.parse(SPACE)
    number = space.nearest({"TILE": 64, "VECS": 3, "WIDTH": 8, "MODE": "b"})
    point = space.point(number)
    assert point["MODE"] == "b"
    assert sum(point[name] != value for name, value in (("TILE", 64), ("VECS", 3), ("WIDTH", 8))) == 1


def test_a_large_space_costs_nothing() -> None:
    space = spaces.parse({f"P{k}": {"range": [0, 255]} for k in range(60)})
    assert space.size == 256**60
    number = space.untried(random.Random(1), frozenset())
    assert number is not None and space.number(space.point(number)) == number


@pytest.mark.parametrize(
    ("space", "word"),
    [
        ({}, "no parameter"),
        ({"require": ["1 == 1"]}, "no parameter"),
        ({"A": []}, "neither"),
        ({"A": "x"}, "neither"),
        ({"A": [[1]]}, "no number"),
        ({"A": [None]}, "no number"),
        ({"A": [1, 1]}, "twice"),
        ({"A": [1, True]}, "twice"),
        ({"A": [float("nan")]}, "JSON"),
        ({"A": [2**70]}, "JSON"),
        ({"A": {"range": [1, 9, 0]}}, "step"),
        ({"A": {"range": [0.3, 0.1, -0.1]}}, "step"),
        ({"A": {"range": [0.1, 25.7, 0.1]}}, "256"),
        ({"A": {"range": [0.3, 0.1, 0.1]}}, "no choice"),
        ({"A": {"range": [0, 10**9]}}, "256"),
        ({"A": {"range": [9, 1]}}, "no choice"),
        ({"A": {"range": [1, 2, 3, 4]}}, "neither"),
        ({"A": {"log": [0, 8]}}, "neither"),
        ({"A": {"range": [1, 2], "log": [1, 2]}}, "neither"),
        ({"not a name": [1]}, "name"),
        ({"A": list(range(300))}, "256"),
        ({f"P{k}": [1] for k in range(65)}, "64"),
        ({"A": [1], "require": "A == 1"}, "list"),
        ({"A": [1], "require": [1]}, "list"),
        ({"A": [1], "require": ["A == 1"] * 65}, "64"),
        ({"A": [1], "require": ["A == 2"]}, "meets"),
        ({"A": [1, 2], "require": ["A // 0 == 2"]}, "zero"),
        ({**{name: [1, 2] for name in MANY}, "require": [" + ".join(MANY) + " > 0"]}, "tie"),
    ],
)  # fmt: skip
def test_no_space(space: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError) as error:
        spaces.parse(space)
    assert error.value.code == "tuner.space" and error.value.hint
    assert word in error.value.message
