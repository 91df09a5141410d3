"""Mutants of specs and what must hold for every one of them; shared by the quick tests and `make fuzz`.

`mutant` breaks a text by characters, by splinters of other specs, or by tokens; `judge` parses, checks,
compiles and formats it: findings and refusals, and nothing else, with places inside of the text.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path

from lang_catalog import CATALOG, SEED_000, SEED_002, unescaped
from spak import program
from spak.errors import SpecError
from spak.lang import Diagnostic, check, parse, render
from spak.lang.diagnostics import LIMIT, Severity, apply_fix
from spak.lang.format import format_text
from spak.lang.imports import resolve

ROOT = Path(__file__).resolve().parents[1]
CPU_S = 20.0
"""No text of some kilobytes may take longer, on whatever machine."""

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


def corpus() -> list[str]:
    """What the long walk starts from: TEXTS, the examples, every chunk of the cases."""
    found = list(TEXTS)
    found += [path.read_text() for path in sorted((ROOT / "specs" / "examples").glob("*.spak"))]
    for path in sorted((ROOT / "tests" / "lang" / "cases").glob("*.spak")):
        found += path.read_text().split("\n---\n")
    return found


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


def shuffled(text: str, draw: random.Random) -> str:
    """The text with tokens taken out, doubled or exchanged; what lies between them stays."""
    tokens = parse(text).tokens
    words = [text[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True)]
    gaps = [text[end:start] for end, start in zip([0, *tokens.ends], tokens.starts, strict=False)]
    for _ in range(draw.randint(1, 4)):
        at, other = draw.randrange(len(words)), draw.randrange(len(words))
        words[at], words[other] = draw.choice(
            (
                (words[other], words[at]),
                ("", words[other]),
                (words[other],) * 2,
                (words[at] * 2, words[other]),
            )
        )
    return "".join(gap + word for gap, word in zip(gaps, words, strict=True))


def judge(text: str | bytes) -> None:
    began = time.process_time()
    parsed = parse(text, "x")
    found = check(parsed, CATALOG)
    placed(found, {"": parsed.text})
    errors = [item for item in found if item.severity == Severity.ERROR or item.code == "lang.empty"]
    try:
        made = program.compile(parsed, CATALOG, {})
    except SpecError as error:
        assert error.code == "lang.input" or errors
    else:
        assert not errors
        assert made.start in made.tasks
    format_text(parsed)
    assert time.process_time() - began < CPU_S or len(text) > 50_000


def judge_imported(text: str) -> None:
    """The same text as a file that another imports."""
    files = {"b.spak": text}
    main = 'AGENT A LEVEL 5 { IMPORT "b.spak" START -> a TASK a { TOOLS [run] NEXT { success -> two } } }'
    whole = resolve(parse(main, "a.spak"), lambda path: files[path].encode() if path in files else None)
    found = check(whole.parsed, CATALOG)
    placed(found, {"": main} | dict(whole.texts))
    if not any(item.severity == Severity.ERROR for item in found):
        assert parse(whole.parsed.text).spec.hash == whole.parsed.spec.hash


def placed(found: tuple[Diagnostic, ...], texts: Mapping[str, str]) -> None:
    """Every finding lies inside of its text, can be shown, and its fix applied."""
    assert len(found) <= LIMIT
    for item in found:
        text = texts[item.file]
        assert 0 <= item.start <= item.end <= len(text), item
        lines = text.split("\n")
        assert 1 <= item.line <= item.end_line <= len(lines), item
        assert 1 <= item.column <= len(lines[item.line - 1]) + 1, item
        assert item.message
        render(item, text, "x")
        if item.fix:
            assert all(0 <= start <= end <= len(text) for start, end, _ in item.fix), item
            apply_fix(text, item.fix)
