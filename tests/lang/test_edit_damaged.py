"""Damaged texts before the formatter, the edits and the comparison: typed errors, and nothing half done."""

from __future__ import annotations

import json
import random

import pytest

from spak.errors import EditRefused, SpecError
from spak.lang import parse
from spak.lang.diff import compare, show
from spak.lang.edit import apply
from spak.lang.format import format_text
from spec_gen import damaged, some_op, spec_text


def judge(draw: random.Random) -> bool:
    """False when the text was too damaged to be edited."""
    whole = spec_text(draw, 0.1)
    text = damaged(draw, whole)
    made = format_text(text)
    assert made.ok or made.diagnostics
    if not made.ok and text.isascii():
        assert made.text == text
    parsed = parse(text)
    found = compare(parse(whole), parsed)
    assert found.equal == (parse(whole).spec.hash == parsed.spec.hash)
    json.dumps(found.to_json())
    assert show(found)
    op = some_op(draw, parsed.spec)
    try:
        done = apply(parsed, op)
    except SpecError:
        assert not parsed.ok
        return False
    except EditRefused as error:
        assert error.code.startswith("edit.")
        return True
    assert apply(done.text, done.inverse).text == parsed.text
    assert parse(done.text).ok
    return True


def test_damaged_texts_are_told():
    draw = random.Random(5)
    results = [judge(draw) for _ in range(500)]
    assert set(results) == {True, False}


@pytest.mark.slow
@pytest.mark.fuzz
def test_thousands_of_damaged_texts_are_told():
    draw = random.Random(6)
    for _ in range(8000):
        judge(draw)
