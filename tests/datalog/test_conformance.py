"""The datalog-conformance suite (a development dependency): its program cases in our engine.

Its identifiers are variables, `a+b` is a function, `not` a negation. Errors are compared by code. The cases
that we answer otherwise on purpose are strict expected failures with the reason.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import datalog_conformance
import pytest
import yaml

from spak.datalog import Fact, Limits, PolicyError, Session, load
from spak.datalog.values import encode, show

FOLDER = Path(datalog_conformance.__file__).parent / "_tests"
CODES = {
    "arity_mismatch": "policy.arity",
    "cyclic_negation": "policy.cycle",
    "unbound_variable": "policy.unsafe",
    "safety_violations": "policy.unsafe",
    "SafetyViolationError": "policy.unsafe",
}
NEMO = (
    "nemo_negation_(filteredX|filteredY|filteredZ|projectedX|projectedY|projectedZ|projectedXY|projectedXZ|"
    "projectedYZ|multiple|reordered|singlePositionX|singlePositionY|singlePositionZ)"
)
REASON = (
    "a rule of the program has a variable that occurs under a negation alone: Nemo reads `there is none`, "
    "we refuse it, as Mangle and another case of this suite do"
)
LARGE = ("souffle_example_lubm", "souffle_example_hmmer")
TOKEN = re.compile(r'\s*("[^"]*"|:-|!=|<=|>=|\d+(?:\.\d+)?|\w+|[-+*/(),.<>=!])')


@lru_cache(maxsize=1)
def programs(file: str) -> dict[str, Any]:
    """The cases of a file by name. The largest file takes a quarter of a minute."""
    document = yaml.load((FOLDER / file).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    cases = document.get("tests", [document])
    return {case["name"]: case for case in cases}


def names() -> list[Any]:
    """Every case, found without reading the facts."""
    found = []
    for folder in ("basic", "errors", "negation", "recursion"):
        for file in sorted((FOLDER / folder).glob("*.yaml")):
            large = [pytest.mark.slow, pytest.mark.fuzz, pytest.mark.timeout(900)]
            marks = large if file.stem in LARGE else []
            for name in re.findall(r"^(?:- )?name: (\S+)$", file.read_text(), re.MULTILINE):
                more = []
                if re.fullmatch(NEMO, name):
                    more = [pytest.mark.xfail(reason=REASON, strict=True, raises=PolicyError)]
                found.append(pytest.param(f"{folder}/{file.name}", name, id=name, marks=[*marks, *more]))
    return found


class Rule:
    """One rule of the suite in our language."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        assert "".join(self.tokens) == re.sub(r"\s", "", text), text
        self.at = 0

    def take(self, *wanted: str) -> str:
        found = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if wanted and found not in wanted:
            return ""
        self.at += 1
        return found

    def text(self) -> str:
        head, body = self.atom(), []
        if self.take(":-"):
            body.append(self.literal())
            while self.take(","):
                body.append(self.literal())
        return head + (" :- " + ", ".join(body) if body else "") + "."

    def literal(self) -> str:
        if self.take("("):
            inner = self.literal()
            assert self.take(")")
            return inner
        if self.take("not", "!"):
            return "!" + self.atom()
        if self.tokens[self.at + 1 : self.at + 2] == ["("]:
            return self.atom()
        left = self.sum()
        return f"{left} {self.take('<', '<=', '>', '>=', '=', '!=')} {self.sum()}"

    def atom(self) -> str:
        name, args = self.take(), []
        assert self.take("(")
        while not self.take(")"):
            args.append(self.sum())
            self.take(",")
        return f"r_{name}({', '.join(args)})"

    def sum(self) -> str:
        found = self.term()
        while sign := self.take("+", "-"):
            found = f"fn:{'plus' if sign == '+' else 'minus'}({found}, {self.term()})"
        return found

    def term(self) -> str:
        word = self.take()
        return f"V_{word}" if word[0].isalpha() else word


def answer(program: dict[str, Any]) -> Session:
    """The session of a program. Facts stand in the text where they are few, so that all checks see them."""
    facts: list[Fact] = []
    for name, rows in (program.get("facts") or {}).items():
        facts += [(f"r_{name}", tuple(row)) for row in rows]
    rules = [Rule(text.strip().rstrip(".")).text() for text in program.get("rules") or ()]
    heads = {rule.partition("(")[0] for rule in rules}
    used = {word for rule in rules for word in re.findall(r"r_\w+", rule.partition(":-")[2])}
    arity = {pred: len(args) for pred, args in facts}
    lines = [*rules]
    for rule in rules:
        for name, args in re.findall(r"!(r_\w+)\(([^()]*)\)", rule):
            if name in used - heads - arity.keys():
                arity[name] = args.count(",") + 1
    if len(facts) <= 100:
        lines += [f"{pred}({', '.join(show(encode(value)) for value in args)})." for pred, args in facts]
        facts = []
    known = {line.partition("(")[0] for line in lines}
    for name in sorted(arity.keys() - known):
        lines.append(f"Decl {name}({', '.join(f'A{at}' for at in range(arity[name]))}).")
    return load({"case.mg": "\n".join(lines)}).session(facts, Limits(steps=10**9, facts=10**7))


_LAST: dict[tuple[str, tuple[str, ...]], Session] = {}


def shared(file: str, rules: tuple[str, ...], name: str) -> Session:
    """One evaluation for all cases of a file with the same rules, which ask for one predicate each."""
    if (file, rules) not in _LAST:
        _LAST.clear()
        _LAST[file, rules] = answer(programs(file)[name]["program"])
    return _LAST[file, rules]


@pytest.mark.parametrize(("file", "name"), names())
def test_a_case_of_the_suite(file: str, name: str) -> None:
    case = programs(file)[name]
    wanted = case.get("expect_error")
    if wanted is not None:
        with pytest.raises(PolicyError) as caught:
            answer(case["program"])
        found = {getattr(item, "code", "") for item in caught.value.diagnostics if item.severity == "error"}  # type: ignore[attr-defined]
        assert found == {CODES[wanted]}
        return
    session = shared(file, tuple(case["program"].get("rules") or ()), name)
    for pred, rows in case["expect"].items():
        assert set(session.query(f"r_{pred}")) == {tuple(row) for row in rows}
        assert len(session.query(f"r_{pred}")) == len({tuple(row) for row in rows})


def test_all_cases_are_here() -> None:
    assert len(names()) == 114
    assert sum(bool(re.fullmatch(NEMO, str(item.id))) for item in names()) == 14
