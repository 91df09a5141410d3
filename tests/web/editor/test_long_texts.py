"""Long texts of few different lines are merged and compared in bounded steps, as exactly as short ones."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak import merge as merging
from spak.merge import merge, opcodes
from spakweb.work.specs.show import side_by_side

LINES = st.lists(st.sampled_from(["a\n", "b\n", "{\n", "\n"]), max_size=12)
MANY = 50_000


@given(LINES, LINES)
def test_what_is_said_to_differ_makes_one_of_the_other(old: list[str], new: list[str]) -> None:
    makes_one_of_the_other(old, new)


@given(st.lists(st.integers(0, 30).map("{}\n".format), max_size=30), st.data())
def test_texts_that_are_divided_at_lines_that_each_has_once(old: list[str], data: st.DataObject) -> None:
    new = list(old)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(new)))
        new[at : at + data.draw(st.integers(0, 5))] = data.draw(LINES)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(merging, "FEW_PAIRS", 0)
        makes_one_of_the_other(old, new)
        makes_one_of_the_other(old, data.draw(st.permutations(old)))


def makes_one_of_the_other(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    at = 0
    for tag, a, b, c, d in opcodes(old, new):
        assert (a, c) == (at, len(made))
        if tag == "equal":
            assert old[a:b] == new[c:d]
        made += new[c:d]
        at = b
    assert made == new and at == len(old)
    best = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    if all(tag == "equal" for tag, *_ in best):
        assert all(tag == "equal" for tag, *_ in opcodes(old, new))


@pytest.mark.parametrize("one", [[], ["a\n"]])
@pytest.mark.parametrize("two", [[], ["a\n"], ["b\n"]])
def test_a_line_between_lines_that_stay_is_compared_as_difflib_does(one: list[str], two: list[str]) -> None:
    old, new = ["x\n", *one, "y\n"], ["x\n", *two, "y\n"]
    assert opcodes(old, new) == SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


@pytest.mark.parametrize("line", ["\n", "  }\n", "// same\n"])
def test_a_hundred_thousand_like_lines_are_merged(line: str) -> None:
    base = line * MANY * 2
    half = line * MANY
    made = merge(base, "// mine\n" + base, half + "// theirs\n" + half)
    assert made.clean
    assert made.text == "// mine\n" + half + "// theirs\n" + half


def test_texts_that_share_nothing_but_like_lines_are_compared() -> None:
    old = "".join(f"{number % 7}\n" for number in range(MANY))
    new = "".join(f"{number % 5}\n" for number in range(MANY))
    assert len(side_by_side(old, new)) > MANY - 10
    assert merge(old, new, "x\n").conflicts == 1
