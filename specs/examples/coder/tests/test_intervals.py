import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from intervals import merge


def test_nothing_merges_to_nothing():
    assert merge([]) == []


def test_one_stays():
    assert merge([(1, 3)]) == [(1, 3)]


def test_apart_stay_apart_and_are_sorted():
    assert merge([(5, 6), (1, 2)]) == [(1, 2), (5, 6)]


def test_overlapping_become_one():
    assert merge([(1, 4), (2, 6), (8, 9)]) == [(1, 6), (8, 9)]


def test_touching_become_one():
    assert merge([(1, 2), (2, 3)]) == [(1, 3)]


def test_one_inside_another_changes_nothing():
    assert merge([(1, 9), (3, 4)]) == [(1, 9)]


def test_the_argument_is_left_alone():
    given = [(5, 6), (1, 2)]
    merge(given)
    assert given == [(5, 6), (1, 2)]
