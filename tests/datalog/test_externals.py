"""External predicates: what is asked, in which order, and that nothing is decided before it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_kit import LAW
from spak.datalog import Fact, Finding, Name, PolicyError, Request, Session, load
from spak.datalog.explain import prove
from spak.datalog.proof_checker import accepts
from spak.datalog.why_not import why_not

A, B = Name("/a"), Name("/b")
LINKS = """
Decl link(X, Y, Z) descr [external(), mode("-", "+", "-")].
Decl covered(F) descr [external(), mode("+")].
Decl changed(F).
impacted(X) :- changed(Y), link(X, Y, _).
impacted(X) :- impacted(Y), link(X, Y, _).
unsafe(X) :- impacted(X), !covered(X).
permitted(/go) :- changed(_), !unsafe(_).
"""
World = Mapping[tuple[str, tuple[Any, ...]], list[tuple[Any, ...]]]


def answered(session: Session, world: World) -> list[list[str]]:
    """Each round's questions, answered from the world until nothing is asked."""
    rounds = []
    while not session.complete:
        requests = session.requests()
        rounds.append([str(request) for request in requests])
        for request in requests:
            session.supply(request, world.get((request.pred, request.args), []))
    return rounds


WORLD: World = {
    ("link", (None, "c", None)): [("b", "c", "i"), ("d", "c", "i")],
    ("link", (None, "b", None)): [("a", "b", "i")],
    ("covered", ("a",)): [("a",)],
    ("covered", ("b",)): [("b",)],
    ("covered", ("d",)): [("d",)],
}


def test_what_is_bound_is_asked_for_round_by_round() -> None:
    policy = load({"a.mg": LINKS})
    assert policy.externals == {("link", 3): ((1,),), ("covered", 1): ((0,),)}
    session = policy.session([("changed", ("c",))])
    assert answered(session, WORLD) == [
        ['link(_, "c", _)'],
        ['covered("b")', 'covered("d")', 'link(_, "b", _)', 'link(_, "d", _)'],
        ['covered("a")', 'link(_, "a", _)'],
    ]
    assert session.query("impacted") == [("a",), ("b",), ("d",)]
    assert session.holds("permitted", Name("/go"))


def test_nothing_is_decided_before_all_is_answered() -> None:
    session = load({"a.mg": LINKS}).session([("changed", ("c",))])
    for ask in (
        lambda: session.holds("permitted", Name("/go")),
        lambda: session.query("permitted"),
        lambda: prove(session, "permitted", Name("/go")),
        lambda: why_not(session, "permitted", Name("/go")),
    ):
        with pytest.raises(PolicyError) as caught:
            ask()
        assert caught.value.code == "policy.incomplete"
        assert 'link(_, "c", _)' in caught.value.message


def test_what_rests_on_a_negation_of_answers_is_asked_last() -> None:
    text = """
    Decl a(X).
    Decl first(X, Y) descr [external(), mode("+", "-")].
    Decl second(X, Y) descr [external(), mode("+", "-")].
    stopped(X) :- a(X), first(X, Y), Y > 5.
    p(X) :- a(X), !stopped(X), second(X, _).
    """
    session = load({"a.mg": text}).session([("a", (A,)), ("a", (B,))])
    world: World = {("first", (A, None)): [(A, 9)], ("second", (B, None)): [(B, 1)]}
    assert answered(session, world) == [["first(/a, _)", "first(/b, _)"], ["second(/b, _)"]]
    assert session.query("p") == [(B,)]


def test_a_question_waits_for_the_rest_of_its_rule() -> None:
    text = """
    Decl a(X).
    Decl entropy(T, S) descr [external(), mode("+", "-")].
    p(T) :- entropy(T, S), S > 4.5, a(T), fn:string_contains(T, "key").
    q() :- entropy("fixed", _).
    """
    session = load({"a.mg": text}).session([("a", ("key=1",)), ("a", ("other",))])
    assert [str(item) for item in session.requests()] == ['entropy("fixed", _)', 'entropy("key=1", _)']
    world: World = {("entropy", ("key=1", None)): [("key=1", 4.8)]}
    answered(session, world)
    assert session.query("p") == [("key=1",)]
    assert session.query("q") == []


def test_a_proof_names_the_question_and_is_checked_against_the_answers() -> None:
    policy = load({"a.mg": LINKS})
    facts: list[Fact] = [("changed", ("c",))]
    session = policy.session(facts)
    answered(session, WORLD)
    proof = prove(session, "permitted", Name("/go"))
    assert accepts(policy, facts, proof, session.answers())
    impacted = prove(session, "impacted", "a")
    sources = [node["source"] for node in impacted.nodes if node["how"] == "observed"]
    assert ["link", [None, "b", None]] in sources
    assert "(observed)" in impacted.text()
    assert accepts(policy, facts, impacted, session.answers())
    assert not accepts(policy, facts, impacted)
    lost = [item for item in session.answers() if item[0] != Request("link", (None, "b", None))]
    assert not accepts(policy, facts, impacted, lost)
    bare = load({"a.mg": LINKS + "bare(X) :- changed(X), !covered(X)."})
    other = bare.session(facts)
    answered(other, WORLD)
    absent = prove(other, "bare", "c")
    assert accepts(bare, facts, absent, other.answers())
    silent = [item for item in other.answers() if item[0] != Request("covered", ("c",))]
    assert not accepts(bare, facts, absent, silent)


def test_questions_survive_json() -> None:
    for request in (Request("p", (A, None, "t", 1, 0.5, (1, "x"))), Request("q", ())):
        assert Request.from_json(request.to_json()) == request
    for wrong in (None, [], ["p"], ["p", 1], [1, []], ["p", [{"odd": 1}]]):
        with pytest.raises(PolicyError):
            Request.from_json(wrong)


@pytest.mark.parametrize(
    ("request_", "rows", "code"),
    [
        (Request("link", ("a", None, None)), [], "policy.external"),
        (Request("changed", ("a",)), [], "policy.external"),
        (Request("link", (None, "c", None)), [("b", "x", "i")], "policy.external"),
        (Request("link", (None, "c", None)), [("b", "c")], "policy.type"),
        (Request("link", (None, "c", None)), [("b", "c", object())], "policy.type"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(request_: Request, rows: Any, code: str) -> None:
    session = load({"a.mg": LINKS}).session([("changed", ("c",))])
    with pytest.raises(PolicyError) as caught:
        session.supply(request_, rows)
    assert caught.value.code == code
    assert not session.complete
    assert session.answers() == []


def test_an_answer_is_given_once() -> None:
    session = load({"a.mg": LINKS}).session([("changed", ("c",))])
    (asked,) = session.requests()
    session.supply(asked, [("b", "c", "i")])
    session.supply(asked, [("b", "c", "i"), ("b", "c", "i")])
    with pytest.raises(PolicyError, match="differs"):
        session.supply(asked, [])


def test_rows_of_the_world_are_no_facts() -> None:
    session = load({"a.mg": LINKS}).session()
    for change in (session.assert_facts, session.retract_facts):
        with pytest.raises(PolicyError) as caught:
            change([("covered", ("a",))])
        assert caught.value.code == "policy.external"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("Decl e(X, Y) descr [external()].", "policy.mode", 1),
        ('Decl e(X, Y) descr [external(), mode("+")].', "policy.mode", 1),
        ('Decl e(X, Y) descr [external(), mode("+", "x")].', "policy.mode", 1),
        ('Decl e(X, Y) descr [external(), mode("+", "-")].\np(X) :- e(X, _).', "policy.mode", 2),
        (
            'Decl e(X) descr [external(), mode("+")].\nDecl a(X).\np(X) :- a(X), !e(Y), e(Y).',
            "policy.mode",
            3,
        ),
        ('Decl e(X) descr [external(), mode("+")].\ne(/a).', "policy.external", 2),
        ('Decl e(X) descr [external(), mode("+")].\nDecl a(X).\ne(X) :- a(X).', "policy.external", 3),
    ],
)
def test_a_mode_that_nothing_satisfies_is_an_error_with_its_place(text: str, code: str, line: int) -> None:
    with pytest.raises(PolicyError) as caught:
        load({"a.mg": text})
    found = [item for item in caught.value.diagnostics if isinstance(item, Finding)]
    assert [(item.code, item.place.line) for item in found if item.severity == "error"] == [(code, line)]


def test_the_second_mode_is_taken_where_the_first_does_not_fit() -> None:
    text = """
    Decl e(X, Y) descr [external(), mode("+", "+"), mode("-", "+")].
    Decl a(X). Decl b(X, Y).
    p(X) :- a(Y), e(X, Y).
    q(X) :- b(X, Y), e(X, Y).
    """
    session = load({"a.mg": text}).session([("a", (1,)), ("b", (2, 3))])
    assert [str(item) for item in session.requests()] == ["e(2, 3)", "e(_, 1)"]


@LAW
@given(
    edges=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12),
    starts=st.sets(st.integers(0, 5), min_size=1, max_size=3),
    data=st.data(),
)
def test_answers_on_request_give_what_all_facts_would_give(edges: Any, starts: Any, data: Any) -> None:
    """And in whatever order the questions are answered."""
    rules = "Decl start(X).\nr(Y) :- start(X), e(X, Y).\nr(Y) :- r(X), e(X, Y).\nend(X) :- r(X), !e(X, _)."
    whole = load({"a.mg": "Decl e(X, Y).\n" + rules})
    asked = load({"a.mg": 'Decl e(X, Y) descr [external(), mode("+", "-")].\n' + rules})
    given_: list[Fact] = [("start", (at,)) for at in starts]
    plain = whole.session([*given_, *(("e", edge) for edge in edges)])
    session = asked.session(given_)
    while not session.complete:
        request = data.draw(st.sampled_from(session.requests()))
        session.supply(request, [edge for edge in edges if edge[0] == request.args[0]])
    for pred in ("r", "end"):
        assert session.query(pred) == plain.query(pred)
        for row in session.query(pred):
            assert accepts(asked, given_, prove(session, pred, *row), session.answers())
    assert {request.args[0] for request, _ in session.answers()} == {
        *starts,
        *(row[0] for row in plain.query("r")),
    }
