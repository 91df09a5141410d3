"""The seed's own fragments and other forms of the dialect: how each is read, what is said of it."""

from __future__ import annotations

import pytest

from spak.datalog import Name, Policy, PolicyError, load
from spak.datalog.explain import prove
from spak.datalog.syntax import Finding
from spak.datalog.text.format import format_clause
from spak.datalog.text.parse import parse


def findings(text: str) -> list[Finding]:
    """Every finding, whether or not the policy loads."""
    try:
        return list(load({"a.mg": text}).diagnostics)
    except PolicyError as error:
        assert error.code == "policy.invalid"
        return [item for item in error.diagnostics if isinstance(item, Finding)]


def errors(text: str) -> list[str]:
    return [item.code for item in findings(text) if item.severity == "error"]


def fixes(text: str, code: str) -> list[str]:
    return [item.fix for item in findings(text) if item.code == code]


def ok(text: str) -> Policy:
    return load({"a.mg": text})


INTENT = """
Decl user_intent(
    ID.Type<n>,
    Category.Type<n>,      # /query, /mutation, /instruction
    Verb.Type<n>,          # /explain, /refactor, /debug, /generate
    Target.Type<string>,   # "auth system", "login button"
    Constraint.Type<string> # "no external libs"
).
"""
FOCUS = """
Decl focus_resolution(
    RawReference.Type<string>,  # "the auth thing"
    ResolvedPath.Type<string>,  # "/src/auth/handler.go"
    SymbolName.Type<string>,    # "AuthHandler"
    Confidence.Type<float>
).
clarification_needed(Ref) :-
    focus_resolution(Ref, *,*, Score),
    Score < 0.85.
"""
GRAPH = """
Decl file_topology(
    Path.Type<string>,
    LastModified.Type<int>,
    IsTestFile.Type<bool>    # Critical for TDD loops
).
Decl dependency_link(
    CallerID.Type<string>,
    CalleeID.Type<string>,
    ImportPath.Type<string>
).
Decl modified(X.Type<string>).
impacted(X) :- dependency_link(X, Y,*), modified(Y).
impacted(X) :- dependency_link(X, Z,*), impacted(Z). # Recursive Closure
"""
DIAGNOSTIC = """
Decl diagnostic(
    Severity.Type<n>,      # /panic, /error, /warning
    FilePath.Type<string>,
    Line.Type<int>,
    ErrorCode.Type<string>,
    Message.Type<string>
).
"""
BARRIER = (
    DIAGNOSTIC
    + """
block_commit("Build Broken") :-
    diagnostic(/error,_, *,*, _).
"""
)
REPAIR = """
Decl test_state(S.Type<n>).
Decl retry_count(N.Type<int>).
next_action(/read_error_log) :-
    test_state(/failing),
    retry_count(N), N < 3.
next_action(/analyze_root_cause) :-
    test_state(/log_read).
next_action(/escalate_to_user) :-
    test_state(/failing),
    retry_count(N), N >= 3.
"""
FIREWALL = """
Decl safe_action(A).
Decl admin_override(U).
Decl signed_approval(A).
Decl action_type(A, T).
Decl cmd_string(A, C).
permitted(Action) :- safe_action(Action).
permitted(Action) :-
    dangerous_action(Action),
    admin_override(User),
    signed_approval(Action).
dangerous_action(Action) :-
    action_type(Action, /exec_cmd),
    cmd_string(Action, Cmd),
    fn:string_contains(Cmd, "rm").
"""
BROWSER = """
Decl dom_node(ID.Type<n>, Tag.Type<n>, Parent.Type<n>).
Decl attr(ID.Type<n>, Key.Type<string>, Val.Type<string>).
Decl geometry(ID.Type<n>, X.Type<int>, Y.Type<int>, W.Type<int>, H.Type<int>).
Decl visible_text(ID.Type<n>, T.Type<string>).
target_checkbox(CheckID) :-
    dom_node(CheckID, /input, _),
    attr(CheckID, "type", "checkbox"),
    visible_text(TextID, "Agree"),
    geometry(CheckID, Cx, *,*, *),
    geometry(TextID, Tx,*, *,*),
    Cx < Tx.
"""
ACTIVATION = """
Decl new_fact(F).
Decl active_goal(G).
Decl tool_capabilities(T, C).
Decl goal_requires(G, C).
Decl dependency_link(A, B, I).
activation(Fact, 100) :- new_fact(Fact).
activation(Tool, 80) :-
    active_goal(Goal),
    tool_capabilities(Tool, Cap),
    goal_requires(Goal, Cap).
activation(FileB, 50) :-
    activation(FileA, Score),
    Score > 40,
    dependency_link(FileA, FileB).
context_atom(Fact) :-
    activation(Fact, Score),
    Score > 30.
"""
ABDUCTION = """
Decl symptom(Server, S).
Decl known_cause(S, C).
missing_hypothesis(RootCause) :-
    symptom(Server, Symptom),
    not known_cause(Symptom, _).
clarification_needed(Symptom) :- missing_hypothesis(Symptom).
"""


@pytest.mark.parametrize(
    "text",
    [INTENT, FOCUS, GRAPH, BARRIER, REPAIR, FIREWALL, BROWSER],
    ids=lambda text: text.split("(")[0].strip(),
)
def test_a_fragment_of_the_seed_loads_as_written(text: str) -> None:
    assert errors(text) == []


def test_the_clarification_threshold() -> None:
    session = ok(FOCUS).session(
        [("focus_resolution", ("a", "p", "s", 0.84)), ("focus_resolution", ("b", "p", "s", 0.85))]
    )
    assert session.query("clarification_needed") == [("a",)]


def test_impact_is_transitive() -> None:
    links = [("dependency_link", (str(at), str(at + 1), "i")) for at in range(300)]
    session = ok(GRAPH).session([*links, ("modified", ("300",))])
    assert len(session.query("impacted")) == 300
    assert prove(session, "impacted", "0").text().count("(rule") == 300


def test_the_barrier_of_section_2_is_told_that_names_are_meant() -> None:
    text = DIAGNOSTIC.replace("Severity.Type<n>,      # /panic, /error, /warning\n", "").replace(
        "Message.Type<string>", "Message.Type<string>, Severity.Type<n>"
    )
    rule = "block_commit :- diagnostic(\\_, \\_, \\_, \\_, Severity), Severity \\== 'Error'."
    found = findings(text + rule)
    (error,) = [item for item in found if item.severity == "error"]
    assert (error.code, error.fix) == ("policy.constant", "/error")
    assert {"_", "=", "block_commit()"} <= {item.fix for item in found if item.code == "policy.dialect"}


def test_the_barrier_blocks() -> None:
    session = ok(BARRIER).session([("diagnostic", (Name("/error"), "f", 3, "E1", "m"))])
    assert session.holds("block_commit", "Build Broken")


def test_arity_drift_is_an_error_with_its_fix() -> None:
    assert errors(ACTIVATION) == ["policy.arity"]
    assert fixes(ACTIVATION, "policy.arity") == ["dependency_link(FileA, FileB, _)"]


def test_the_unbound_head_is_named_and_mended() -> None:
    assert errors(ABDUCTION) == ["policy.unsafe"]
    assert fixes(ABDUCTION, "policy.unsafe") == ["missing_hypothesis(Symptom)"]
    mended = ABDUCTION.replace("RootCause", "Symptom")
    session = ok(mended).session([("symptom", ("s", "slow"))])
    assert session.holds("clarification_needed", "slow")


def test_the_override_that_is_tied_to_nothing_is_noticed() -> None:
    assert "User occurs only once" in [item.message for item in findings(FIREWALL)]


def test_the_geometry_join_is_noticed() -> None:
    assert "policy.product" in {item.code for item in findings(BROWSER)}


def test_the_closure_is_made_linear_and_says_so() -> None:
    text = "Decl depends_on(X, Y).\ndepends_on(X, Z) :- depends_on(X, Y), depends_on(Y, Z)."
    (found,) = findings(text)
    assert found.code == "policy.nonlinear"
    assert found.fix == "depends_on(X, Z) :- depends_on__given(X, Y), depends_on(Y, Z)."
    session = ok(text).session([("depends_on", (at, at + 1)) for at in range(300)])
    assert len(session.query("depends_on")) == 45_150
    session.retract_facts([("depends_on", (150, 151))])
    assert len(session.query("depends_on")) == 150 * 151 // 2 + 149 * 150 // 2


@pytest.mark.parametrize(
    ("text", "mangle"),
    [
        ("p(X) :- q(X), not r(X).", "p(X) :- q(X), !r(X)."),
        ("p(X) :- q(X), X == /foo.", "p(X) :- q(X), X = /foo."),
        ("p(/src/a.go).", "p(/src/a.go)."),
        ("p(X) :- q(X), X = /foo.", "p(X) :- q(X), X = /foo."),
        ("p() :- q(*, _).", "p() :- q(_, _)."),
        ("p :- q(\\_).", "p() :- q(_)."),
        ("p(X) :- q(X), fn:string_contains(X, 'y').", 'p(X) :- q(X), :string:contains(X, "y").'),
        ('p("\\"op\\"", "x\\"y\\n").', 'p("\\"op\\"", "x\\"y\\n").'),
        ("p(-3, 0.5, 1e3, [1, /a], [/k: 1], {/f: 2}).", "p(-3, 0.5, 1000.0, [1, /a], [/k: 1], {/f: 2})."),
        (
            "n(X, C) :- q(X, Y) |> do fn:group_by(X), let C = fn:count().",
            "n(X, C) :- q(X, Y) |> do fn:group_by(X), let C = fn:count().",
        ),
    ],
)
def test_a_form_of_the_dialect_is_read_as(text: str, mangle: str) -> None:
    source = parse(text, "a.mg")
    assert [item for item in source.findings if item.severity == "error"] == []
    assert [format_clause(clause) for clause in source.clauses] == [mangle]
    assert parse(mangle).clauses == source.clauses


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("p(0).\np(fn:plus(X, 1)) :- p(X).", ["policy.counter"]),
        ("Decl q(X).\np(X) :- q(X), !r(X).\nr(X) :- q(X), !p(X).", ["policy.cycle"]),
        ("Decl q(X).\nDecl r(X, Y).\np(X) :- q(X), !r(X, Y).", ["policy.unsafe"]),
        (".decl p(x: number)\np(1).", ["policy.syntax"]),
        ("Decl q(X, Y).\np(X) :- q(X).", ["policy.arity"]),
        ("Decl q(X) bound [/name].\nDecl r(X) bound [/string].\np(X) :- q(X), r(X).", ["policy.types"]),
        ("p(X) :- q(X, [1, 2).", ["policy.syntax"]),
        ("p(X, Y) :- q(X).", ["policy.unsafe"]),
        ("Decl q(X).\np(X) :- q(X)\nr(X) :- q(X).", ["policy.syntax"]),
        ("p(X) :- q(X), !never(X).", ["policy.undeclared"]),
        ("Decl q(X).\np(X) :- q(X), X < /a.", ["policy.types"]),
        ("Decl q(X).\np(X) :- q(X), :string:like(X, /a).", ["policy.builtin"]),
        ("p(1).\np(1, 2).", ["policy.arity"]),
        ("Decl p(X).\nDecl p(X).", ["policy.declared"]),
        ("Package foo!\np(1).", ["policy.unsupported"]),
        ("p(1)@[2020].", ["policy.undeclared"]),
        ("Decl p(X) bound [/number].\np(/a).", ["policy.constant"]),
        ("p(X) :- q(X), fn:plus(X) = .", ["policy.syntax"]),
    ],
)
def test_a_wrong_policy_is_refused_by_name(text: str, codes: list[str]) -> None:
    assert errors(text) == codes


def test_a_cycle_is_named() -> None:
    text = "Decl q(X).\na(X) :- q(X), !b(X).\nb(X) :- c(X).\nc(X) :- a(X)."
    (found,) = [item for item in findings(text) if item.severity == "error"]
    assert "a/1 -> b/1 -> c/1 -> a/1" in found.message
    assert (found.place.line, found.place.column) == (2, 1)


def test_products_and_single_variables_are_warnings() -> None:
    found = findings("Decl q(X).\nDecl r(X, Y).\np(X) :- q(X), r(Y, Z), Y != Z.\ns(X) :- r(X, Once).")
    assert [(item.code, item.severity, item.place.line) for item in found] == [
        ("policy.product", "warning", 3),
        ("policy.singleton", "warning", 4),
    ]


def test_several_errors_are_found_in_one_pass() -> None:
    found = findings("p(x).\nq(Y) :- .\nr(1)\ns(2).\nt(((.\n")
    assert [item.place.line for item in found if item.severity == "error"] == [1, 2, 3, 5]


@pytest.mark.parametrize(
    "text",
    [
        "\0" * 1000,
        "p(" * 100_000,
        "[" * 100_000,
        "p(" + "fn:list(" * 5000,
        '"' * 999,
        "p(1) :- " + "!" * 10_000,
        "q(1).\np(X) :- " + ", ".join(["q(X)"] * 5000) + ".",
    ],
    ids=["nul", "parens", "brackets", "calls", "quotes", "bangs", "literals"],
)
def test_hostile_text_is_refused_with_findings(text: str) -> None:
    assert errors(text)


def test_a_megabyte_of_facts_loads() -> None:
    text = "".join(f'p({at}, "some text of a fact", /a/b/c).\n' for at in range(25_000))
    assert len(ok(text).session().query("p")) == 25_000
