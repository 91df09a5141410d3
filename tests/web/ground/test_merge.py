"""The three-way merge, by cases and by laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.merge import BETWEEN, MINE, THEIRS, merge

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n", "}\n"]), max_size=12).map("".join)


def lines(word: str) -> str:
    return "".join(f"{letter}\n" for letter in word)


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        ("abc", "abc", "abc", "abc"),
        ("abc", "xbc", "abc", "xbc"),
        ("abc", "abc", "abx", "abx"),
        ("abcde", "xbcde", "abcdy", "xbcdy"),
        ("abc", "axc", "axc", "axc"),
        ("abcde", "bcde", "abcd", "bcd"),
        ("", "a", "a", "a"),
        ("abcde", "abXcde", "abcdYe", "abXcdYe"),
    ],
)
def test_clean(base: str, mine: str, theirs: str, merged: str) -> None:
    found = merge(lines(base), lines(mine), lines(theirs))
    assert found.clean
    assert found.text == lines(merged)


@pytest.mark.parametrize(
    ("base", "mine", "theirs"),
    [("abc", "axc", "ayc"), ("abc", "ac", "ayc"), ("", "x", "y"), ("ab", "xb", "ay"), ("abc", "", "abx")],
)
def test_conflicts_keep_both_sides(base: str, mine: str, theirs: str) -> None:
    found = merge(lines(base), lines(mine), lines(theirs))
    assert found.conflicts == 1
    assert found.text.count(MINE) == found.text.count(BETWEEN) == found.text.count(THEIRS) == 1


def test_a_marker_begins_its_own_line() -> None:
    assert merge("a", "b", "c").text == f"{MINE}\nb\n{BETWEEN}\nc\n{THEIRS}\n"


@given(LINES, LINES)
def test_one_side_alone_is_taken(base: str, mine: str) -> None:
    assert merge(base, mine, base).text == mine
    assert merge(base, base, mine).text == mine
    assert merge(base, mine, mine).text == mine
    assert merge(base, mine, base).clean


@given(LINES, LINES, LINES)
def test_nothing_of_either_side_is_lost(base: str, mine: str, theirs: str) -> None:
    """Each side can be put together again from the parts that it had a say in."""
    found = merge(base, mine, theirs)
    other = merge(base, theirs, mine)
    assert found.conflicts == other.conflicts
    if found.clean:
        assert found.text == other.text
    ours = "".join("".join(part.mine) for part in found.parts if part.conflict)
    assert all(line in mine for line in ours.splitlines(keepends=True))
    for line in set(mine.splitlines()) - set(base.splitlines()):
        assert line in found.text
    for line in set(theirs.splitlines()) - set(base.splitlines()):
        assert line in found.text
