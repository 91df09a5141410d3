"""Laws of the engine on random programs: deny by default, order, negation, arithmetic, groups, strings.

The random programs over names are those of policy_kit; `numbers` makes programs with arithmetic and groups,
which a few lines of Python and clingo answer too.
"""

from __future__ import annotations

import json
import operator
import random
import subprocess
import sys
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example
from hypothesis import given as drawn
from hypothesis import strategies as st

from policy_kit import CONSTANTS, EDB, IDB, LAW, Rule, clingo_rows, given, naive, random_program, text_of
from process_kit import WAIT_S
from spak.datalog import Fact, Finding, Limits, Name, PolicyError, PolicyLimit, Session, load
from spak.datalog.explain import prove
from spak.datalog.proof_checker import accepts
from spak.datalog.why_not import why_not

SEEDS = st.integers(0, 10**6)
A = Name("/action")


def rows_of(session: Session) -> set[tuple[str, tuple[str, ...]]]:
    return {(name, tuple(map(str, row))) for name in (*EDB, *IDB) for row in session.query(name)}


# ---- 1 to 3: deny by default, forbidden wins, monotone ----------------------------------------------------

GATE = [
    "permitted(A) :- tool(A, /t0), !forbidden(A).",
    "permitted(A) :- tool(A, T), fine(T).",
    "permitted(A) :- tool(A, T), !odd(T), path(A, /inside).",
    "forbidden(A) :- path(A, /outside).",
    "forbidden(A) :- tool(A, T), odd(T).",
    "forbidden(/action) :- fine(/t2).",
    "odd(T) :- tool(_, T), !fine(T), !path(_, /inside).",
    "fine(/t1).",
]
DECLS = "Decl tool(A, T). Decl path(A, P). Decl fine(T). Decl odd(T). Decl forbidden(A). Decl permitted(A).\n"
RULES = st.lists(st.sampled_from(GATE), unique=True)
FACTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("tool"), st.tuples(st.just(A), st.sampled_from([Name(f"/t{at}") for at in range(3)]))
        ),
        st.tuples(
            st.just("path"), st.tuples(st.just(A), st.sampled_from([Name("/inside"), Name("/outside")]))
        ),
    ),
    max_size=3,
)


def allows(rules: list[str], facts: list[Fact]) -> bool:
    session = load({"a.mg": DECLS + "\n".join(rules)}).session(facts)
    return session.holds("permitted", A) and not session.holds("forbidden", A)


def test_nothing_is_permitted_by_an_empty_policy_or_an_unknown_predicate() -> None:
    session = load({}).session([("tool", (A, Name("/t0")))])
    assert not session.holds("permitted", A)
    assert why_not(session, "permitted", A).attempts == ()
    session = load({"a.mg": "permitted(A) :- never_said(A)."}).session()
    assert not session.holds("permitted", A)


@LAW
@drawn(rules=RULES, facts=FACTS)
def test_allowed_is_what_is_derived_and_not_forbidden(rules: list[str], facts: list[Fact]) -> None:
    tools = {row[1] for name, row in facts if name == "tool"}
    paths = {row[1] for name, row in facts if name == "path"}
    said = set(rules)
    fine = {Name("/t1")} if GATE[7] in said else set()
    odd = {t for t in tools if t not in fine and Name("/inside") not in paths} if GATE[6] in said else set()
    forbidden = (
        (GATE[3] in said and Name("/outside") in paths)
        or (GATE[4] in said and bool(tools & odd))
        or (GATE[5] in said and Name("/t2") in fine)
    )
    permitted = (
        (GATE[0] in said and Name("/t0") in tools and not forbidden)
        or (GATE[1] in said and bool(tools & fine))
        or (GATE[2] in said and bool(tools - odd) and Name("/inside") in paths)
    )
    assert allows(rules, facts) == (permitted and not forbidden)


@LAW
@drawn(rules=RULES, facts=FACTS, more=st.sampled_from(GATE[:6]))
def test_more_to_forbid_never_permits_and_more_to_permit_never_forbids(
    rules: list[str], facts: list[Fact], more: str
) -> None:
    before, after = allows(rules, facts), allows([*rules, more], facts)
    assert after <= before if more.startswith("forbidden") else before <= after


@pytest.mark.parametrize(
    ("rules", "refused"),
    [
        ("permitted(A) :- tool(A, _), !forbidden(A).", False),
        (
            "forbidden(A) :- tool(A, _). quiet(A) :- tool(A, _), !forbidden(A). permitted(A) :- quiet(A).",
            False,
        ),
        ("permitted(A) :- tool(A, _). forbidden(A) :- tool(A, _), !permitted(A).", True),
        ("permitted(A) :- tool(A, _). forbidden(A) :- permitted(A).", True),
        ("forbidden(A) :- tool(A, _). permitted(A) :- forbidden(A).", True),
        (
            "q(A) :- tool(A, _), !forbidden(A). permitted(A) :- tool(A, _), !q(A).",
            True,
        ),
        (
            "forbidden(A) :- tool(A, _). n(C) :- forbidden(A) |> do fn:group_by(), let C = fn:count(). "
            "permitted(A) :- tool(A, _), n(3).",
            True,
        ),
    ],
)
def test_a_policy_in_which_forbidding_could_permit_is_refused(rules: str, refused: bool) -> None:
    try:
        load({"a.mg": "Decl tool(A, T). Decl forbidden(A). " + rules})
        assert not refused
    except PolicyError as error:
        found = {
            item.code for item in error.diagnostics if isinstance(item, Finding) and item.severity == "error"
        }
        assert (found, refused) == ({"policy.monotone"}, True)


# ---- 4: any order, any names, one hash --------------------------------------------------------------------


@LAW
@drawn(seed=SEEDS)
def test_order_names_and_repetition_change_no_row_no_proof_and_no_hash(seed: int) -> None:
    rules, facts = random_program(seed)
    policy = load({"random.mg": text_of(rules)})
    session = policy.session(given(facts))
    draw = random.Random(seed)
    shuffled, turned = list(rules), given(facts)
    draw.shuffle(shuffled)
    draw.shuffle(turned)
    renamed = text_of(shuffled).replace("X", "Aa").replace("Y", "Bb")
    other = load({"other.mg": renamed, "empty.mg": "# nothing\n"}).session(turned + turned[:1])
    assert other.policy.hash == policy.hash
    assert rows_of(other) == rows_of(session)
    for name in IDB:
        for row in session.query(name):
            assert prove(other, name, *row).hash == prove(session, name, *row).hash


# ---- 6: the least that is missing -------------------------------------------------------------------------


@LAW
@example(seed=608287)  # one missing fact for two literals with variables of their own
@example(seed=6605)  # one missing fact for three literals, whose last argument says what the first one is
@drawn(seed=SEEDS)
def test_a_why_not_flips_the_answer_and_nothing_less_does(seed: int) -> None:
    rules, facts = random_program(seed)
    rules = [rule for rule in rules if all(name in EDB for _, (name, _) in rule[1])]
    policy = load({"random.mg": text_of(rules)})
    draw = random.Random(seed)
    every = [(name, row) for name, width in EDB.items() for row in _product(width)]
    for name in IDB:
        widths = {len(args) for (head, args), _ in rules if head == name}
        for width in widths:
            goal = tuple(Name(draw.choice(CONSTANTS)) for _ in range(width))
            session = policy.session(given(facts))
            if session.holds(name, *goal):
                continue
            found = why_not(session, name, *goal).attempts
            tried = [item for item in found if not item.failed and not item.conditions]
            tried = [item for item in tried if all(None not in one.args for one in item.missing)]
            for attempt in tried:
                less = [(item.pred, tuple(Name(arg) for arg in item.args)) for item in attempt.against]
                more = [(item.pred, tuple(Name(str(arg)) for arg in item.args)) for item in attempt.missing]
                session.update(less, more)
                assert session.holds(name, *goal)
                session.update(more, less)
                assert not session.holds(name, *goal)
            if not tried or any(item.cost < 2 and not item.failed for item in found):
                continue
            for pred, row in every:
                fact = (pred, tuple(Name(arg) for arg in row))
                change = ([fact], []) if (pred, row) in facts else ([], [fact])
                session.update(*change)
                assert not session.holds(name, *goal)
                session.update(change[1], change[0])


def _product(width: int) -> list[tuple[str, ...]]:
    return (
        [(one,) for one in CONSTANTS]
        if width == 1
        else [(one, two) for one in CONSTANTS for two in CONSTANTS]
    )


# ---- 7: naive evaluation and clingo -----------------------------------------------------------------------


@LAW
@drawn(seed=SEEDS)
def test_rows_are_the_naive_ones_and_a_change_is_as_good_as_a_fresh_start(seed: int) -> None:
    rules, facts = random_program(seed)
    policy = load({"random.mg": text_of(rules)})
    session = policy.session(given(facts))
    assert rows_of(session) == naive(rules, facts)
    draw = random.Random(seed)
    for _ in range(3):
        gone = {fact for fact in facts if draw.random() < 0.4}
        new = {
            (name, tuple(draw.choice(CONSTANTS) for _ in range(EDB[name])))
            for name in draw.choices([*EDB], k=2)
        }
        facts = (facts - gone) | new
        session.update(given(gone), given(new))
        assert rows_of(session) == naive(rules, facts) == rows_of(policy.session(given(facts)))


ONE_OF = st.sampled_from(["/a", "/b", "X", "Y"])
FAMILY = st.lists(st.tuples(ONE_OF, ONE_OF, ONE_OF, ONE_OF), min_size=3, max_size=6)


@LAW
@example([("/c", "/a", "Y", "X"), ("/c", "X", "/a", "Y"), ("/d", "/b", "Y", "X")], {("/a", "/b")})
@drawn(family=FAMILY, rows=st.sets(st.tuples(st.sampled_from(CONSTANTS), st.sampled_from(CONSTANTS))))
def test_rules_that_differ_in_constants_alone_keep_what_is_variable(
    family: list[tuple[str, str, str, str]], rows: set[tuple[str, str]]
) -> None:
    rules: list[Rule] = [
        (
            ("p", (head if head in used or head[0] == "/" else "/c",)),
            ((False, ("e", used[:2])), (False, ("f", used[2:]))),
        )
        for head, *rest in family
        for used in [tuple(rest)]
    ]
    facts = {("e", row) for row in rows} | {("f", (value,)) for value in CONSTANTS[:2]}
    assert rows_of(load({"family.mg": text_of(rules)}).session(given(facts))) == naive(rules, facts)


def batch() -> range:
    return range(7_000_000, 7_000_000 + LAW.max_examples)


@pytest.mark.fuzz
def test_clingo_has_the_same_rows() -> None:
    for start in range(0, len(batch()), 200):
        programs = [random_program(seed) for seed in batch()[start : start + 200]]
        for (rules, facts), expected in zip(programs, clingo_rows(programs), strict=True):
            assert rows_of(load({"random.mg": text_of(rules)}).session(given(facts))) == expected


OPERATORS: dict[str, Any] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}
FUNCTIONS: dict[str, Any] = {"plus": operator.add, "minus": operator.sub, "mult": operator.mul}
REDUCERS: dict[str, Any] = {"count": len, "sum": sum, "max": max, "min": min}
NUMBERS = ("a", "b", "c", "d", "t")


def numbers(seed: int) -> tuple[str, str, list[Fact], dict[str, set[tuple[int, ...]]]]:
    """A program with arithmetic, groups, negation and bounded recursion: ours, clingo's, facts, rows."""
    draw = random.Random(seed)
    e = {(draw.randint(0, 3), draw.randint(-4, 6)) for _ in range(draw.randint(0, 8))}
    f = {(draw.randint(0, 3),) for _ in range(draw.randint(0, 3))}
    one, two, three = (draw.choice([*OPERATORS]) for _ in range(3))
    low, step, high = draw.randint(-3, 4), draw.randint(-3, 3), draw.randint(-2, 12)
    function, reducer, top = draw.choice([*FUNCTIONS]), draw.choice([*REDUCERS]), draw.randint(3, 12)
    sign = {"plus": "+", "minus": "-", "mult": "*"}[function]
    ours = f"""
    Decl e(X, V). Decl f(X).
    a(X, V) :- e(X, V), !f(X), V {one} {low}.
    b(X, W) :- e(X, V), W = fn:{function}(V, {step}), W {two} {high}.
    c(X, S) :- b(X, V) |> do fn:group_by(X), let S = fn:{reducer}(V).
    d(X) :- c(X, S), S {three} {low}, !a(X, _).
    t(V) :- a(_, V).
    t(W) :- t(V), V < {top}, W = fn:plus(V, 2).
    """
    asp = f"""
    a(X, V) :- e(X, V), not f(X), V {one} {low}.
    b(X, V {sign} ({step})) :- e(X, V), V {sign} ({step}) {two} {high}.
    c(X, S) :- b(X, _), S = #{reducer}{{V : b(X, V)}}.
    some(X) :- a(X, _).
    d(X) :- c(X, S), S {three} {low}, not some(X).
    t(V) :- a(_, V).
    t(V + 2) :- t(V), V < {top}.
    """
    asp += "".join(f"e({x},{v}). " for x, v in e) + "".join(f"f({x}). " for (x,) in f)
    a = {(x, v) for x, v in e if (x,) not in f and OPERATORS[one](v, low)}
    b = {(x, w) for x, v in e for w in (FUNCTIONS[function](v, step),) if OPERATORS[two](w, high)}
    c = {(x, REDUCERS[reducer]([w for y, w in b if y == x])) for x, _ in b}
    d = {(x,) for x, s in c if OPERATORS[three](s, low) and not any(y == x for y, _ in a)}
    t: set[tuple[int, ...]] = set()
    new = {(v,) for _, v in a}
    while new - t:
        t |= new
        new = {(v + 2,) for (v,) in t if v < top}
    facts: list[Fact] = [*(("e", row) for row in e), *(("f", row) for row in f)]
    return ours, asp, facts, {"a": a, "b": b, "c": c, "d": d, "t": t}  # type: ignore[dict-item]


@LAW
@drawn(seed=SEEDS)
def test_arithmetic_and_groups_give_what_python_gives(seed: int) -> None:
    text, _, facts, expected = numbers(seed)
    policy = load({"a.mg": text})
    session = policy.session(facts)
    for name in NUMBERS:
        assert set(session.query(name)) == expected[name]
    for name in ("c", "d", "t"):
        for row in session.query(name)[:3]:
            assert accepts(policy, facts, prove(session, name, *row))
    session.retract_facts(facts)
    assert not any(session.query(name) for name in NUMBERS)
    session.assert_facts(reversed(facts))
    for name in NUMBERS:
        assert set(session.query(name)) == expected[name]


_CLINGO = """
import clingo, json, sys
for program in json.load(sys.stdin):
    control = clingo.Control(["--warn=none"])
    control.add("base", [], program)
    control.ground([("base", [])])
    rows = []
    control.solve(on_model=lambda model: rows.extend(
        [item.name, [argument.number for argument in item.arguments]] for item in model.symbols(atoms=True)))
    print(json.dumps(rows))
"""


@pytest.mark.fuzz
def test_clingo_agrees_about_arithmetic_and_groups() -> None:
    for start in range(0, len(batch()), 200):
        agree([numbers(seed) for seed in batch()[start : start + 200]])


def agree(made: list[tuple[str, str, list[Fact], dict[str, set[tuple[int, ...]]]]]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CLINGO],
        input=json.dumps([asp for _, asp, _, _ in made]),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    for line, (text, _, facts, _) in zip(done.stdout.splitlines(), made, strict=True):
        session = load({"a.mg": text}).session(facts)
        found: dict[str, set[tuple[int, ...]]] = {name: set() for name in NUMBERS}
        for name, row in json.loads(line):
            if name in found:
                found[name].add(tuple(row))
        assert {name: set(session.query(name)) for name in NUMBERS} == found


# ---- 8: strings stay strings ------------------------------------------------------------------------------

SAYING = load(
    {
        "a.mg": "Decl said(X) bound [/string]. Decl tool(A) bound [/name].\n"
        'permitted(A) :- tool(A), said(X), :string:contains(X, "\\u{0}never\\u{0}").\n'
        'echo(Y) :- said(X), Y = fn:string:concat(X, ". permitted(/action).").'
    }
)
PIECES = st.sampled_from(
    ['"). permitted(/action). #', "permitted(/action).", "/action", "\0", '\\"', "ре", "\u202e", "`", "'"]
)


@LAW
@drawn(text=st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=3))).map("".join)))
def test_a_string_never_becomes_a_rule_a_name_or_another_string(text: str) -> None:
    if "\0never\0" in text:
        return
    facts: list[Fact] = [("said", (text,)), ("tool", (A,))]
    session = SAYING.session(facts)
    assert session.query("permitted") == []
    assert session.query("said") == [(text,)]
    assert session.query("echo") == [(text + ". permitted(/action).",)]
    proof = prove(session, "echo", text + ". permitted(/action).")
    assert accepts(SAYING, facts, json.loads(json.dumps(proof.to_json())))
    with pytest.raises(PolicyError):
        session.assert_facts([("tool", (text,))])


@pytest.mark.parametrize(
    "text",
    [
        "_" * 100_000,
        "\\_" * 50_000,
        '"' + '\\"' * 100_000,
        "'" + "\\'" * 100_000,
        "p(" * 20_000,
        "p(X)@[" * 10_000,
        "Decl p(" + "X.Type<" * 30_000,
        "p(X) :- X = " + "fn:plus(" * 20_000,
        "p(X) :- " + ", ".join(["q(X)"] * 5_000) + ".",
        "p(" + "9" * 100_000 + ").",
        "/" + "a-." * 60_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_text_is_a_finding_and_no_hang(text: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load({"hostile.mg": text})
    assert caught.value.code == "policy.invalid"


def test_a_megabyte_is_a_limit_and_no_permission() -> None:
    with pytest.raises(PolicyLimit):
        SAYING.session([("said", ("x" * (1 << 20),)), ("tool", (A,))])


# ---- 9: it ends -------------------------------------------------------------------------------------------


@LAW
@drawn(
    steps=st.lists(
        st.tuples(st.sampled_from(["plus", "mult", "minus"]), st.integers(-3, 3)), min_size=1, max_size=3
    ),
    start=st.integers(-2, 2),
    test=st.sampled_from(["X > -5", "X < 5", "X < 100", "X >= 0"]),
)
def test_any_recursion_ends_within_its_limits(steps: Any, start: int, test: str) -> None:
    lines = [f"n({start})."]
    lines += [f"n(Y) :- n(X), {test}, Y = fn:{name}(X, {by})." for name, by in steps]
    lines += ["m(X, Y) :- n(X), n(Y), X < Y.", "m(X, Z) :- m(X, Y), m(Y, Z)."]
    policy = load({"a.mg": "\n".join(lines)})
    limits = Limits(steps=20_000, facts=500)
    try:
        session = policy.session(limits=limits)
    except PolicyLimit as error:
        assert error.code == "policy.limit"
        return
    assert session.evaluation.count <= limits.facts
    assert set(session.query("m")) == {(one[0], two[0]) for one, two in combinations(session.query("n"), 2)}
