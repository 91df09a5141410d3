"""Costs are exact integers, rounded up per call; what is not known costs None and never nothing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.costs.prices import DEAREST, Price, Prices, load, parse
from spak.errors import UsageError

TABLE = Prices({"m": Price(3_000_000, 15_000_000, 300_000, 3_750_000), "m-*": Price(1, 1, 1, 1)})
COUNTS = st.integers(0, 10**9)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"input": 1_000_000, "output": 0}, 3_000_000_000),
        ({"input": 1000, "output": 100}, 3_000_000 + 1_500_000),
        ({"input": 1000, "output": 0, "cached": 1000}, 300_000),
        ({"input": 1000, "output": 0, "cached": 600, "cache_write": 400}, 180_000 + 1_500_000),
        ({"input": 0, "output": 0}, 0),
        ({"input": 1000}, None),
        ({}, None),
    ],
)
def test_a_call_costs_what_its_tokens_cost(usage: dict[str, int], cost: int | None) -> None:
    assert TABLE.cost("m", usage) == cost
    assert TABLE.cost("unknown", usage) is None


@given(fresh=COUNTS, cached=COUNTS, written=COUNTS, output=COUNTS, price=st.integers(0, 10**9))
def test_rounding_is_upwards_and_a_bound_is_one(
    fresh: int, cached: int, written: int, output: int, price: int
) -> None:
    table = Prices({"x": Price(price + 1, price // 3, price // 10, price)})
    whole = fresh + cached + written
    usage = {"input": whole, "output": output, "cached": cached, "cache_write": written}
    exact = Fraction(
        fresh * (price + 1) + cached * (price // 10) + written * price + output * (price // 3), 1000
    )
    cost, bound = table.cost("x", usage), table.bound("x", whole, output)
    assert cost is not None and bound is not None
    assert min(exact, Fraction(DEAREST)) <= cost < exact + 1
    assert cost <= bound


def test_the_longest_name_that_fits_counts() -> None:
    table = Prices({"a*": Price(1, 1, 1, 1), "a-b*": Price(2, 2, 2, 2), "a-b-c": Price(3, 3, 3, 3)})
    found = [table.of(name) for name in ("a", "a-x", "a-b-2026", "a-b-c", "b")]
    assert [price.input if price else None for price in found] == [1, 1, 2, 3, None]


def test_the_shipped_table_is_whole_and_the_users_goes_before_it(tmp_path: Path) -> None:
    shipped = load()
    haiku = shipped.of("claude-haiku-4-5-20251001")
    assert haiku == Price(1_000_000, 5_000_000, 100_000, 1_250_000)
    own = tmp_path / "prices.toml"
    own.write_text('["claude-haiku-4-5*"]\ninput = 7\noutput = 8\n')
    mine = load(own)
    assert mine.of("claude-haiku-4-5") == Price(7, 8, 7, 7)
    assert mine.of("gpt-4o") == shipped.of("gpt-4o")


@pytest.mark.parametrize(
    "text",
    [
        "[m]\ninput = 1.5\noutput = 2\n",
        "[m]\ninput = 1\n",
        "[m]\ninput = -1\noutput = 2\n",
        "[m]\ninput = true\noutput = 2\n",
        "[m]\ninput = 1\noutput = 2\ndiscount = 3\n",
        "[m]\ninput = 1\noutput = 9999999999999\n",
        "m = 3\n",
        "[m\n",
        f"m = {'9' * 5000}\n",
        f"m = {'[' * 3000}{']' * 3000}\n",
    ],
)
def test_a_price_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "prices.toml")
    assert caught.value.code == "usage.config" and "prices.toml" in caught.value.message


def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.toml", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            load(path)
