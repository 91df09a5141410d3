"""Requirements: what they compute, and that hostile text is refused before anything runs."""

from __future__ import annotations

import pytest

from spak.errors import UsageError
from spak.proposers.expression import requirement

POINT = {"A": 8, "B": 3, "C": "DOT", "F": True, "X": 0.5}
NAMES = frozenset(POINT)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A % B == 2", True),
        ("A // B * B + A % B == A", True),
        ("-B < 0", True),
        ("C == 'DOT' and A >= 8", True),
        ("not (C != 'DOT') or B > 5", True),
        ("1 < B < 3", False),
        ("B in [1, 3, 5] and C not in ('DOT', 'X')", False),
        ("C == 3", False),
        ("F and X < 1", True),
        ("  A == 8 ", True),
    ],
)
def test_value(text: str, wanted: bool) -> None:
    assert requirement(text, NAMES).holds(POINT) is wanted


def test_names_are_those_used() -> None:
    assert requirement("A % B == 0 or C == 'DOT'", NAMES).names == {"A", "B", "C"}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('id')",
        "A.__class__",
        "(lambda: 1)()",
        "[x for x in (1, 2)]",
        "A[0] == 1",
        "A ** 999999 > 0",
        "A << 99999 > 0",
        "A if B else C",
        "(A := 1) == 1",
        "f'{A}' == '8'",
        "{1: 2} == A",
        "*A",
        "None == A",
        "b'x' == A",
        "1j == A",
        "...",
        "UNKNOWN > 1",
        "A >",
        "A; B",
        "A = 1",
        "",
        "(" * 240 + "1" + ")" * 240,
        "-" * 499 + "A",
        "+".join(["A"] * 120) + " > 0",
        "A == " + "1" * 600,
        "\x00A == 1",
    ],
)
def test_refused_as_it_is_read(text: str) -> None:
    with pytest.raises(UsageError) as error:
        requirement(text, NAMES)
    assert error.value.code == "tuner.space" and error.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "A + B",
        "A // (B - 3) == 1",
        "A % 0 == 1",
        "'a' * A == 'b'",
        "'%d' % A == '8'",
        "C < 3",
        "not A",
        "A and B",
        "A in C",
        "[A] == [A]",
        "F + 1 == 2",
        "*".join(["A"] * 30) + " > 0",
        "9e999 > 1",
    ],
)
def test_refused_as_it_is_computed(text: str) -> None:
    with pytest.raises(UsageError) as error:
        requirement(text, NAMES).holds(POINT)
    assert error.value.code == "tuner.space" and text[:20] in error.value.message
