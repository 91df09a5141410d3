"""Bad input gives diagnostics, never an exception, a hang or a place outside of the text."""

from __future__ import annotations

import random
import time

import pytest

from lang_mutants import SPEC, TEXTS, judge, judge_imported, mutant, shuffled


@pytest.mark.parametrize("part", range(4))
def test_mutants_give_diagnostics(part):
    draw = random.Random(part)
    for _ in range(600):
        judge(mutant(TEXTS[part], draw))
        judge(shuffled(TEXTS[part], draw))
    for _ in range(100):
        judge_imported(mutant(TEXTS[part], draw))


def test_bytes_in_any_order_give_diagnostics():
    draw = random.Random(7)
    data = SPEC.encode()
    for _ in range(400):
        mixed = bytearray(data)
        for _ in range(draw.randint(1, 6)):
            mixed[draw.randrange(len(mixed))] = draw.randrange(256)
        judge(bytes(mixed))


@pytest.mark.parametrize(
    "text",
    [
        "}" * 262_000,
        "{" * 262_000,
        '"' * 262_000,
        "x " * 131_000,
        "; ' " * 60_000,
        "a -> b " * 37_000,
        "TASK a { " * 29_000,
        "task a { }\n" * 23_000,
        "task a { x: [" + "1," * 120_000,
        "NEXT { success -> " * 14_000,
        "step s: tool.run {}\n" * 13_000,
        "\\_" * 130_000,
        "not " * 65_000,
        "task a { success: " + "not " * 60_000 + "}",
        "task a { success: " + "a == 1 and " * 20_000 + "b == 1 }",
        "task a {" + "\n} " * 80_000,
        "task a { x: " + "{{{{" * 60_000 + "}",
        'task a { step s: tool.run { cmd: "' + "{{x}}" * 50_000 + '" } }',
        "GOAL\nGOAL\n" * 25_000,
        "TSAK a {\n" * 28_000,
        "task near { NEXT {"
        + "".join(f" fail{number} -> tsk{number}" for number in range(7000))
        + "}}"
        + "".join(f" task task{number} {{}}" for number in range(1500)),
    ],
    ids=lambda text: text[:12],
)
def test_a_quarter_megabyte_of_nonsense_is_no_hang(text):
    began = time.process_time()
    judge(text)
    assert time.process_time() - began < 50
