"""The guards of specs/policy/guards.mg: what stands before a commit, a refactoring and a request."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from spak import data
from spak.datalog import Fact, Name, Policy, Session, load
from spak.policy.facts import ACTION

FILES = {path.name: path.read_text() for path in sorted(data.path("specs/policy").glob("*.mg"))}
GUARDS = "guards.mg"

LINKS = [("b.py", "a.py", "a"), ("c.py", "b.py", "b"), ("d.py", "c.py", "c"), ("e.py", "x.py", "x")]
ALL_COVERED = ("a.py", "b.py", "c.py", "d.py", "e.py")


@cache
def policy(own: str = "", without: int = -1) -> Policy:
    """The constitution with a spec's own text, and without the n-th clause of the guards."""
    files = {**FILES, "POLICY": own}
    if without >= 0:
        place = clauses()[without].place
        lines = FILES[GUARDS].splitlines(keepends=True)
        after = next(
            (at for at in range(place.line, len(lines)) if lines[at - 1].rstrip().endswith(".")), len(lines)
        )
        files[GUARDS] = "".join(lines[: place.line - 1] + lines[after:])
    return load(files)


@cache
def clauses() -> list[Any]:
    found = load(FILES).clauses
    return sorted((item for item in found if item.place.file == GUARDS), key=lambda item: item.place.line)


def answered(session: Session, covered: Iterable[str], links: list[tuple[str, str, str]] = LINKS) -> Session:
    """The session with its questions answered, as a run answers them."""
    while requests := session.requests():
        for request in requests:
            match request.pred:
                case "dependency_link":
                    session.supply(request, links)
                case "test_coverage":
                    session.supply(request, [(request.args[0],)] if request.args[0] in covered else [])
                case "symbol_impact":
                    how = str(request.args[2])
                    session.supply(request, [("py:b.py#f", *request.args[1:])] if how in covered else [])
                case "entropy":
                    session.supply(request, [(request.args[0], 4.25)])
    return session


def fact(pred: str, *args: Any) -> Fact:
    return (pred, tuple(Name(arg) if isinstance(arg, str) and arg.startswith("/") else arg for arg in args))


def about(pred: str, *args: Any) -> Fact:
    return (pred, (ACTION, *fact(pred, *args)[1]))


COMMIT = [
    about("tool", "/git_commit"),
    about("uses_path", "/tracks", "/root", "."),
    about("sandboxed", "/restricted"),
]
SHELL = [about("tool", "/run"), about("sandboxed", "/restricted")]
LINE = [*SHELL, about("runs_program", 1, "git"), about("runs_words", 1, "git commit -am x")]
CHECKED = fact("checks_ran", "pytest", "/success")
OPINION = fact("checks_ran", "Judge", "/success")
SIGNED = about("signed_approval", "alice")
EDIT_A = [about("tool", "/write_file"), about("uses_path", "/edits", "/inside", "a.py")]
EDIT_X = [about("tool", "/apply_patch"), about("uses_path", "/edits", "/inside", "x.py")]
EDIT_D = [about("tool", "/write_file"), about("uses_path", "/edits", "/inside", "d.py")]
READ_A = [about("tool", "/read_file"), about("uses_path", "/reads", "/inside", "a.py")]
PUSH = [about("tool", "/git_push")]
NAMES = about("argument", "runs", "conftest.py")
OPEN_PUSH = "permitted(Action) :- tool(Action, /git_push)."
REFACTOR = "guard(/refactor)."
SYMBOLS = "guard(/symbols)."
ASK = [
    about("tool", "/http_request"),
    about("asks_url", "https", "evil.example", 443),
    about("asks_method", "GET"),
]
HOST = fact("allowed_host", "evil.example")
LENIENT = "permitted(Action) :- asks_url(Action, _, _, _)."


def error(severity: str) -> Fact:
    return fact("diagnostic", severity, "a.py", 3, "E1", "wrong")


def on(files: str, signal: str) -> Fact:
    return fact("checks_ran_on", "root", files, signal)


SEALED = fact("sealed_checks", "a hash")
CASES: list[tuple[str, list[Fact], tuple[str, ...], bool]] = [
    # the commit barrier
    ("", [*COMMIT, CHECKED], (), True),
    ("", COMMIT, (), False),
    ("", [*COMMIT, OPINION], (), False),
    ("", [*COMMIT, OPINION, CHECKED], (), True),
    ("", [*COMMIT, CHECKED, fact("checks_ran", "Judge", "/fail")], (), False),
    ("", [*COMMIT, SIGNED], (), True),
    ("", [*COMMIT, CHECKED, error("/warning"), error("/info")], (), True),
    ("", [*COMMIT, CHECKED, error("/error")], (), False),
    ("", [*COMMIT, CHECKED, error("/panic")], (), False),
    ("", [*COMMIT, CHECKED, fact("checks_ran", "lint", "/fail")], (), False),
    ("", [*COMMIT, CHECKED, fact("checks_ran", "lint", "/timeout")], (), False),
    ("", [*COMMIT, SIGNED, CHECKED, error("/error")], (), False),
    ("", [*COMMIT, SIGNED, CHECKED, error("/panic")], (), False),
    ("", [*COMMIT, SIGNED, fact("checks_ran", "lint", "/fail")], (), False),
    ("", [*COMMIT, SIGNED, fact("checks_ran", "lint", "/timeout")], (), False),
    ("", [COMMIT[0], COMMIT[2], CHECKED], (), False),
    ("", [*COMMIT, CHECKED, about("uses_path", "/tracks", "/secret", ".env")], (), False),
    ("", [*COMMIT, CHECKED, on("/own", "/success"), on("/beginning", "/success")], (), True),
    ("", [*COMMIT, CHECKED, on("/own", "/success"), on("/beginning", "/fail")], (), False),
    ("", [*COMMIT, CHECKED, on("/beginning", "/timeout")], (), False),
    ("", [*COMMIT, CHECKED, SIGNED, on("/beginning", "/fail")], (), True),
    ("", [*COMMIT, fact("checks_ran", "time", "/metric_improved")], (), True),
    ("", [*COMMIT, fact("checks_ran", "time", "/plateau")], (), False),
    ("permitted(Action) :- tool(Action, /git_commit).", COMMIT, (), False),
    # a commit of a command line is one of the scratch repository, which leaves no run
    ("", [*LINE, error("/error")], (), True),
    ("", LINE, (), True),
    ("", [*EDIT_A, error("/error")], (), True),
    # a push
    ("", PUSH, (), False),
    ("", [*PUSH, SIGNED, NAMES], (), True),
    ("", [*PUSH, SIGNED, fact("checks_ran", "lint", "/fail")], (), False),
    (OPEN_PUSH, PUSH, (), True),
    (OPEN_PUSH, [*PUSH, NAMES], (), False),
    (OPEN_PUSH, [*PUSH, NAMES, SIGNED], (), True),
    (OPEN_PUSH, [*PUSH, CHECKED, on("/beginning", "/fail")], (), False),
    (OPEN_PUSH, [*PUSH, SIGNED, CHECKED, on("/beginning", "/fail")], (), True),
    (OPEN_PUSH, [*PUSH, SIGNED, error("/error")], (), False),
    # sealed checks come last: a commit waits in the run, and a push for a person
    ("", [*COMMIT, CHECKED, SEALED], (), True),
    ("", [*COMMIT, CHECKED, SEALED, on("/sealed", "/success")], (), True),
    (OPEN_PUSH, [*PUSH, CHECKED, SEALED], (), False),
    (OPEN_PUSH, [*PUSH, CHECKED, SEALED, on("/sealed", "/success")], (), True),
    (OPEN_PUSH, [*PUSH, SIGNED, CHECKED, SEALED], (), True),
    # the refactoring guard
    ("", EDIT_A, (), True),
    (REFACTOR, EDIT_A, ALL_COVERED, True),
    (REFACTOR, EDIT_A, (), False),
    (REFACTOR, EDIT_A, ("b.py",), False),
    (REFACTOR, EDIT_A, ("c.py", "d.py"), False),
    (REFACTOR, EDIT_A, ("b.py", "c.py"), False),
    (REFACTOR, EDIT_A, ("b.py", "c.py", "d.py"), True),
    (REFACTOR, [*EDIT_A, SIGNED], (), True),
    (REFACTOR, [*EDIT_A, about("admin_override", "charlie")], (), True),
    (REFACTOR, EDIT_X, (), False),
    (REFACTOR, EDIT_X, ("e.py",), True),
    (REFACTOR, EDIT_D, (), True),
    (REFACTOR, [*EDIT_D, about("uses_path", "/edits", "/inside", "x.py")], (), False),
    (REFACTOR, READ_A, (), True),
    # the same by symbols; `covered` is how the model answers
    ("", EDIT_A, ("/untested",), True),
    (SYMBOLS, EDIT_A, (), True),
    (SYMBOLS, EDIT_A, ("/tested",), True),
    (SYMBOLS, EDIT_A, ("/untested",), False),
    (SYMBOLS, EDIT_A, ("/unresolved",), False),
    (SYMBOLS, EDIT_A, ("/unparsed",), False),
    (SYMBOLS, [*EDIT_A, SIGNED], ("/untested", "/unparsed"), True),
    (SYMBOLS, READ_A, ("/untested",), True),
    # requests
    ("", [*ASK, HOST], (), True),
    ("", ASK, (), False),
    (LENIENT, ASK, (), False),
    (LENIENT, [*ASK, SIGNED], (), True),
    (LENIENT, [*ASK, HOST], (), True),
    ("guard(/evidence).", [*ASK, HOST], (), True),
    ("guard(/evidence).", ASK, (), False),
]


def allowed(session: Session) -> bool:
    return session.holds("permitted", ACTION) and not session.holds("forbidden", ACTION)


@pytest.mark.parametrize(("own", "facts", "covered", "wanted"), CASES)
def test_a_guarded_action(own: str, facts: list[Fact], covered: tuple[str, ...], wanted: bool) -> None:
    assert allowed(answered(policy(own).session(facts), covered)) is wanted


def test_a_session_asks_only_where_a_guard_stands() -> None:
    for facts in (COMMIT, EDIT_A, ASK, READ_A):
        assert policy().session(facts).complete
    session = policy(REFACTOR).session(EDIT_A)
    assert [str(request) for request in session.requests()] == ["dependency_link(_, _, _)"]
    session.supply(session.requests()[0], LINKS)
    assert [str(item) for item in session.requests()] == [f'test_coverage("{name}.py")' for name in "bcd"]
    assert policy(REFACTOR).session(READ_A).complete
    session = policy(SYMBOLS).session(EDIT_A)
    asked = [f'symbol_impact(_, "a.py", /{how})' for how in ("unparsed", "unresolved", "untested")]
    assert sorted(map(str, session.requests())) == asked


def test_impact_ends_in_circles() -> None:
    circle = [("a.py", "b.py", "b"), ("b.py", "a.py", "a"), ("a.py", "a.py", "a")]
    session = answered(policy(REFACTOR).session(EDIT_A), (), circle)
    assert session.query("impacted") == [("a.py",), ("b.py",)]


def test_the_reasons_of_the_barrier_and_of_a_violation() -> None:
    session = policy().session([*COMMIT, error("/error"), fact("checks_ran", "lint", "/timeout")])
    assert session.query("block_commit") == [
        ("Build Broken",),
        ("Check Timed Out",),
        ("No Check Ran",),
    ]
    assert policy().session(COMMIT).query("block_commit") == [("No Check Ran",)]
    assert policy().session(ASK).query("security_violation") == [(ACTION, "evil.example")]


def test_entropy_is_evidence_and_never_a_reason() -> None:
    """No rule that permits or forbids can be reached from it, and without a violation it says nothing."""
    session = answered(policy("guard(/evidence).").session(ASK), ())
    assert session.query("evidence") == [(ACTION, "evil.example", 4.25)]
    assert answered(policy("guard(/evidence).").session([*ASK, HOST]), ()).query("evidence") == []
    low = policy("guard(/evidence).").session(ASK)
    low.supply(low.requests()[0], [("evil.example", 3.999)])
    assert low.query("evidence") == []
    for clause in policy().clauses:
        used = {part.atom.pred for part in clause.body if hasattr(part, "atom")}
        assert clause.head.pred == "evidence" or not used & {"entropy", "evidence"}


def outcome(without: int = -1) -> list[Any]:
    """What all the cases decide and tell."""
    found: list[Any] = []
    for own, facts, covered, _ in CASES:
        try:
            session = answered(policy(own, without).session(facts), covered)
        except Exception as error:  # a policy that no longer loads is a difference
            return [type(error).__name__]
        told = [session.query(pred) for pred in ("block_commit", "evidence", "needs_testing")]
        found.append((allowed(session), told))
    return found


@pytest.mark.parametrize("index", range(len(clauses())))
def test_no_rule_of_the_guards_is_idle(index: int) -> None:
    """Without any one of them some case comes out otherwise."""
    assert outcome(index) != outcome(), clauses()[index].place
