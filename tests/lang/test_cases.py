"""Broken specs as data: cases/*.spak, chunks split by `---`, each finding expected on its own line.

`//! pattern` at the end of a line expects a finding there; ` && ` separates several; `//!-2 pattern` means
two lines above. A pattern is a regular expression looked for in `severity code: message; hint`. What is found
and not expected fails as well.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lang_catalog import CATALOG
from spak.lang import check, parse
from spak.lang.diagnostics import Severity, apply_fix

CASES = Path(__file__).with_name("cases")
_EXPECTED = re.compile(r"//!(-\d+)? (.*)$")


def chunks() -> list[tuple[str, str]]:
    found = []
    for path in sorted(CASES.glob("*.spak")):
        for number, text in enumerate(path.read_text().split("\n---\n"), start=1):
            found.append((f"{path.stem}-{number}", text))
    return found


@pytest.mark.parametrize(("name", "text"), chunks(), ids=[name for name, _ in chunks()])
def test_case(name, text):
    wanted = []
    for line, source in enumerate(text.split("\n"), start=1):
        if match := _EXPECTED.search(source):
            wanted += [(line + int(match[1] or 0), pattern) for pattern in match[2].split(" && ")]
    found = [
        (item.line, f"{item.severity} {item.code}: {item.message}; {item.hint}")
        for item in check(parse(text, name), CATALOG)
    ]
    unexpected = list(found)
    for line, pattern in wanted:
        hits = [hit for hit in unexpected if hit[0] == line and re.search(pattern.strip(), hit[1])]
        assert hits, f"line {line}: nothing like {pattern!r} in\n" + "\n".join(map(str, found))
        unexpected.remove(hits[0])
    assert unexpected == []


@pytest.mark.parametrize(
    ("check_kind", "wanted"),
    [
        ('tool.run { cmd: "pytest" }', "exit_code(n) == 0"),
        ('llm.query { prompt: "From 0 to 9?" }', "n == 0"),
    ],
)
@pytest.mark.parametrize("edges", ["", "NEXT { success -> b fail -> b }"])
def test_the_fix_of_an_evaluation_that_only_measures_compares_what_has_an_answer(check_kind, wanted, edges):
    """What pytest prints is no number: only its exit can be compared."""
    text = (
        f"AGENT A LEVEL 2 {{ START -> a\n  TASK a {{\n    evaluation {{ check n: {check_kind} }}\n"
        f'    {edges}\n  }}\n  TASK b {{ GOAL "b" }}\n}}\n'
    )
    found = [
        item for item in check(parse(text), CATALOG) if item.code in ("lang.dead_fail", "lang.unchecked_task")
    ]
    assert len(found) == 1 and found[0].fix is not None
    mended = apply_fix(text, found[0].fix)
    assert f"success: {wanted}" in mended
    assert found[0].code not in [item.code for item in check(parse(mended), CATALOG)]


def test_there_are_enough_broken_files():
    assert sum("//!" in text for _, text in chunks()) >= 25


@pytest.mark.parametrize(("name", "text"), chunks(), ids=[name for name, _ in chunks()])
def test_a_fix_mends_its_finding(name, text):
    """After the fix the finding is gone and no error of another kind came in its place."""
    before = check(parse(text), CATALOG)
    for item in before:
        if item.fix is None or item.severity is not Severity.ERROR:
            continue
        after = check(parse(apply_fix(text, item.fix)), CATALOG)
        same = [
            other
            for other in after
            if (other.line, other.code, other.message) == (item.line, item.code, item.message)
        ]
        assert len(same) < sum((other.line, other.message) == (item.line, item.message) for other in before)


ELSEWHERE = {
    "test_imports.py": (
        *("import_collision", "import_content", "import_cycle", "import_depth", "import_missing"),
        "import_path",
    ),
    "test_evolving_checks.py": ("evolve_start", "evolve_tool"),
    "test_parse.py": ("encoding", "too_deep", "too_large", "too_many_tasks"),
    "test_schema.py": ("schema",),
    "../test_program.py": ("input", "invalid"),
    "../kernel/test_foresee.py": ("denied", "needs_approval"),
    "../kernel/test_executive.py": ("endless", "next_action", "next_by"),
}
"""Codes that no chunk can show: they need other files, other bytes, or a great many of them."""


def test_every_code_of_the_language_has_a_case():
    page = (CASES.parents[2] / "docs" / "errors.md").read_text()
    codes = set(re.findall(r"^- `lang\.(\w+)`", page, re.MULTILINE))
    for file, shown in ELSEWHERE.items():
        text = (CASES.parent / file).read_text()
        assert [code for code in shown if f"lang.{code}" not in text] == [], file
        codes -= set(shown)
    for _, text in chunks():
        codes -= {item.code.removeprefix("lang.") for item in check(parse(text), CATALOG)}
    assert sorted(codes) == []


def test_a_field_that_an_llm_step_lacks_is_mended_to_the_near_one():
    text = 'task T { step s: llm.query { prompt: "x" output: fix } step a: tool.apply_patch { patch: fix } }'
    (found,) = [item for item in check(parse(text), CATALOG) if item.code == "lang.unknown_field"]
    assert found.fix is not None
    mended = apply_fix(text, found.fix)
    assert "output_var: fix" in mended and not check(parse(mended), CATALOG)
