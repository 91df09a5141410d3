"""Every feature on mutated specs: no exception, and no place outside of the text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lang_catalog import CATALOG
from spak.lang import parse
from spak.lang.features import (
    View,
    complete,
    definition,
    folds,
    hover,
    marks,
    occurrences,
    prepare_rename,
    references,
    rename,
    symbols,
)

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "specs" / "examples").glob("*.spak"))
PIECES = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    '"',
    '"""',
    "{{",
    "}}",
    "->",
    ":",
    "=",
    ",",
    "//",
    "#",
    "\n",
    "\r\n",
    "\\",
]
PIECES += [
    "TASK",
    "task",
    "NEXT",
    "step",
    "AGENT",
    "SYSTEM_MODEL",
    "CHECK",
    "WHEN",
    "success:",
    "\U0001d54f",
    "\0",
    "'",
]


def mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(text) + 1)
        match chance.randrange(3):
            case 0:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + chance.randrange(1, 30) :]
            case _:
                other = chance.randrange(len(text) + 1)
                text = text[:at] + text[other : other + chance.randrange(1, 60)] + text[at:]
    return text


def everything(text: str, chance: random.Random, places: int) -> None:
    view = View(parse(text), CATALOG)
    size = len(view.text)
    names = occurrences(view)
    spans = [(item.start, item.end) for found in (names, folds(view), marks(view)) for item in found]
    queue = list(symbols(view))
    while queue:
        item = queue.pop()
        assert item.start <= item.name_start <= item.name_end <= item.end
        spans.append((item.start, item.end))
        queue += item.children
    offsets = [chance.randrange(size + 1) for _ in range(places)]
    offsets += [item.start for item in chance.sample(names, min(2, len(names)))]
    for offset in offsets:
        spans += [(item.start, item.end) for item in complete(view, offset)]
        found = hover(view, offset)
        spans += [(found.start, found.end)] if found is not None else []
        spans += [(item.start, item.end) for item in (*definition(view, offset), *references(view, offset))]
        place = prepare_rename(view, offset)
        if place is not None:
            assert place.start <= offset <= place.end
            spans += [edit[:2] for edit in rename(view, offset, "a_new_name").edits]
    assert all(0 <= start <= end <= size for start, end in spans)


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_spec_is_answered(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        everything(mutated(chance.choice(EXAMPLES).read_text(), chance), chance, 6)


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_many_mutated_specs_are_answered(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(400):
        everything(mutated(chance.choice(EXAMPLES).read_text(), chance), chance, 12)
