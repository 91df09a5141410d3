"""Bad input gives diagnostics, never an exception, a hang or a place outside of the text."""

from __future__ import annotations

import random
import time

import pytest

from lang_catalog import CATALOG, SEED_000, SEED_002, unescaped
from spak import program
from spak.errors import SpecError
from spak.lang import check, parse, render
from spak.lang.diagnostics import LIMIT, Severity, apply_fix

SPEC = '''
AGENT Tuner LEVEL 5 {
  CONFIG { MODE full_auto, BUDGET { steps: 200, elapsed_s: 240 } PROPOSER tuner { strategy: tpe, tool: cc } }
  INPUTS { n: int = 512, kind: enum("a", "b") = "a" }
  SYSTEM_MODEL M { AXIOM "a" CHECK lint { x: 1 } HEURISTIC "b" WHEN fail PREDICTION "c" }
  START -> one  # comment
  TASK one {
    GOAL """
      Make {{input.kind}} fast.
    """
    TOOLS [cc, run] VALIDATOR CpuProfiler { binary: "a.out", warmup: 3 }
    SPACE { tile: [8, 16], unroll: range(1, 8, 2), lr: log(1e-4, 1.0), require: ["tile > 2"] }
    RULE { margin_percent: 1 patience: 4 }
    NEXT { metric_improved -> one, plateau -> two, fail -> one }
  }
  TASK two {
    step s1: tool.run { cmd: "echo '{{input.n}}' x" output_var: out on_fail: stop }
    step s2: llm.query { role: "coder" prompt: "see {{out}} {{axiom.1}} {{best.source}}" output_var: text }
    step s3: tool.run { cmd: text }
    evaluation { check lint: tool.run { cmd: "ruff check" } }
    success: file_exists("x") and not (exit_code(s1) != 0 or lint > 3)
    file_contains("x", "{{out}}")
    invariant: file_exists("y")
  }
}
'''
TEXTS = (unescaped(SEED_000), SEED_000, SEED_002, SPEC)
SPLINTERS = (
    *'{}[]()",:=.#-><\\\n\t\0\ufeff;é\u202eа',
    *("TASK", "task x {", "step", "NEXT {", "->", '"""', "//", "success:", "{{", "}}", "not", "and", "1e999"),
    *("9" * 30, "GOAL", "VALIDATOR\n", "{" * 70, "```\n", "\r\n", "\\_", "𝔸", "START ->", "CHECK", "BUDGET"),
)


def mutant(text: str, draw: random.Random) -> str:
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(text) + 1)
        end = min(len(text), at + draw.choice((0, 1, 2, 5, 40)))
        other = draw.choice(TEXTS)
        cut = draw.randrange(len(other))
        new = draw.choice(
            (
                draw.choice(SPLINTERS),
                other[cut : cut + draw.randint(0, 60)],
                "",
                chr(draw.randrange(1, 0xD000)),
            )
        )
        text = text[:at] + new + text[end:]
    return text


def judge(text: str | bytes) -> None:
    parsed = parse(text, "x")
    found = check(parsed, CATALOG)
    assert len(found) <= LIMIT
    for item in found:
        assert 0 <= item.start <= item.end <= len(parsed.text)
        assert item.line >= 1
        assert item.column >= 1
        assert item.message
        render(item, parsed.text, "x")
        if item.fix:
            apply_fix(parsed.text, item.fix)
    errors = [item for item in found if item.severity == Severity.ERROR]
    try:
        made = program.compile(parsed, CATALOG, {})
    except SpecError as error:
        assert error.code == "lang.input" or errors
    else:
        assert not errors
        assert made.start in made.tasks


@pytest.mark.parametrize("part", range(4))
def test_mutants_give_diagnostics(part):
    draw = random.Random(part)
    for _ in range(900):
        judge(mutant(TEXTS[part], draw))


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
    ],
    ids=lambda text: text[:12],
)
def test_a_quarter_megabyte_of_nonsense_is_no_hang(text):
    began = time.process_time()
    judge(text)
    assert time.process_time() - began < 5
