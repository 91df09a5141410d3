"""mangle-py agrees on what it reads: random programs without `!p(_)`, and standard forms of the language."""

from __future__ import annotations

import pytest

from policy_kit import IDB, given, mangle_rows, random_program, show, text_of
from spak.datalog import load

STANDARD = [
    "q(7). q(-7). p(X) :- q(Y), X = fn:plus(Y, 3).",
    "q(/a, 1). q(/a, 2). q(/b, 5). p(K, S) :- q(K, V) |> do fn:group_by(K), let S = fn:sum(V).",
    "q(/a, 1). q(/a, 2). q(/b, 5). p(K, S) :- q(K, V) |> do fn:group_by(K), let S = fn:max(V).",
    "q(1). q(2). q(3). p(X) :- q(X), X < 3.",
    "e(/a, /b). e(/b, /c). e(/c, /a). p(X, Y) :- e(X, Y). p(X, Z) :- p(X, Y), e(Y, Z).",
    'q("format"). q("rm -rf"). p(X) :- q(X), :string:contains(X, "rm -").',
    "q(/a/b). q(/c). p(X) :- q(X), :match_prefix(X, /a).",
]


def test_random_programs_have_the_same_rows() -> None:
    programs = []
    for seed in range(300):
        rules, facts = random_program(seed)
        if not any(negated and "_" in args for _, body in rules for negated, (_, args) in body):
            ordered = [(head, tuple(sorted(body, key=lambda item: item[0]))) for head, body in rules]
            programs.append((ordered, facts))
    assert len(programs) > 30
    asked = []
    for rules, facts in programs:
        lines = [f"{show(fact)}." for fact in sorted(facts)]
        lines += [line for line in text_of(rules).splitlines() if not line.startswith("Decl")]
        asked.append(("\n".join(lines), list(IDB)))
    for (rules, facts), found in zip(programs, mangle_rows(asked), strict=True):
        session = load({"random.mg": text_of(rules)}).session(given(facts))
        for name in IDB:
            assert sorted([str(value) for value in row] for row in session.query(name)) == found[name]


@pytest.mark.parametrize("text", STANDARD)
def test_standard_forms_have_the_same_rows(text: str) -> None:
    (found,) = mangle_rows([(text, ["p"])])
    rows = load({"a.mg": text}).session().query("p")
    assert rows
    assert sorted([str(value) for value in row] for row in rows) == found["p"]
