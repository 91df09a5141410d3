"""No POLICY permits what the law does not, no team's rules lift a prohibition: over all predicates.

A pool of actions, attacks and ordinary ones, is judged in one session under each law, with and without a
text of a lower level. Two generators: for each predicate of the law every row that the values of the pool
give, and random policies of facts and rules. A text that is refused when it loads permits nothing.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from law_kit import under
from policy_kit import LAW as MANY
from spak.datalog import Fact, Name, Policy, PolicyError
from spak.datalog.session import load
from spak.policy.actions import Action, Seen, World
from spak.policy.facts import ACTION, facts
from spak.policy.law import RESERVED, Law, compiled
from spak.runner.genesis import constitution

PLACES = {"/etc/passwd": Seen("outside", "/etc/passwd", "file"), "../x": Seen("outside", "../x", "missing")}
ADDRESSES = {"home.example": ("127.0.0.1",), "meta.example": ("169.254.169.254",)}
WORLD = World(
    look=lambda path: PLACES.get(path, Seen("inside", path, "file")),
    spread=lambda pattern: (),
    read=lambda path: b"x\n",
    hosts=frozenset({"docs.example", "home.example", "meta.example"}),
    resolve=lambda host: ADDRESSES.get(host, ("93.184.216.34",)),
)
LINES = (
    "ls src", "pytest -q", "git push", "sudo ls", "simulate fast", "cat .env", "cat /etc/passwd",
    "git commit -m x", "rm -rf src", "curl https://other.example/", "echo x > .git/config", "git add a.py",
    "git clone https://other.example/a.git", "git clone git@docs.example:a/b.git",
)  # fmt: skip
CALLS = (
    *(Action("run", {"cmd": line}) for line in LINES),
    *(Action("shell", {"command": line}) for line in ("ls", "cat .ssh/id_rsa", "simulate fast")),
    Action("http_request", {"url": "https://docs.example/a"}),
    Action("http_request", {"url": "https://home.example/"}),
    Action("http_request", {"url": "https://meta.example/latest"}),
    Action("http_request", {"url": "https://other.example/"}),
    Action("http_request", {"url": "http://docs.example/"}),
    Action("http_request", {"url": "https://docs.example/", "method": "POST", "body": "x"}),
    Action("http_request", {"url": "https://docs.example/", "headers": {"X-Key": "secret://KEY"}}),
    Action("http_request", {"url": "https://docs.example/?k=AKIAQQQQQQQQQQQQQQQQ"}),
    Action("read_file", {"path": "src/a.py"}),
    Action("read_file", {"path": ".env"}),
    Action("read_file", {"path": "/etc/passwd"}),
    Action("write_file", {"path": "src/a.py", "content": "x"}),
    Action("write_file", {"path": ".git/hooks/pre-commit", "content": "x"}),
    Action("write_file", {"path": "Makefile", "content": "all:"}),
    Action("write_file", {"path": "src/b.py", "content": "secret://KEY"}),
    Action("delete_file", {"path": ".git/config"}),
    Action("apply_patch", {"patch": "nonsense"}),
    Action("git_commit", {"message": "x", "paths": ["a.py"]}),
    Action("python_repl", {"code": "1"}),
    Action("deploy", {"key": "secret://KEY"}),
    Action("recall", {"ref": 1}),
)
OPERATOR = 'permitted(A) :- tool(A, /deploy), site(S), argument(A, "site", S).\nsite("a").\n'
OPERATOR += "forbidden(A) :- uses_path(A, /edits, _, P), !editable(P).\neditable(P) :- ours(P).\n"
OPERATOR += 'ours("src/a.py"). ours("Makefile").\n'
TEAM = (
    'permitted(A) :- tool(A, /deploy), fine(A).\nfine(A) :- tool(A, _), on_call("ann").\nDecl on_call(Who).\n'
)
LAWS = {
    "shipped": under(),
    "operator": under(OPERATOR),
    "team": Law(constitution(), {"o.mg": OPERATOR}, {"t.mg": TEAM}),
}


def stated() -> list[Fact]:
    """The facts of all calls, each under a name of its own, held by a sandbox, held by none, and signed."""
    found: dict[Fact, None] = {}
    for number, call in enumerate(CALLS):
        known = facts(call, WORLD)
        for how, more in (("held", ("sandboxed", "/restricted")), ("loose", ("sandboxed", "/none"))):
            mine = Name(f"/{how}{number}")
            own = [*known, (more[0], (ACTION, Name(more[1])))]
            for pred, args in own:
                found[pred, tuple(mine if arg == ACTION else arg for arg in args)] = None
    for number in (0, 3, 15):
        found["signed_approval", (Name(f"/held{number}"), "alice")] = None
    for act in ("ask", "plan", "check", "validate", "tool"):
        found["act", (Name(f"/{act}"), Name(f"/{act}"))] = None
    found["validator", (Name("/validate"), "PyTest")] = None
    return list(found)


FACTS = stated()
RUNS: dict[str, list[Fact]] = {
    "free": [],
    "checked": [("checks_ran", ("PyTest", Name("/success")))],
    "narrowed": [("declared_tool", (Name("/run"),)), ("in_task", ("build",))],
    "spent": [
        ("spent", (Name("/steps"), 9)),
        ("allowance", (Name("/steps"), 8)),
        ("checks_ran", ("PyTest", Name("/fail"))),
    ],
}
"""Facts of the run around all of them."""
Judged = tuple[frozenset[object], frozenset[object]]


def judge(policy: Policy, run: str) -> Judged:
    """What is permitted and what is forbidden. Raises: PolicyLimit as a run would be refused."""
    session = policy.session([*FACTS, *RUNS[run]])
    session.settle(lambda requests: [[] for _ in requests])
    forbidden = frozenset(row[0] for row in session.query("forbidden", None))
    return frozenset(row[0] for row in session.query("permitted", None)) - forbidden, forbidden


@cache
def before(law: str, run: str) -> Judged:
    return judge(compiled(LAWS[law], "", {}), run)


def loaded(law: Law, text: str) -> Policy | None:
    """None where it is refused. Reading a policy takes ten times as long as judging the pool under it."""
    try:
        return compiled(law, text, {})
    except PolicyError:
        return None


def test_the_pool_has_attacks_and_ordinary_calls() -> None:
    for law, run in product(LAWS, RUNS):
        permitted, forbidden = before(law, run)
        assert forbidden and permitted and len(permitted) < len(CALLS) * 2
    assert len(before("shipped", "checked")[0]) > 12


# ---- every row of every predicate

SHIPPED = load(constitution())
HEADS = sorted(key for key in SHIPPED.predicates if key[0] not in RESERVED)
NAMES = sorted(
    {str(arg) for _, args in FACTS for arg in args if isinstance(arg, Name)}
    - {str(args[0]) for pred, args in FACTS if pred == "tool"}
)
MORE = ("/public", "/loopback", "/link_local", "/ssh", "/restricted", "/none", "/secret", "/git", "/outside")
STRINGS = ("KEY", "other.example", "home.example", "POST", "http", "x-key", "key", "headers.X-Key", "content",
           "PyTest", "src/b.py", "Makefile", "a", "ann", "alice", "")  # fmt: skip
POOL = "".join(f"n({name}).\n" for name in {*NAMES, *MORE})
POOL += "".join(f'w("{text}").\n' for text in STRINGS)
POOL += "i(1).\ni(1000).\n"
POOL += "m(A) :- tool(A, _).\nm(A) :- act(A, _).\n"
SECOND = {"evidence": "w", "misplaced_secret": "w", "security_violation": "w", "broken": "w"}
"""The kind of the columns of predicates that nothing declares; the others have actions, as the first is."""
STRING_HEADS = ("block_commit", "broken", "impacted", "modified", "uncovered", "unsafe_to_refactor",
                "needs_testing", "touched")  # fmt: skip


def every_row(key: tuple[str, int]) -> str:
    """A policy in which the predicate has each row that the values of the pool give."""
    decl = SHIPPED.decls.get(key)
    kinds = [bound.kind for bound in decl.bounds[0]] if decl is not None and decl.bounds else []
    body = []
    for place in range(key[1]):
        if kinds:
            how = {"string": "w", "number": "i"}.get(kinds[place], "n")
            named = decl is not None and getattr(decl.atom.args[place], "name", "") == "Action"
            how = "m" if named else how
        else:
            how = "w" if key[0] in STRING_HEADS or place else "m"
        body.append(f"{how}(X{place})")
    columns = ", ".join(f"X{place}" for place in range(key[1]))
    return POOL + f"{key[0]}({columns})" + (f" :- {', '.join(body)}" if body else "") + ".\n"


WITH = {"shipped": tuple(RUNS), "team": ("checked",)}


def test_nothing_is_permitted_that_is_not_permitted_without_the_policy() -> None:
    narrowing = 0
    for key in HEADS:
        text = every_row(key)
        for name, runs in WITH.items():
            policy = loaded(LAWS[name], text)
            for run in runs if policy is not None else ():
                wider = judge(policy, run)[0] - before(name, run)[0]
                assert not wider, (key, name, run, wider)
                narrowing += 1
    assert narrowing > 100, "many predicates narrow, and those are open"


@pytest.mark.parametrize("name", ["site", "ours", "editable", "fine", "on_call"])
def test_predicates_of_those_in_charge_are_closed_too(name: str) -> None:
    assert not loaded(LAWS["team"], f"{name}(X) :- {'tool(X, _)' if name == 'fine' else 'in_task(X)'}.")


def test_no_rules_of_a_team_lift_a_prohibition() -> None:
    tried = 0
    for key in HEADS:
        law = Law(constitution(), {"o.mg": OPERATOR}, {"t.mg": every_row(key)})
        policy = None if key[0] in ("allowed_host", "allowed_port", "secret_may_go") else loaded(law, "")
        for run in ("checked", "narrowed") if policy is not None else ():
            lifted = before("operator", run)[1] - judge(policy, run)[1]
            assert not lifted, (key, run, lifted)
            tried += 1
    assert tried > 40


# ---- random policies

TERMS: dict[str, tuple[str, ...]] = {
    "name": ("N", "M", "/run", "/http_request", "/loopback", "/secret", "/reads", "_"),
    "string": ("S", "T", '"KEY"', '"other.example"', "_"),
    "number": ("I", "1", "_"),
    "any": ("S", "_"),
    "float64": ("0.5", "_"),
}
ALL = sorted(key for key in SHIPPED.predicates if key[0] not in ("entropy", "permitted", "forbidden"))


def columns(key: tuple[str, int]) -> list[str]:
    decl = SHIPPED.decls.get(key)
    if decl is not None and decl.bounds:
        return [bound.kind for bound in decl.bounds[0]]
    return ["string" if key[0] in STRING_HEADS or place else "action" for place in range(key[1])]


@st.composite
def atoms(draw: st.DrawFn, keys: list[tuple[str, int]], bound: frozenset[str] | None = None) -> str:
    key = draw(st.sampled_from(keys))
    args = []
    for place, kind in enumerate(columns(key)):
        known = TERMS.get(kind, ("A",)) if place or kind != "name" else ("A", *TERMS["name"])
        choices = [term for term in known if bound is None or not term.isupper() or term in bound]
        choices = [term for term in choices if bound is None or term != "_"] or ["/x"]
        args.append(draw(st.sampled_from(choices)))
    return f"{key[0]}({', '.join(args)})"


def variables(parts: list[str]) -> frozenset[str]:
    return frozenset(
        word for part in parts for word in part[:-1].replace("(", ", ").split(", ") if word.isupper()
    )


@st.composite
def clauses(draw: st.DrawFn) -> str:
    body = [draw(st.sampled_from(["tool(A, N)", "mine(A)", "act(A, N)", "uses_path(A, N, M, S)"]))]
    body += draw(st.lists(atoms(ALL), max_size=2))
    known = variables(body)
    body += ["!" + part for part in draw(st.lists(atoms(ALL, known), max_size=1))]
    heads = [*HEADS, ("forbidden", 1), ("mine", 1)]
    head = draw(st.one_of(st.just("forbidden(A)"), st.just("mine(A)"), atoms(heads, known)))
    return f"{head} :- {', '.join(body)}."


@MANY
@given(
    st.lists(clauses(), min_size=1, max_size=3), st.sampled_from(sorted(LAWS)), st.sampled_from(sorted(RUNS))
)
def test_no_random_policy_permits_more(drawn: list[str], name: str, run: str) -> None:
    text = "mine(A) :- act(A, /never).\n" + "\n".join(drawn)
    try:
        permitted, _ = judge(compiled(LAWS[name], text, {}), run)
    except PolicyError:
        return
    assert permitted <= before(name, run)[0], text
