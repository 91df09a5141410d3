"""Brace expansion, as far as a shell is certain to make the same words."""

from __future__ import annotations

import pytest

from spak.commandline.words import braces

MADE = {
    "a{b,c}d": ["abd", "acd"],
    "{b..a}": ["a", "b"],
    "{3..1}": ["1", "2", "3"],
    "{08..10}": ["08", "09", "10"],
    "{a}": ["{a}"],
}
UNCERTAIN = [
    "x{1..900}y",
    "{a..3}",
    "{3..a}",
    "{a..C}",
    "{-900..1}",
    "{1..2000}",
    "{1..9}{1..9}",
    "{1..2..3}",
]


@pytest.mark.parametrize("text", MADE)
def test_words_that_braces_make(text: str) -> None:
    assert braces(text) == MADE[text]


@pytest.mark.parametrize("text", UNCERTAIN)
def test_braces_that_are_not_certain_make_nothing(text: str) -> None:
    assert braces(text) is None
