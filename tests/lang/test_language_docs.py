"""docs/language.md is right: its examples compile, every setting and keyword stands in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lang_catalog import CATALOG
from spak import program
from spak.lang import check, parse
from spak.lang.schema import ANNOTATIONS, KEYWORDS
from spak.lang.settings import GRAMMAR_VERSION, TABLE
from spak.lang.tables import KEYWORDS as WORDS

DOC = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
EXAMPLES = re.findall(r"```spak\n(.*?)```", DOC, re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_compile_without_a_finding(text):
    assert [item.message for item in check(parse(text), CATALOG)] == []
    assert program.compile(parse(text), CATALOG, {}).tasks


@pytest.mark.parametrize("setting", TABLE, ids=lambda item: f"{item.where}-{item.key}")
def test_every_setting_has_its_row(setting):
    assert f"| `{setting.key}` | {setting.about} |" in DOC
    assert f"| `{setting.example}` | {setting.since} |" in DOC


@pytest.mark.parametrize("word", sorted({*WORDS, *KEYWORDS, *ANNOTATIONS}))
def test_every_word_is_named(word):
    assert re.search(rf"\b{word}\b", DOC, re.IGNORECASE)


def test_the_grammar_has_its_version():
    assert f"version {GRAMMAR_VERSION})" in DOC
