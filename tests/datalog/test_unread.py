"""Columns that nothing reads: what they are, and that no row of a goal depends on their values."""

from __future__ import annotations

import re

import pytest

from policy_kit import EDB, IDB, given, random_program, text_of
from spak.datalog import Name, load
from spak.datalog.unread import renamed, rises, unread
from spak.datalog.values import Fact

STATED = {"a", "b", "e", "k"}
A = "Decl a(X, Y) bound [/name, /string].\nDecl b(X) bound [/string].\nDecl e(X, Y) bound [/any, /any].\n"

CASES = {
    "a wildcard": ("goal(X) :- a(X, _).", {("a", 2): (1,)}),
    "a variable that occurs once": ("goal(X) :- a(X, Y).", {("a", 2): (1,)}),
    "what no rule mentions": ("goal(/x) :- a(/x, _).", {("a", 2): (1,), ("e", 2): (0, 1)}),
    "a join": ("goal(X) :- a(X, Y), b(Y).", {}),
    "twice in one literal": ("goal(/x) :- e(Y, Y).", {}),
    "a constant": ('goal(X) :- a(X, "y").', {}),
    "a comparison": ('goal(X) :- a(X, Y), Y != "y".', {}),
    "a test": ('goal(X) :- a(X, Y), :string:starts_with(Y, "y").', {}),
    "a function in the head": ('goal(X) :- h(X, "y1").\nh(X, fn:string:concat(Y, "1")) :- a(X, Y).', {}),
    "a negation": ("goal(X) :- a(X, _), !e(X, _).", {("a", 2): (1,), ("e", 2): (1,)}),
    "passed on to a head that nothing reads": ("goal(X) :- h(X, _).\nh(X, Y) :- a(X, Y).", {("a", 2): (1,)}),
    "passed on to a head that is read": ("goal(X) :- h(X, Y), b(Y).\nh(X, Y) :- a(X, Y).", {}),
    "a grouping": ("goal(N) :- a(_, Y) |> do fn:group_by(), let N = fn:count().", {}),
    "a type that is one name": (
        "Decl k(X) bound [/kind].\ngoal(/x) :- k(_).",
        {},
    ),
    "a rule that needs what nobody states": (
        "Decl wanted(X) bound [/name].\ngoal(X) :- a(X, _).\ngoal(X) :- wanted(_), a(X, Y), b(Y).",
        {("a", 2): (1,), ("b", 1): (0,)},
    ),
    "a question": (
        'Decl out(X) descr [external(), mode("+")] bound [/string].\ngoal(X) :- a(X, Y), out(Y).',
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_unread(name: str) -> None:
    text, expected = CASES[name]
    found = unread(load({"t.mg": A + text}), [("goal", 1)], STATED)
    for key in (("a", 2), ("b", 1), ("e", 2), ("k", 1)):
        if re.search(rf"\b{key[0]}\(", text) or key in expected:
            assert found.get(key, ()) == expected.get(key, ()), key


def test_no_row_of_a_goal_depends_on_values_that_are_unread() -> None:
    assert sum(_changed(seed) for seed in range(60)) > 50, "else it shows nothing"


def _changed(seed: int) -> int:
    """How many unread columns of facts a random program has, over its goals; none of them decides."""
    rules, facts = random_program(seed)
    policy, count = load({"random.mg": text_of(rules)}), 0
    for name in IDB:
        width = next(len(args) for (head, args), _ in rules if head == name)
        columns = unread(policy, [(name, width)], EDB)
        one = [_with_texts(fact, columns, "one") for fact in given(facts)]
        two = [_with_texts(fact, columns, "two") for fact in given(facts)]
        assert policy.session(one).query(name) == policy.session(given(facts)).query(name)
        assert renamed(one, columns) == renamed(two, columns)
        count += sum(len(places) for key, places in columns.items() if key[0] in EDB)
    return count


def test_facts_are_alike_where_the_same_values_are_equal() -> None:
    columns = {("a", 2): (1,)}

    def of(*values: str | int | Name) -> tuple[Fact, ...]:
        return renamed([("a", (Name("/x"), value)) for value in values], columns)

    assert of("p", "q", "p") == of("r", "s", "r") != of("r", "s", "s")
    assert of(1, 2) == of(3, 4) != of("3", "4")
    assert of("p", Name("/p")) != of("p", Name("/q")), "names stay"
    assert of("\u00e9") != of("\u00e8"), "what may be half a character stays"
    assert of(2**64) != of(2**65), "what is no number of the language stays"


def _with_texts(fact: Fact, columns: dict, mark: str) -> Fact:  # type: ignore[type-arg]
    name, args = fact
    places = columns.get((name, len(args)), ())
    return name, tuple(f"{mark} {value}" if at in places else value for at, value in enumerate(args))


RISING = {
    "more than a constant": ("goal() :- n(_, N), N > 3.", True),
    "at least another column": ("goal(X) :- n(X, N), m(X, M), M <= N.", True),
    "with something added": ("goal(X) :- n(X, N), m(X, M), 9 < fn:plus(N, M).", True),
    "not at all": ("goal(X) :- n(X, _).", True),
    "in two rules": ("goal(/a) :- n(_, N), N > 3.\ngoal(/b) :- n(_, N), N >= 9.", True),
    "less than a constant": ("goal() :- n(_, N), N < 3.", False),
    "at most another column": ("goal(X) :- n(X, N), m(X, M), M >= N.", False),
    "on both sides": ("goal() :- n(_, N), N < fn:plus(N, 1).", False),
    "twice in a sum": ("goal() :- n(_, N), 9 < fn:plus(N, N).", False),
    "taken away": ("goal() :- n(_, N), 9 < fn:minus(0, N).", False),
    "another value": ("goal() :- n(_, N), N != 3.", False),
    "one value": ("goal() :- n(_, 3).", False),
    "a join": ("goal(X) :- n(X, N), m(_, N).", False),
    "two rows of it": ("goal() :- n(/a, N), n(/b, M), N > M.", False),
    "a negation": ("goal(X) :- m(X, _), !n(X, 3).", False),
    "in the head": ("goal(N) :- n(_, N), N > 3.", False),
    "a grouping": ("goal(N) :- n(_, _) |> do fn:group_by(), let N = fn:count().", False),
    "derived": ("n(X, 4) :- m(X, _).\ngoal() :- n(_, N), N > 3.", False),
}


@pytest.mark.parametrize("name", RISING)
def test_which_columns_are_only_asked_for_more(name: str) -> None:
    text, expected = RISING[name]
    declared = "Decl n(X, Y) bound [/name, /number].\nDecl m(X, Y) bound [/name, /number].\n"
    assert rises(load({"t.mg": declared + text}), ("n", 2), 1) is expected
