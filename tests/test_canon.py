"""Canonical bytes against the reference implementation, and what is refused."""

from __future__ import annotations

import enum
import json
import math
import random
import struct
from types import MappingProxyType
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from spak import canon
from spak.errors import UserError

NAMES = st.text(st.characters(min_codepoint=0, max_codepoint=127), max_size=8)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INTEGERS = st.integers(-canon.MAX_INT, canon.MAX_INT)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | DOUBLES | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)


def _doubles(count: int) -> list[float]:
    """Doubles of every magnitude: random bit patterns, neighbours of powers of ten and two, integers."""
    draw = random.Random(8785)
    found: list[float] = [0.0, -0.0, 5e-324, 1.7976931348623157e308, 2.0**53, 2.0**53 - 1, 1e21, 1e-7, 1e16]
    for power in range(-30, 30):
        for base in (10.0**power, 2.0**power):
            found += [base, -base, math.nextafter(base, 0.0), math.nextafter(base, math.inf)]
    while len(found) < count:
        (value,) = struct.unpack("<d", draw.randbytes(8))
        if math.isfinite(value):
            found.append(value)
        found.append(draw.uniform(-1e6, 1e6))
        found.append(float(draw.randrange(-(2**60), 2**60)))
    return found


def test_doubles_are_written_as_the_reference_writes_them() -> None:
    doubles = _doubles(12_000)
    wrong = [value for value in doubles if canon.dumps(value) != rfc8785.dumps(value)]
    assert wrong == []
    assert canon.dumps(doubles[:1000]) == rfc8785.dumps(doubles[:1000])


def test_doubles_come_back_as_the_same_number() -> None:
    for value in _doubles(12_000):
        back = canon.loads(canon.dumps(value))
        assert back == value
        assert canon.dumps(back) == canon.dumps(value)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_values_are_written_as_the_reference_writes_them(value: Any) -> None:
    assert canon.dumps(value) == rfc8785.dumps(value)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_a_second_round_trip_changes_nothing(value: Any) -> None:
    once = canon.dumps(value)
    back = canon.loads(once)
    assert canon.dumps(back) == once
    assert back == json.loads(once, parse_int=float)


@given(st.lists(INTEGERS | DOUBLES), st.text(st.sampled_from("0123456789"), max_size=40))
def test_digits_in_text_do_not_disturb_numbers(numbers: list[Any], digits: str) -> None:
    assert canon.loads(canon.dumps({"n": numbers, "t": digits})) == {"n": numbers, "t": digits}


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        2**53,
        -(2**53),
        2**70,
        "\ud800",
        "a\udfffb",
        b"bytes",
        {1, 2},
        object(),
        1j,
        {"é": 1},
        {"\ud800": 1},
        {1: 2},
        {None: 2},
    ],
    ids=lambda value: "object" if type(value) is object else repr(value),
)
@pytest.mark.parametrize("place", ["alone", "list", "member", "deep"])
def test_refuses_what_has_no_canonical_form(value: Any, place: str) -> None:
    wrapped = {"alone": value, "list": [1, value], "member": {"a": value}, "deep": [{"a": ({"b": value},)}]}
    with pytest.raises(UserError) as caught:
        canon.dumps(wrapped[place])
    assert caught.value.code == "canon.value"


def test_refuses_nesting_without_end() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(UserError, match=r"deep|Recursion"):
        canon.dumps(value)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"nul", b"NaN", b"1e400", b'"\xff"', b'"\\ud800"', b"[" * 5000, "\ud800", b"1 2"]
)
def test_refuses_what_is_not_json(text: bytes | str) -> None:
    with pytest.raises(UserError) as caught:
        canon.loads(text)
    assert caught.value.code == "canon.text"


def test_integers_beyond_the_range_come_back_as_the_doubles_they_were() -> None:
    back = canon.loads(canon.dumps([2.0**53, {"deep": -(2.0**60)}, 12]))
    assert back == [2.0**53, {"deep": -(2.0**60)}, 12]
    assert [type(item) for item in (back[0], back[1]["deep"], back[2])] == [float, float, int]


def test_kinds_of_text_and_mappings_are_written_as_what_they_stand_for() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    value = {"colour": Colour.RED, "frozen": MappingProxyType({"b": 1, "a": (1.5, Colour.RED)})}
    assert canon.dumps(value) == b'{"colour":"red","frozen":{"a":[1.5,"red"],"b":1}}'


def test_digest_is_43_characters_of_base64url() -> None:
    assert canon.digest(b"") == "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    assert canon.content_hash({"b": 1, "a": 2.0}) == canon.digest(b'{"a":2,"b":1}')
