"""The TextMate grammar: fresh, compiled, and its colours beside those of the tree, by a small interpreter."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lang_catalog import CATALOG, SEED_000, SEED_002, unescaped
from spak.lang import parse, settings, textmate
from spak.lang.features import View, marks
from spak.lang.parser.generate import KEYWORDS

ROOT = Path(__file__).resolve().parents[2]
GRAMMAR = textmate.generate()
EXAMPLES = sorted((ROOT / "specs" / "examples").glob("*.spak"))
FENCED = re.findall(r"^```spak\n(.*?)^```", (ROOT / "docs" / "language.md").read_text(), re.M | re.S)
TEXTS = {
    **{path.stem: path.read_text() for path in EXAMPLES},
    **{f"docs-{number}": text for number, text in enumerate(FENCED)},
    "seed-000": unescaped(SEED_000),
    "seed-002": SEED_002,
}


@dataclass
class Scopes:
    """A TextMate interpreter: lines, leftmost pattern first, begin and end, captures, includes."""

    grammar: dict[str, Any]
    found: list[tuple[int, int, str]] = field(default_factory=list)

    def run(self, text: str) -> list[tuple[int, int, str]]:
        stack: list[dict[str, Any]] = [self.grammar]
        at = 0
        for line in text.splitlines(keepends=True):
            self.line(line.rstrip("\n"), at, stack)
            at += len(line)
        return self.found

    def line(self, line: str, base: int, stack: list[dict[str, Any]]) -> None:
        at = opened = 0
        while at <= len(line):
            rule = stack[-1]
            choices = [(item, item.get("match") or item["begin"]) for item in self.patterns(rule)]
            if "end" in rule:
                choices.insert(0, (None, rule["end"]))
            hits = [(re.compile(pattern).search(line, at), item) for item, pattern in choices]
            hits = [(hit, item) for hit, item in hits if hit is not None]
            best = min(hits, key=lambda pair: pair[0].start(), default=None)
            scope = rule.get("name", "") if rule is not self.grammar else ""
            end = len(line) if best is None else best[0].start()
            self.note(base + at, base + end, scope)
            if best is None:
                return
            hit, item = best
            if item is None:
                self.note(base + hit.start(), base + hit.end(), scope)
                stack.pop()
            else:
                self.note(base + hit.start(), base + hit.end(), item.get("name", scope))
                for number, capture in item.get("captures", {}).items():
                    self.note(base + hit.start(int(number)), base + hit.end(int(number)), capture["name"])
                if "begin" in item:
                    stack.append(item)
            opened += hit.end() == at
            assert opened < 50, "a pattern that matches nothing again and again"
            at = hit.end()
            if at == len(line) and hit.end() == hit.start():
                return

    def patterns(self, rule: dict[str, Any]) -> list[dict[str, Any]]:
        found = []
        for item in rule.get("patterns", ()):
            if "include" in item:
                found += self.patterns(self.grammar["repository"][item["include"][1:]])
            else:
                found.append(item)
        return found

    def note(self, start: int, end: int, scope: str) -> None:
        if scope and end > start:
            self.found.append((start, end, scope))


def scope_at(scopes: list[tuple[int, int, str]], offset: int) -> str:
    """The innermost scope of a character: the last one noted."""
    return next((name for start, end, name in reversed(scopes) if start <= offset < end), "")


def test_the_file_is_fresh() -> None:
    assert textmate.PATH.read_text() == textmate.encode(GRAMMAR), "run: python -m spak.lang.textmate"


def test_every_pattern_compiles_and_every_include_exists() -> None:
    def walk(node: Any) -> None:
        if isinstance(node, dict):
            for key in ("match", "begin", "end"):
                if key in node:
                    re.compile(node[key])
            if "include" in node:
                assert node["include"][1:] in GRAMMAR["repository"]
            for item in node.values():
                walk(item)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(GRAMMAR)


WANTED = {
    "comment": ("comment.",),
    "keyword": ("keyword.control.", "keyword.operator.word."),
    "string": ("string.", "constant.character.", "punctuation.section.embedded.", "variable.other.spak"),
    "number": ("constant.numeric.",),
    "function": ("entity.name.function.", "support.function.", "storage.type."),
    "method": ("entity.name.function.",),
    "event": ("constant.other.trigger.",),
    "class": ("entity.name.class.",),
}


@pytest.mark.parametrize("name", TEXTS)
def test_colours_are_those_of_the_tree(name: str) -> None:
    """Where the tree has a colour that a regular expression can know, the two agree on every character."""
    text = TEXTS[name]
    scopes = Scopes(GRAMMAR).run(text)
    wrong = Counter[tuple[str, str, str]]()
    for mark in marks(View(parse(text), CATALOG)):
        if mark.kind == "method" and text[mark.start - 1] in "(.":  # exit_code(s1) is a plain word here
            continue
        for offset in range(mark.start, mark.end):
            scope = scope_at(scopes, offset)
            if mark.kind in WANTED and not text[offset].isspace() and not scope.startswith(WANTED[mark.kind]):
                wrong[text[mark.start : mark.end], mark.kind, scope] += 1
    assert wrong == Counter()


def test_a_variable_in_a_text_stands_out() -> None:
    text = 'task a { step s: llm.query { prompt: "x {{last_tool_output}} y" } }'
    scopes = Scopes(GRAMMAR).run(text)
    assert scope_at(scopes, text.index("last")) == "variable.other.spak"
    assert scope_at(scopes, text.index("x {{")) == "string.quoted.double.spak"
    assert scope_at(scopes, text.index('y"')) == "string.quoted.double.spak"


@pytest.mark.parametrize("item", settings.TABLE, ids=lambda item: f"{item.where}-{item.key}")
def test_every_setting_has_the_colour_of_a_key(item: settings.Setting) -> None:
    scopes = Scopes(GRAMMAR).run(item.example)
    assert scope_at(scopes, 0).startswith(("keyword.other.setting", "variable.other.property"))


AFTER = {
    **dict.fromkeys(("AND", "OR", "NOT"), " x"),
    **dict.fromkeys(("NEXT", "EVALUATION", "SYSTEM_MODEL"), " {"),
    **dict.fromkeys(("SUCCESS", "INVARIANT"), ": x"),
    **dict.fromkeys(("AXIOM", "HEURISTIC", "PREDICTION"), ' "x"'),
    **dict.fromkeys(("STEP", "CHECK"), " x: tool.run"),
    "LEVEL": " 3",
    "START": " -> a",
    "WHEN": " fail",
}
"""What makes each keyword one; a name and a brace for all others."""


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_every_keyword_has_a_rule_in_any_case(keyword: str) -> None:
    tail = AFTER.get(keyword, " x {")
    for word in (keyword, keyword.lower(), keyword.capitalize()):
        assert scope_at(Scopes(GRAMMAR).run(word + tail), 0).startswith(
            ("keyword.control", "keyword.operator")
        )


def test_a_keyword_that_is_a_name_is_none() -> None:
    text = "task next {\n  NEXT { success -> task }\n}"
    scopes = Scopes(GRAMMAR).run(text)
    assert scope_at(scopes, text.index("next")) == "entity.name.function.spak"
    assert scope_at(scopes, text.index("success")) == "constant.other.trigger.spak"
    assert scope_at(scopes, text.index("task }")) == "entity.name.function.spak"


def test_a_text_without_its_end_ends_with_its_line() -> None:
    text = 'GOAL "open\nTASK a {'
    assert scope_at(Scopes(GRAMMAR).run(text), text.index("TASK")) == "keyword.control.spak"
