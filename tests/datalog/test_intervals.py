"""Facts with intervals: read, checked, evaluated, proved, laid out; and what of time is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from policy_kit import LAW
from spak.datalog import Fact, Finding, Name, PolicyError, atom, load
from spak.datalog.explain import prove
from spak.datalog.intervals import OPEN_END, OPEN_START, instant
from spak.datalog.proof_checker import accepts
from spak.datalog.text.layout import format_text
from spak.datalog.text.parse import parse
from spak.datalog.why_not import why_not

PAGE = Path(__file__).parents[2] / "docs/policy.md"
EXAMPLE = re.search(r"## Intervals\n.*?```mangle\n(.*?)```\n```\n(.*?)```", PAGE.read_text(), re.S)
A, B = Name("/a"), Name("/b")
DECL = "Decl p(X) temporal bound [/name].\n"
DAY = 86_400 * 10**9


@pytest.mark.parametrize("line", EXAMPLE[2].splitlines() if EXAMPLE else [])
def test_the_example_of_the_page(line: str) -> None:
    assert EXAMPLE is not None
    clock, wanted = line.split(" ")
    policy = load({"a.mg": EXAMPLE[1]})
    assert policy.diagnostics == ()
    session = policy.session([atom(clock)])
    assert session.query("on_duty") == ([] if wanted == "nobody" else [atom(wanted)[1]])
    assert session.query("came_later@") == [(Name("/bob"), instant("2026-02-01"), OPEN_END)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1970-01-01", 0),
        ("1970-01-02", DAY),
        ("1969-12-31", -DAY),
        ("2000-02-29T12:00", 11016 * DAY + DAY // 2),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T00:00:00.000000001", 1),
        ("2001-02-29", None),
        ("2001-01-01T24:00", None),
        ("0000-01-01", None),
    ],
)
def test_a_date_is_a_number(text: str, wanted: int | None) -> None:
    assert instant(text) == wanted


def test_ends_that_are_open_hold_for_ever() -> None:
    policy = load({"a.mg": DECL + "p(/a)@[_, 5]. p(/b)@[5, _]. q(X) :- p(X)@[F, T], F <= 5, 5 <= T."})
    assert policy.session().query("p@") == [(A, OPEN_START, 5), (B, 5, OPEN_END)]
    assert policy.session().query("q") == [(A,), (B,)]
    assert "p(/a)@[_, 5]" in prove(policy.session(), "q", A).text()


def test_an_instant_is_an_interval_of_one_end() -> None:
    policy = load({"a.mg": DECL + "p(/a)@[3]. p(/b)@[3, 4]. at(X, T) :- p(X)@[T]."})
    assert policy.session().query("at") == [(A, 3)]


def test_a_negation_asks_for_an_interval_too() -> None:
    policy = load({"a.mg": DECL + "Decl q(X). r(X) :- q(X), !p(X)@[_, _]. s(X) :- q(X), !p(X)@[1, 2]."})
    session = policy.session([("p@", (A, 1, 3)), ("q", (A,)), ("q", (B,))])
    assert (session.query("r"), session.query("s")) == ([(B,)], [(A,), (B,)])
    session.update([("p@", (A, 1, 3))], [("p@", (A, 1, 2))])
    assert (session.query("r"), session.query("s")) == ([(B,)], [(B,)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p(/a)@[1, 2].", "policy.undeclared"),
        ("Decl q(X). q(X) :- p(X)@[_, _].", "policy.undeclared"),
        (DECL + "p(/a).", "policy.arity"),
        (DECL + "q(X) :- p(X).", "policy.arity"),
        (DECL + "p(/a, /b)@[1, 2].", "policy.arity"),
        (DECL + "p(1)@[1, 2].", "policy.constant"),
        (DECL + "p(/a)@[2, 1].", "policy.constant"),
        (DECL + "p(/a)@[/x, /y].", "policy.constant"),
        (DECL + "p(/a)@[].", "policy.syntax"),
        (DECL + "p(/a)@[1, 2, 3].", "policy.syntax"),
        (DECL + "p(/a)@[_].", "policy.syntax"),
        (DECL + "p(/a)@[2026-13-01].", "policy.syntax"),
        (DECL + "p(/a)@[2500-01-01].", "policy.syntax"),
        (DECL + "p(/a)@[1, now].", "policy.unsupported"),
        (DECL + "q(T) :- p(_)@T.", "policy.unsupported"),
        (DECL + "q(X) :- <-[0d, 30d] p(X).", "policy.unsupported"),
        (DECL + "p(X)@[F, _] :- p(X)@[_, F].", ""),
        (DECL + "p(X)@[F, G] :- p(X)@[F, T], G = fn:plus(T, 1).", "policy.counter"),
    ],
)
def test_what_is_wrong_with_a_time_has_a_place_and_a_code(text: str, expected: str) -> None:
    if not expected:
        assert load({"a.mg": text})
        return
    with pytest.raises(PolicyError) as caught:
        load({"a.mg": text})
    errors = [
        item for item in caught.value.diagnostics if isinstance(item, Finding) and item.severity == "error"
    ]
    assert expected in {item.code for item in errors}
    assert all(item.place.line for item in errors)


@pytest.mark.parametrize("fact", [("p@", (A, 2, 1)), ("p@", (A, 1.0, 2.0)), ("p@", (A, 1)), ("p", (A,))])
def test_a_fact_without_a_sound_interval_is_refused(fact: Fact) -> None:
    with pytest.raises(PolicyError, match=r"policy\.type"):
        load({"a.mg": DECL + "q(X) :- p(X)@[_, _]."}).session([fact])


def test_a_rule_derives_no_interval_that_ends_before_it_begins() -> None:
    policy = load({"a.mg": DECL + "Decl q(X, F, T). p(X)@[F, T] :- q(X, F, T)."})
    assert policy.session([("q", (A, 1, 2))]).holds("p@", A, 1, 2)
    with pytest.raises(PolicyError, match="ends before it begins"):
        policy.session([("q", (A, 2, 1))])


def test_a_why_not_and_an_absence_show_an_interval() -> None:
    policy = load({"a.mg": DECL + "q(X) :- p(X)@[F, T], F < T. Decl s(X). r(X) :- s(X), !p(X)@[1, _]."})
    session = policy.session([("s", (A,))])
    assert "p(/a)@[F, T]" in why_not(session, "q", A).text()
    assert "p(/a)@[1, _]" in prove(session, "r", A).text()


MEET = (
    DECL + "meet(X, Y)@[F, T] :- p(X)@[F, G], p(Y)@[E, T], E <= F, F <= T, T <= G. Decl meet(X, Y) temporal."
)
ENDS = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)


@LAW
@drawn(rows=st.lists(st.tuples(st.sampled_from([A, B]), ENDS), max_size=5))
def test_rows_with_intervals_are_what_python_finds_and_have_proofs(
    rows: list[tuple[Name, list[int]]],
) -> None:
    facts: list[Fact] = [("p@", (name, *ends)) for name, ends in rows]
    policy = load({"a.mg": MEET})
    session = policy.session()
    for fact in facts:
        session.assert_facts([fact])
    wanted = {(x, y, f, t) for x, (f, g) in rows for y, (e, t) in rows if e <= f <= t <= g}
    assert set(session.query("meet@")) == wanted
    for row in wanted:
        proof = prove(session, "meet@", *row)
        assert accepts(policy, facts, proof)
        assert not accepts(policy, [], proof)
    session.retract_facts(facts)
    assert session.query("meet@") == []


def test_the_layout_keeps_dates_and_open_ends() -> None:
    text = (
        "Decl p(X)   temporal bound [/name].\n"
        "p( /a )@[ 2026-01-01,_ ].\n"
        "q(X) :- p(X)@[_ , T], T < 2026-02-01T10:00Z.\n"
    )
    laid = format_text(text)
    assert laid.text == (
        "Decl p(X) temporal bound [/name].\n"
        "p(/a)@[2026-01-01, _].\n"
        "q(X) :- p(X)@[_, T], T < 2026-02-01T10:00Z.\n"
    )
    assert format_text(laid.text).text == laid.text
    assert parse(text).clauses == parse(laid.text).clauses


def test_a_date_is_its_number_in_a_hash() -> None:
    dated, counted = DECL + "p(/a)@[1970-01-02].", DECL + f"p(/a)@[{DAY}]."
    assert load({"a.mg": dated}).hash == load({"a.mg": counted}).hash
