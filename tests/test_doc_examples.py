"""Every spec in the docs is checked, compiled and run; what is a part of one is marked `spak fragment`.

The runs are the kernel's, under the shipped constitution and with the real catalog. Nothing is carried out: a
small world answers each effect, so that a spec is run to its end in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spak import canon, config
from spak.kernel.foresee import foresee
from spak.kernel.rules import Rules
from spak.kernel.state import Effect, State
from spak.kernel.step import step
from spak.lang import check, parse
from spak.lang.catalog import Catalog
from spak.lang.diagnostics import Diagnostic, Severity
from spak.lang.imports import Resolved, resolve
from spak.policy.law import rules_of
from spak.program import compile as compile_program
from spak.records import Authority, Kind, Record
from spak.runner.genesis import genesis, shipped

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "specs").rglob("*.md")])
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPEC = re.compile(
    r"^\s*(?:AGENT \w+ LEVEL|TASK \w+ \{|task \w+ \{|SYSTEM_MODEL|step \w+: (?:tool|llm)\.)", re.M
)


def blocks() -> list[tuple[str, str, str]]:
    """The place, the words after the fence, and the text of every block of every page."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{page.relative_to(ROOT)}:{line}", match[1], match[2]))
    return found


BLOCKS = blocks()
WHOLE = {place: text for place, word, text in BLOCKS if word == "spak"}
PARTS = {place: text for place, word, text in BLOCKS if word == "spak fragment"}
FILES = {word.partition("file=")[2]: text for _, word, text in BLOCKS if word.startswith("spak file=")}


def read(path: str) -> bytes | None:
    return FILES[path].encode() if path in FILES else None


@cache
def catalog() -> Catalog:
    return config.catalog()


def findings(whole: Resolved) -> list[Diagnostic]:
    from spak.lang.check import examine

    made = examine(whole.parsed.spec, catalog())
    return [*check(whole.parsed, catalog()), *foresee(made, whole, shipped())]


def test_there_are_examples() -> None:
    assert len(WHOLE) >= 5
    assert len(PARTS) >= 10


@pytest.mark.parametrize(("place", "word", "text"), BLOCKS, ids=[place for place, _, _ in BLOCKS])
def test_a_block_that_is_a_spec_says_so(place: str, word: str, text: str) -> None:
    assert word.startswith("spak") == bool(SPEC.search(text)), place


@pytest.mark.parametrize("place", WHOLE)
def test_a_whole_spec_runs_to_its_end(place: str) -> None:
    whole = resolve(parse(WHOLE[place], place), read)
    assert [item.message for item in findings(whole)] == []
    program = compile_program(whole.parsed, catalog(), {})
    used = config.used(catalog(), program)
    laws = rules_of(program.axioms)
    body = genesis(whole.parsed.text, used, {}, "root", 1, {"run": "r"}, "", whole.policy, laws)
    state = run(body)
    assert (state.status, state.r7.codes) == ("succeeded", ())


@pytest.mark.parametrize("place", PARTS)
def test_a_fragment_is_right_in_a_spec_around_it(place: str) -> None:
    text = PARTS[place]
    text = f"AGENT A LEVEL 5 {{ START -> tune {text} }}" if "TASK" in text else f"task a {{ {text} }}"
    found = findings(resolve(parse(text, place), read))
    assert [item.message for item in found if item.severity is Severity.ERROR] == []


def run(body: Mapping[str, Any]) -> State:
    """The end of a run whose effects all go well."""
    rules, state = Rules.of(body), State()
    kind, answer = Kind.GENESIS, body
    for count in range(400):
        record = Record(kind, Authority.PROPOSAL, canon.loads(canon.dumps(answer)), at=count)
        state = step(rules, state, record).state
        if state.r6 is None:
            return state
        kind, more = answered(rules, state.r6, count)
        answer = {"of": state.r6.id, **more}
    raise AssertionError(f"still in {state.r0.task} after 400 effects")


def answered(rules: Rules, effect: Effect, count: int) -> tuple[Kind, dict[str, Any]]:
    if effect.act == "observe":
        return Kind.OBSERVE, {"facts": seen(effect.args["questions"])}
    if effect.act == "plan":
        tool = rules.program.tasks[effect.task].tools[0]
        wanted = rules.catalog.tools[tool].schema.get("required", ())
        args = {name: f"{name}{count}.c" for name in wanted}
        return Kind.PLAN, {"candidates": [{"tool": tool, "args": args}]}
    if effect.act == "check":
        return Kind.ACT, {"facts": [True for _ in effect.args["atoms"]]}
    if effect.act == "validate":
        return Kind.ACT, {"status": "measured", "checks": [], "metrics": {"time_ns": 5}, "key": str(count)}
    body: dict[str, Any] = {"outcome": "exited", "exit": 0, "out": "1", "key": f"k{count}"}
    if effect.act == "ask":
        return Kind.ACT, {**body, "outcome": "answered", "out": PATCH}
    body["facts"] = [not item["args"] or item["args"][0] != "core" for item in effect.watch]
    return Kind.ACT, {**body, "r3": f"root-{count}"} if effect.cls == "effect" else body


def seen(questions: Mapping[str, Any]) -> dict[str, Any]:
    """A workspace that holds every file that is asked about, and nothing that a pattern matches."""
    return {
        "paths": [[path, "inside", path, "file", 1, ""] for path in questions.get("paths", ())],
        "rows": [[request, []] for request in questions.get("rows", ())],
    }


PATCH = """\
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-a
+b
"""
