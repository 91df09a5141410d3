"""The long walk over broken specs: a hundred thousand mutants, in parts that run side by side.

Each part is seeded by its number, so that a failure can be had again: the text is in the assertion's frame.
`make fuzz` runs it; `make test` has a sample (tests/lang/test_mutants.py).
"""

from __future__ import annotations

import random

import pytest

from lang_mutants import corpus, judge, judge_imported, mutant, shuffled

MUTANTS = 100_000
PARTS = 25


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_mutants_give_diagnostics_and_nothing_else(part: int) -> None:
    draw = random.Random(f"language {part}")
    texts = corpus()
    for number in range(MUTANTS // PARTS):
        text = draw.choice(texts)
        match number % 8:
            case 0:
                data = bytearray(text.encode())
                for _ in range(draw.randint(1, 6)):
                    data[draw.randrange(len(data))] = draw.randrange(256)
                judge(bytes(data))
            case 1 | 2:
                judge(shuffled(text, draw))
            case 3:
                judge_imported(mutant(text, draw))
            case _:
                judge(mutant(text, draw))
