"""The engine by examples: types, built-ins, grouping, limits, changes, determinism."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from process_kit import WAIT_S
from spak.datalog import Fact, Limits, Map, Name, Pair, PolicyError, PolicyLimit, Struct, Var, atom, load
from spak.datalog.explain import prove
from spak.datalog.proof_checker import accepts
from spak.datalog.why_not import why_not

ROOT = Path(__file__).resolve().parents[2]
A, B, C = Name("/a"), Name("/b"), Name("/c")


def rows(text: str, facts: list[Fact] | None = None, pred: str = "p") -> list[tuple[Any, ...]]:
    return load({"a.mg": text}).session(facts or []).query(pred)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q(1). p(X) :- q(Y), X = fn:plus(Y, 2).", [(3,)]),
        ("q(-7). p(X) :- q(Y), X = fn:div(Y, 2).", [(-3,)]),
        ("q(7). p(X) :- q(Y), X = fn:div(fn:mult(Y, 7), 10).", [(4,)]),
        ("q(0.85). p(X) :- q(X).", [(0.85,)]),
        ("q(1). q(1.5). p(X) :- q(X), X < 1.2.", [(1,)]),
        ("q(2). p(X) :- q(Y), X = fn:float:div(Y, 4).", [(0.5,)]),
        ('q("ab"). p(X) :- q(Y), X = fn:string:concat(Y, "c").', [("abc",)]),
        ('q("format"). q("rm"). p(X) :- q(X), :string:starts_with(X, "rm").', [("rm",)]),
        ("q(/a/b). q(/ab). p(X) :- q(X), :match_prefix(X, /a).", [(Name("/a/b"),)]),
        ("q([1, 2]). p(X) :- q(L), :list:member(X, L).", [(1,), (2,)]),
        ("q([1, 2]). p(H, T) :- q(L), :match_cons(L, H, T).", [(1, (2,))]),
        ("q({/f: 1}). p(X) :- q(S), :match_field(S, /f, X).", [(1,)]),
        ("q([/k: 1]). p(X) :- q(S), :match_entry(S, /k, X).", [(1,)]),
        ("q(/a, 1). q(/a, 2). p(K, S) :- q(K, V) |> do fn:group_by(K), let S = fn:sum(V).", [(A, 3)]),
        ("q(1). q(2). p(M, N) :- q(V) |> do fn:group_by(), let M = fn:max(V), let N = fn:min(V).", [(2, 1)]),
        ("q(/a, 1). q(/b, 1). p(N) :- q(K, V) |> do fn:group_by(), let N = fn:count().", [(2,)]),
        ("q(/a, 1). q(/b, 1). p(N) :- q(K, V) |> do fn:group_by(), let N = fn:count_distinct(V).", [(1,)]),
        ("q(/a, 2). q(/b, 1). p(L) :- q(K, V) |> do fn:group_by(), let L = fn:collect(V).", [((1, 2),)]),
        ("q(1). q(2). p(X) :- q(V) |> do fn:group_by(), let X = fn:avg(V).", [(1.5,)]),
        ("q(3). p(Y) :- q(X) |> let Y = fn:plus(X, 1).", [(4,)]),
        ("q(/a, /a). q(/a, /b). p(X) :- q(X, X).", [(A,)]),
        ("q(/a). r(/b, /c). p(X) :- q(X), !r(X, _).", [(A,)]),
        ("q(/a). r(/a). p(X) :- !s(X), q(X). s(X) :- r(X), X = /b.", [(A,)]),
        ("ready() :- q(/a). q(/a). p(/x) :- ready().", [(Name("/x"),)]),
        ("q(1). q(2). p(X) :- q(X), q(fn:plus(X, 1)).", [(1,)]),
    ],
)
def test_a_rule_gives(text: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(text) == expected
    policy = load({"a.mg": text})
    session = policy.session()
    for row in expected:
        assert accepts(policy, [], prove(session, "p", *row)), prove(session, "p", *row).text()


def test_values_of_different_types_are_never_equal() -> None:
    facts: list[Fact] = [("q", (value,)) for value in (A, "/a", 1, 1.0, "1", True, (1,), (1.0,), Pair(1, 2))]
    facts += [("q", (Map(((A, 1),)),)), ("q", (Struct(((A, 1),)),))]
    found = rows("Decl q(X). p(X) :- q(X).", facts)
    assert len(found) == len(facts)
    assert [type(row[0]) for row in found].count(float) == 1
    assert (Name("/true"),) in found


WRONG = [
    ("Decl q(X). p(X) :- q(X), X < 3.", ("q", (A,))),
    ('Decl q(X). p(X) :- q(X), X = "a".', ("q", (A,))),
    ('Decl q(X). p(X) :- q(X), !:string:contains(X, "a").', ("q", (A,))),
    ("Decl q(X). p(Y) :- q(X), Y = fn:div(1, X).", ("q", (0,))),
    ("Decl q(X) bound [/name]. p(X) :- q(X).", ("q", ("a",))),
    ("Decl q(X.Type<bool>). p(X) :- q(X).", ("q", (A,))),
    ("Decl q(X). p(X) :- q(X).", ("q", (A, B))),
    ("Decl q(X). p(X) :- q(X).", ("q", (float("nan"),))),
    ("Decl q(X). p(X) :- q(X).", ("q", (object(),))),
    ("Decl q(X). p(X) :- q(X).", ("q", ("\ud800",))),
]


@pytest.mark.parametrize(("text", "fact"), WRONG)
def test_a_wrong_type_is_an_error_from_the_start_too(text: str, fact: Any) -> None:
    with pytest.raises(PolicyError) as caught:
        load({"a.mg": text}).session([fact])
    assert caught.value.code == "policy.type"


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("Decl q(X). p(X) :- q(X), X = 1.0.", [("q", (1,))], [(1,)]),
        ("Decl q(X). p(X) :- X = 1, q(X).", [("q", (1.0,)), ("q", (2,))], [(1.0,)]),
        ("Decl q(X). Decl r(X). p(X) :- q(X), X = Y, r(Y).", [("q", (1,)), ("r", (1.0,))], [(1,)]),
        ("p(X) :- X = fn:plus(Y, 1), Y = 2.", [], [(3,)]),
        ("p(X) :- X = 1, :list:member(X, L), L = fn:list(X).", [], [(1,)]),
        ('Decl q(X). p(X) :- q(X), X = "a".', [("q", (A,))], None),
        ("Decl q(X). Decl r(X). p(X) :- q(X), X = Y, r(Y).", [("q", (A,)), ("r", ("/a",))], None),
    ],
)
def test_equality_compares_whatever_comes_first(text: str, facts: list[Fact], expected: Any) -> None:
    """Assigned, it would find nothing where types differ, and a negation of that would permit."""
    policy = load({"a.mg": text})
    if expected is None:
        with pytest.raises(PolicyError):
            policy.session(facts)
        return
    session, grown = policy.session(facts), policy.session()
    grown.assert_facts(facts)
    assert session.query("p") == grown.query("p") == expected
    for row in expected:
        assert accepts(policy, facts, prove(session, "p", *row))


@pytest.mark.parametrize(("text", "fact"), WRONG)
def test_a_wrong_type_is_an_error_and_leaves_the_session_as_it_was(text: str, fact: Any) -> None:
    session = load({"a.mg": text}).session()
    with pytest.raises(PolicyError) as caught:
        session.assert_facts([fact])
    assert caught.value.code == "policy.type"
    assert session.query("p") == []
    assert session.query("q") == []


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("n(0). n(Y) :- n(X), Y = fn:plus(X, 1), Y != 0, Y > 0.", Limits(steps=5000)),
        ("n(0). n(Y) :- n(X), Y = fn:plus(X, 1), Y > 0.", Limits(facts=1000)),
        (
            'n("a"). n(Y) :- n(X), Y = fn:string:concat(X, X), L = fn:string:length(Y), L > 0.',
            Limits(atom_bytes=1000),
        ),
        ("n(1). n(Y) :- n(X), Y = fn:mult(X, 1000000), Y > 0.", Limits()),
        ("q(1). q(2). q(3). n(A, B, C, D) :- q(A), q(B), q(C), q(D).", Limits(steps=50)),
    ],
)
def test_a_limit_ends_the_evaluation(text: str, limits: Limits) -> None:
    policy = load({"a.mg": text})
    with pytest.raises(PolicyLimit) as caught:
        policy.session(limits=limits)
    assert caught.value.code == "policy.limit"


def test_retract_comes_before_assert_and_facts_are_a_set() -> None:
    session = load({"a.mg": "Decl q(X). p(X) :- q(X)."}).session([("q", (A,)), ("q", (A,))])
    session.update([("q", (A,))], [("q", (A,)), ("q", (B,))])
    assert session.query("p") == [(A,), (B,)]
    session.retract_facts([("q", (A,)), ("q", (C,))])
    assert session.query("p") == [(B,)]


def test_a_fact_of_the_text_is_not_retracted() -> None:
    session = load({"a.mg": "q(/a). p(X) :- q(X)."}).session([("q", (A,))])
    session.retract_facts([("q", (A,))])
    assert session.holds("p", A)


def test_a_failed_update_changes_nothing() -> None:
    text = "Decl q(X). Decl r(X). p(X) :- q(X), !r(X). n(Y) :- q(X), Y = fn:div(1, X)."
    session = load({"a.mg": text}).session([("q", (1,))])
    with pytest.raises(PolicyError):
        session.update([("q", (1,))], [("q", (0,)), ("r", (1,))])
    assert session.query("p") == [(1,)]
    session.assert_facts([("r", (1,))])
    assert session.query("p") == []


def test_a_query_takes_values_variables_and_blanks() -> None:
    session = load({"a.mg": "q(/a, /a). q(/a, /b). q(/b, /b)."}).session()
    assert session.query("q", A, None) == [(A, A), (A, B)]
    assert session.query("q", Var("X"), Var("X")) == [(A, A), (B, B)]
    assert session.query("q", A, B) == [(A, B)]
    assert session.query("nothing", None) == []
    assert atom('q(/a, X, _, "s", 3, [1])') == ("q", (A, Var("X"), None, "s", 3, (1,)))
    with pytest.raises(PolicyError, match="no atom"):
        atom("q(X) :- r(X)")


def test_text_of_a_fact_is_never_read_as_a_rule() -> None:
    text = 'Decl said(X). permitted(X) :- said(X), :string:contains(X, "never").'
    session = load({"a.mg": text}).session([("said", ('x"). permitted(Y) :- said(Y). #',))])
    assert session.query("permitted") == []


def test_a_mutated_proof_is_refused() -> None:
    text = (
        "Decl q(X). Decl bad(X). p(X) :- q(X), !r(X). r(X) :- bad(X). "
        "c(N) :- q(X) |> do fn:group_by(), let N = fn:count()."
    )
    policy = load({"a.mg": text})
    facts: list[Fact] = [("q", (A,)), ("q", (B,)), ("bad", (B,))]
    session = policy.session(facts)
    proof = prove(session, "p", A)
    assert accepts(policy, facts, proof.to_json())
    assert not accepts(policy, [*facts, ("bad", (A,))], proof)
    assert not accepts(policy, facts[1:], proof)
    assert not accepts(load({"a.mg": text + "bad(/a)."}), facts, proof)
    assert not accepts(policy, [*facts, ("q", (C,))], prove(session, "c", 2))
    document = proof.to_json()
    for at, node in enumerate(document["nodes"]):
        for name in node.keys() - {"at", "text"}:
            wrong = {**node, name: "x"}
            nodes = [*document["nodes"][:at], wrong, *document["nodes"][at + 1 :]]
            assert not accepts(policy, facts, {**document, "nodes": nodes}), name
    for nodes in ([], document["nodes"][:-1], document["nodes"][1:]):
        assert not accepts(policy, facts, {**document, "nodes": nodes})


def test_a_deep_chain_is_proved_and_checked_without_recursion() -> None:
    policy = load({"a.mg": "Decl e(X, Y). r(X, Y) :- e(X, Y). r(X, Z) :- e(X, Y), r(Y, Z)."})
    facts: list[Fact] = [("e", (at, at + 1)) for at in range(300)]
    proof = prove(policy.session(facts), "r", 0, 300)
    assert len(proof.nodes) == 600
    assert accepts(policy, facts, proof)
    assert proof.text().count("\n") == 599


def test_a_proof_for_a_page_is_nested_bounded_and_safe() -> None:
    text = 'Decl q(X). p(X) :- q(X), !r(X), X != "<b>". r(X) :- q(X), X = "no".\ntop(X) :- p(X), q(X).'
    session = load({"a.mg": text}).session([("q", ('<script>&"',))])
    tree = prove(session, "top", '<script>&"').tree()
    assert tree["text"] == "top(&quot;&lt;script&gt;&amp;\\&quot;&quot;)"
    assert [item["because"] for item in tree["body"]] == ["rule", "given"]
    inner = [item["text"] for item in tree["body"][0]["body"]]
    assert inner[1].startswith("no r(&quot;&lt;script&gt;")
    assert "<" not in repr(tree)
    chain = load({"a.mg": "Decl e(X, Y). r(X, Y) :- e(X, Y). r(X, Z) :- e(X, Y), r(Y, Z)."})
    proof = prove(chain.session([("e", (at, at + 1)) for at in range(300)]), "r", 0, 300)
    level, node = 0, proof.tree(50)
    while node["body"]:
        level, node = level + 1, node["body"][-1]
    assert (level, node["more"]) == (50, True)


def test_a_closure_that_was_made_linear_is_proved_from_what_was_given() -> None:
    policy = load({"a.mg": "Decl d(X, Y). d(X, Z) :- d(X, Y), d(Y, Z). top(X) :- d(X, /c), !d(/c, X)."})
    facts: list[Fact] = [("d", (A, B)), ("d", (B, C))]
    session = policy.session(facts)
    assert session.query("d") == [(A, B), (A, C), (B, C)]
    assert session.facts() == [(("d", 2), ("/a", "/b")), (("d", 2), ("/b", "/c"))]
    for goal in (("d", A, C), ("top", A)):
        proof = prove(session, *goal)
        assert accepts(policy, facts, proof)
        assert not accepts(policy, facts[:1], proof)
    missing = why_not(session, "top", Name("/e")).attempts[0].missing
    assert [item.text for item in missing] == ["d(/e, /c)"]
    assert why_not(session, "top", C).attempts[0].failed == "no fact can satisfy its body"


def test_a_hundred_rules_of_one_shape_keep_their_own_lines_in_proofs() -> None:
    lines = [f'bad(A) :- binary(A, /bin/b{at}), flag(A, "-{at}").' for at in range(100)]
    policy = load({"a.mg": "\n".join(["Decl binary(A, B).", "Decl flag(A, F).", *lines])})
    facts: list[Fact] = [("binary", (A, Name("/bin/b42"))), ("flag", (A, "-42")), ("flag", (A, "-43"))]
    session = policy.session(facts)
    proof = prove(session, "bad", A)
    assert "(rule a.mg:45)" in proof.text()
    assert accepts(policy, facts, proof)
    session.retract_facts(facts[1:2])
    assert session.query("bad") == []
    assert len(why_not(session, "bad", A).attempts) == 100


def test_a_proof_of_what_does_not_hold_is_an_error() -> None:
    with pytest.raises(PolicyError) as caught:
        prove(load({"a.mg": "p(1)."}).session(), "p", 2)
    assert caught.value.code == "policy.no_proof"


def test_rows_and_proofs_are_the_same_under_every_hash_seed() -> None:
    script = """
from spak.datalog import Name, load
from spak.datalog.explain import prove
from spak.datalog.why_not import why_not
text = '''
Decl e(X, Y).
r(X, Y) :- e(X, Y).
r(X, Z) :- r(X, Y), e(Y, Z).
n(C) :- r(X, Y) |> do fn:group_by(), let C = fn:count().
'''
names = [Name(f"/n{at}") for at in range(8)]
session = load({"a.mg": text}).session([("e", (names[at], names[at * 3 % 8])) for at in range(8)])
print(session.query("r"), [prove(session, "r", *row).hash for row in session.query("r")], session.policy.hash)
print(prove(session, "n", *session.query("n")[0]).hash, why_not(session, "r", names[1], names[2]).to_json())
"""
    found = set()
    for seed in range(4):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT / "agents")},
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
