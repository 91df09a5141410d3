"""What a `Decl` promises is held: bounds of stated and derived rows, inclusions; the rest is named."""

from __future__ import annotations

import pytest

from spak.datalog import Fact, Finding, Name, PolicyError, load
from spak.datalog.explain import prove
from spak.datalog.proof_checker import accepts

A, B = Name("/a"), Name("/b")
ROLES = """
Decl holds(User, Role) bound [/name, /name] inclusion [user(User), role(Role, _)].
Decl user(U). Decl role(R, Rank).
user(/a). role(/admin, 1).
strong(U) :- holds(U, /admin).
"""


def codes(text: str) -> list[tuple[str, int]]:
    with pytest.raises(PolicyError) as caught:
        load({"a.mg": text})
    found = [item for item in caught.value.diagnostics if isinstance(item, Finding)]
    return [(item.code, item.place.column) for item in found if item.severity == "error"]


def test_a_row_without_what_it_must_be_included_in_is_refused() -> None:
    policy = load({"a.mg": ROLES})
    session = policy.session([("holds", (A, Name("/admin")))])
    assert session.query("strong") == [(A,)]
    for fact in (("holds", (B, Name("/admin"))), ("holds", (A, Name("/guest")))):
        with pytest.raises(PolicyError) as caught:
            session.assert_facts([fact])
        assert caught.value.code == "policy.inclusion"
        assert "stands without" in caught.value.message
    assert session.query("holds") == [(A, Name("/admin"))]
    session.update([], [("user", (B,)), ("holds", (B, Name("/admin")))])
    assert session.query("strong") == [(A,), (B,)]
    with pytest.raises(PolicyError):
        session.retract_facts([("user", (B,))])
    assert accepts(policy, session_facts(session.facts()), prove(session, "strong", B))


def session_facts(rows: list[tuple[tuple[str, int], tuple[object, ...]]]) -> list[Fact]:
    return [(key[0], tuple(Name(str(value)) for value in row)) for key, row in rows]


def test_a_derived_row_is_held_to_its_inclusion_too() -> None:
    policy = load({"a.mg": "Decl p(X) inclusion [q(X)]. Decl q(X). Decl r(X). p(X) :- r(X)."})
    assert policy.session([("q", (1,)), ("r", (1,))]).query("p") == [(1,)]
    with pytest.raises(PolicyError) as caught:
        policy.session([("r", (1,))])
    assert caught.value.code == "policy.inclusion"


def test_an_inclusion_is_judged_when_the_world_has_answered() -> None:
    text = """
    Decl owner(F, U) descr [external(), mode("+", "-")].
    Decl task(F). Decl known(U).
    Decl mine(U) inclusion [known(U)].
    mine(U) :- task(F), owner(F, U).
    """
    for known, code in ((A, ""), (B, "policy.inclusion")):
        session = load({"a.mg": text}).session([("task", ("f",)), ("known", (known,))])
        (request,) = session.requests()
        try:
            session.supply(request, [("f", A)])
            found = session.query("mine")
            assert (found, code) == ([(A,)], "")
        except PolicyError as error:
            assert error.code == code


@pytest.mark.parametrize(
    ("bound", "good", "bad"),
    [
        ("/tool", Name("/tool/cc"), Name("/toolbox")),
        ("/tool", Name("/tool/a/b"), "/tool/a"),
        ("fn:Union(/string, /number)", "a", A),
        (".Union</string, /number>", 3, 3.0),
        ("fn:Union(/tool, fn:Singleton(/none))", Name("/none"), Name("/nothing")),
        ("fn:List(/number)", (1, 2), (1, "2")),
        (".List</number>", (), "[]"),
        ("fn:List(fn:Union(/string, /name))", ("a", A), (1,)),
        ("/bool", True, A),
        ("/float64", 0.5, 1),
        ("/any", (A,), None),
    ],
)
def test_a_bound_holds_for_stated_and_for_derived_rows(bound: str, good: object, bad: object) -> None:
    stated = load({"a.mg": f"Decl p(X) bound [{bound}]."})
    derived = load({"a.mg": f"Decl p(X) bound [{bound}].\nDecl q(X).\np(X) :- q(X)."})
    for policy, name in ((stated, "p"), (derived, "q")):
        session = policy.session([(name, (good,))])  # type: ignore[list-item]
        assert len(session.query("p")) == 1
        if bad is not None:
            with pytest.raises(PolicyError) as caught:
                session.assert_facts([(name, (bad,))])  # type: ignore[list-item]
            assert caught.value.code == "policy.type"
            assert len(session.query("p")) == 1


def test_bounds_that_are_alternatives_are_taken_as_rows() -> None:
    policy = load({"a.mg": "Decl p(X, Y) bound [/name, /name] bound [/string, /number]."})
    session = policy.session([("p", (A, B)), ("p", ("a", 1))])
    with pytest.raises(PolicyError, match="no alternative"):
        session.assert_facts([("p", (A, 1))])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use foo!\np(1).", [("policy.unsupported", 1)]),
        ("Package foo!\np(1).", [("policy.unsupported", 1)]),
        ("p(X) :- <-[0s,1d] q(X).", [("policy.unsupported", 9)]),
        ("p(X) :- [-[0s,1d] q(X).", [("policy.unsupported", 9)]),
        ("p(X) :- <+[0s,1d] q(X).", [("policy.unsupported", 9)]),
        ("Decl t(X) bound [/tool]. p(X) :- t(X), t(/other).", [("policy.constant", 42)]),
        ("Decl t(X) bound [fn:Union(/string, /number)]. p() :- t(/a).", [("policy.constant", 56)]),
        (
            'Decl t(X, Y) bound [/name, /string]. p() :- t("a", /b).',
            [("policy.constant", 47), ("policy.constant", 52)],
        ),
        ('Decl t(X) bound [/number]. p() :- t(X), !t("a").', [("policy.constant", 44)]),
        ("Decl p(X) inclusion [q(X)].", [("policy.undeclared", 22)]),
        (
            'Decl e(X) descr [external(), mode("+")]. Decl p(X) inclusion [e(X)].',
            [("policy.unsupported", 63)],
        ),
        ("Decl p(X, Y) bound [/name].", [("policy.arity", 1)]),
    ],
)
def test_what_cannot_hold_is_refused_by_name_and_place(text: str, expected: list[tuple[str, int]]) -> None:
    assert codes(text) == expected


def test_a_negative_number_beside_an_operator_is_a_number() -> None:
    assert load({"a.mg": "q(1). q(-5). p(X) :- q(X), X<-3."}).session().query("p") == [(-5,)]
    assert load({"a.mg": "p([-3, 1])."}).session().query("p") == [((-3, 1),)]


@pytest.mark.parametrize(
    ("rules", "code", "severity"),
    [
        ("n(0). n(fn:plus(X, 1)) :- n(X).", "policy.counter", "error"),
        ("n(0). n(Y) :- m(X), Y = fn:mult(X, 2). m(X) :- n(X).", "policy.counter", "error"),
        ("n(0). n(Y) :- n(X), Y = fn:plus(X, 1), Y < 9.", "policy.counter", "warning"),
        ("n(X, Y) :- n(X, Z), n(Z, Y). n(/a, /b).", "policy.nonlinear", "warning"),
        ("n(X) :- n(Y), n(Z), e(X, Y, Z). n(/a). e(/a, /b, /c).", "policy.nonlinear", "warning"),
    ],
)
def test_recursion_that_costs_is_told(rules: str, code: str, severity: str) -> None:
    try:
        found = load({"a.mg": rules}).diagnostics
    except PolicyError as error:
        found = tuple(item for item in error.diagnostics if isinstance(item, Finding))
    assert [item.severity for item in found if item.code == code] == [severity]
