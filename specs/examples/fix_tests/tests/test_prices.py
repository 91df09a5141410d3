import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prices import total


def test_a_basket():
    assert total([(250, 2), (100, 1)]) == 600


def test_a_discount_is_in_percent():
    assert total([(1000, 1)], discount=10) == 900


def test_cents_are_whole():
    assert total([(99, 1)], discount=50) == 50
