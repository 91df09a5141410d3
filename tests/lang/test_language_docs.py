"""docs/language.md is right: its examples compile, every setting and keyword stands in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spak import config, program
from spak.lang import check, parse, reference
from spak.lang.imports import resolve
from spak.lang.parser.automaton import tables
from spak.lang.parser.build import Builder
from spak.lang.parser.generate import GRAMMAR
from spak.lang.parser.generate import KEYWORDS as WORDS
from spak.lang.schema import ANNOTATIONS, KEYWORDS
from spak.lang.settings import GRAMMAR_VERSION, TABLE, TRIGGERS

DOC = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
EXAMPLES = re.findall(r"```spak\n(.*?)```", DOC, re.DOTALL)
FILES = dict(re.findall(r"```spak file=(\S+)\n(.*?)```", DOC, re.DOTALL))
NEVER_SHOWN = {
    "agent",
    "colon_string",
    "bare_step",
    "bare_check",
    "empty_list",
    "empty_call",
    "default_entry",
}
"""Rules for what is legal and better written otherwise: the forms that the examples show mean the same."""


def read(path: str) -> bytes | None:
    return FILES[path].encode() if path in FILES else None


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_compile_without_a_finding(text):
    whole = resolve(parse(text), read).parsed
    catalog = config.catalog()
    assert [item.message for item in check(whole, catalog)] == []
    assert program.compile(whole, catalog, {}).tasks


def test_every_construct_has_an_example(monkeypatch):
    """Every rule of the grammar that builds something is used by some example."""
    used: set[str] = set()
    actions = Builder.actions

    def recording(self, names):
        def record(name, action):
            return lambda kids, at: (used.add(name), action(kids, at))[1]

        return [
            action and record(name, action) for name, action in zip(names, actions(self, names), strict=True)
        ]

    monkeypatch.setattr(Builder, "actions", recording)
    for text in (*EXAMPLES, *FILES.values()):
        assert parse(text).ok
    unused = {name for name in tables().builders if name} - used - NEVER_SHOWN
    assert not unused, sorted(unused)


def test_the_generated_parts_are_fresh():
    assert reference.filled(DOC) == DOC, "run python -m spak.lang.reference"
    assert set(re.findall(r"<!-- made: (\w+) -->", DOC)) == set(reference.blocks())


def test_every_trigger_of_a_validator_is_described():
    given = {trigger for entry in config.catalog().validators.values() for trigger in entry.triggers}
    assert given <= set(TRIGGERS)


@pytest.mark.parametrize("setting", TABLE, ids=lambda item: f"{item.where}-{item.key}")
def test_every_setting_has_its_row(setting):
    assert f"| `{setting.key}` | {setting.about} |" in DOC
    assert f"| `{setting.example}` | {setting.since} |" in DOC


@pytest.mark.parametrize("word", sorted({*WORDS, *KEYWORDS, *ANNOTATIONS}))
def test_every_word_is_named(word):
    assert re.search(rf"\b{word}\b", DOC, re.IGNORECASE)


def test_the_grammar_has_its_version():
    assert f"version {GRAMMAR_VERSION} of the grammar" in DOC
    assert f"Grammar version: {GRAMMAR_VERSION}." in GRAMMAR.read_text()
