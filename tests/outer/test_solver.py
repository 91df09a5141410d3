"""The solver's answer about a change of the law: found, confirmed by the engine, and nothing missed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli_kit import raw, spak
from spak.datalog import Name, PolicyError, load
from spak.datalog.session import Policy
from spak.datalog.values import decode
from spak.errors import BugError, UnavailableError
from spak.outer.abstract_actions import kinds_of_acts
from spak.outer.solver import Answer, Asked, ask, question
from spak.outer.solver.domain import domain
from spak.outer.solver.search import Job, search
from spak.policy.toolfacts import ACTION

DECLS = """
Decl tool(Action, Tool) bound [/name, /name].
Decl uses_path(Action, How, Place, Path) bound [/name, /name, /name, /string].
Decl argument(Action, Name, Value) bound [/name, /string, /any].
Decl signed_approval(Action, Who) bound [/name, /string].
Decl spent(What, Amount) bound [/name, /number].
Decl allowance(What, Amount) bound [/name, /number].
Decl takes(Action, What, Amount) bound [/name, /name, /number].
"""


def law(more: str) -> Policy:
    return load({"law.mg": DECLS + more})


def at_once(job: Job, seconds: float) -> Iterator[dict[str, Any]]:
    """The solver in this process, which costs no start of another one."""
    return search(job)


def asked(old: str, new: str, most: int = 3) -> Asked:
    return ask(law(old), law(new), most, search=at_once)


def stated(found: Asked, direction: Any = "permitted") -> list[list[str]]:
    plain = ("act(", "sandboxed(")
    return [
        sorted(fact for fact in item.facts if not fact.startswith(plain)) for item in found.newly(direction)
    ]


DEPLOY = "tool(/action, /deploy)"
OVER = """
permitted(A) :- tool(A, /deploy).
forbidden(A) :- takes(A, W, N), spent(W, M), allowance(W, L), %s.
"""
NARROW = """
permitted(A) :- tool(A, /deploy), uses_path(A, _, /inside, P), !secret(P).
secret(P) :- uses_path(_, _, _, P), :string:ends_with(P, ".env").
"""
WIDENINGS = {
    "a negation is dropped": (
        NARROW,
        NARROW.replace(", !secret(P)", ""),
        1,
        ("uses_path(", '.env")'),
    ),
    "a comparison is loosened, over three facts and a sum": (
        OVER % "L < fn:plus(N, M)",
        OVER % "L < fn:minus(fn:plus(N, M), 1)",
        3,
        (),
    ),
    "a new rule by two joins": (
        "permitted(A) :- tool(A, /deploy), signed_approval(A, _).",
        "permitted(A) :- tool(A, /deploy), signed_approval(A, _).\n"
        "permitted(A) :- tool(A, /deploy), uses_path(A, /reads, P, X), uses_path(A, /writes, Q, X), P != Q.",
        2,
        (),
    ),
    "a number beyond 32 bits": (
        "permitted(A) :- tool(A, /deploy), spent(/steps, N), N < 9000000000000.",
        "permitted(A) :- tool(A, /deploy), spent(/steps, N), N <= 9000000000000.",
        1,
        ("spent(/steps, 9000000000000)",),
    ),
    "a count": (
        "permitted(A) :- tool(A, /deploy), signers(N), 1 < N.\n"
        "signers(N) :- signed_approval(_, W) |> do fn:group_by(), let N = fn:count_distinct(W).",
        "permitted(A) :- tool(A, /deploy), signers(N), 0 < N.\n"
        "signers(N) :- signed_approval(_, W) |> do fn:group_by(), let N = fn:count_distinct(W).",
        1,
        ("signed_approval(",),
    ),
    "a sum": (
        "permitted(A) :- tool(A, /deploy), all(N), 5 < N.\n"
        "all(S) :- spent(W, N) |> do fn:group_by(), let S = fn:sum(N).",
        "permitted(A) :- tool(A, /deploy), all(N), 4 < N.\n"
        "all(S) :- spent(W, N) |> do fn:group_by(), let S = fn:sum(N).",
        1,
        (", 5)",),
    ),
    "recursion": (
        "permitted(A) :- tool(A, /deploy), way(/a, /c).\nway(X, Y) :- uses_path(_, X, Y, _).",
        "permitted(A) :- tool(A, /deploy), way(/a, /c).\nway(X, Y) :- uses_path(_, X, Y, _).\n"
        "way(X, Z) :- uses_path(_, X, Y, _), way(Y, Z).",
        2,
        (),
    ),
}


@pytest.mark.parametrize("name", WIDENINGS)
def test_a_planted_widening_is_found_with_proof_and_with_what_was_missing(name: str) -> None:
    old, new, count, facts = WIDENINGS[name]
    found = asked(old, new)
    assert found.answer == Answer.COUNTEREXAMPLE
    (shown,) = stated(found)
    assert len(shown) == 1 + count and DEPLOY in shown
    assert all(part in " ".join(shown) for part in facts)
    assert all(item.proof and item.why_not for item in found.found)
    back = asked(new, old)
    assert back.answer == Answer.NOTHING_NEW
    (shown,) = stated(back, "denied")
    assert len(shown) == 1 + count and DEPLOY in shown


def test_an_act_alone_needs_no_facts() -> None:
    found = asked("permitted(A) :- tool(A, /x).", "permitted(A) :- tool(A, /deploy).", 0)
    assert (stated(found), found.left_out) == ([[DEPLOY]], [])


def test_a_widening_of_more_facts_is_not_denied_and_not_claimed() -> None:
    old, new, _, _ = WIDENINGS["a comparison is loosened, over three facts and a sum"]
    found = asked(old, new, 2)
    assert (found.answer, found.most, found.finished) == (Answer.NOTHING_NEW, 2, {"permitted", "denied"})


def test_equal_laws_need_no_solver() -> None:
    def never(job: Job, seconds: float) -> Iterator[dict[str, Any]]:
        raise AssertionError

    text = "permitted(A) :- tool(A, /deploy)."
    assert ask(law(text), law(text), 3, search=never).answer == Answer.NOTHING_NEW


FOLD = """
Decl event(E) bound [/name].
Decl moved(To, N) bound [/string, /number] descr [fold("sum"), within("24h")].
feed_moved(To, N) :- event(E), tool(E, /pay), argument(E, "to", To), argument(E, "amount", N).
Decl approved(To) bound [/string] descr [fold("open"), within("30m")].
feed_approved(To) :- event(E), tool(E, /approve), argument(E, "to", To).
close_approved(To) :- event(E), tool(E, /pay), argument(E, "to", To).
permitted(A) :- tool(A, /pay), argument(A, "to", To), %s.
over(A) :- tool(A, /pay), argument(A, "to", To), argument(A, "amount", N), moved(To, M), %d < fn:plus(M, N).
forbidden(A) :- over(A).
"""


def test_the_past_is_among_the_facts() -> None:
    found = asked(FOLD % ("approved(To)", 500), FOLD % ("approved(To)", 600), 4)
    (facts,) = stated(found)
    assert {fact.partition("(")[0] for fact in facts} == {"tool", "argument", "approved"}
    shown = " ".join(facts)
    assert '"amount", 501' in shown or '"amount", 599' in shown or '"amount", 600' in shown
    found = asked(FOLD % ("approved(To)", 500), FOLD % ('!approved("me"), To != "me"', 500), 3)
    assert found.answer == Answer.COUNTEREXAMPLE


def test_a_fold_that_is_kept_otherwise_is_left_out_by_name() -> None:
    old, new = FOLD % ("approved(To)", 500), FOLD % ("approved(To)", 500)
    found = asked(old, new.replace('"30m"', '"60m"'), 3)
    assert found.answer == Answer.NOTHING_NEW
    assert any("approved" in item for item in found.left_out)


def test_what_the_world_answers_is_among_the_facts() -> None:
    text = 'Decl covered(File, N) bound [/string, /number] descr [external(), mode("+", "-")].\n'
    text += "permitted(A) :- tool(A, /deploy), uses_path(A, _, _, F), covered(F, N), %d < N."
    found = asked(text % 80, text % 79)
    (facts,) = stated(found)
    assert any(fact.startswith("covered(") and fact.endswith(", 80)") for fact in facts)


@pytest.mark.parametrize(
    ("declared", "rule"),
    [
        ("Decl known(Who) bound [/string].\nknown(\"ann\").\nDecl by(A, Who) bound [/name, /string]%s.",
         " inclusion [known(Who)]"),
        ("Decl by(A, Who) bound [/name, %s].", '"ann"'),
    ],
    ids=["an inclusion", "a bound"],
)  # fmt: skip
def test_a_row_that_breaks_its_declaration_denies(declared: str, rule: str) -> None:
    rest = "\nby(A, W) :- signed_approval(A, W).\npermitted(A) :- tool(A, /deploy), by(A, _)."
    loose = declared % ("" if "inclusion" in rule else "/string")
    found = asked(declared % rule + rest, loose + rest)
    (facts,) = stated(found)
    assert any(fact.startswith("signed_approval(") and "ann" not in fact for fact in facts)
    assert found.left_out == []


def test_texts_that_pass_a_test_and_names_below_a_prefix_are_in_the_domain() -> None:
    old = 'permitted(A) :- tool(A, /deploy), uses_path(A, H, _, P), :string:contains(P, "docs"), H != /reads.'
    new = old + "\npermitted(A) :- tool(A, /deploy), uses_path(A, _, P, _), :match_prefix(P, /git)."
    (facts,) = stated(asked(old, new, 1))
    assert any("/git/" in fact for fact in facts)
    narrow = old.replace("H != /reads", 'H != /reads, !:string:ends_with(P, ".key")')
    (facts,) = stated(asked(narrow, old, 1))
    assert any('docs.key")' in fact for fact in facts)


def test_what_is_beyond_the_most_candidates_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spak.outer.solver.domain.MOST_CANDIDATES", 3)
    old = 'permitted(A) :- tool(A, /deploy), uses_path(A, /a, /b, "c").'
    found = asked(old, old.replace("/a", "/d"), 1)
    assert "rows of uses_path beyond the first 3" in found.left_out


def test_where_a_rule_may_fail_is_left_out_by_its_place() -> None:
    old = 'permitted(A) :- tool(A, /deploy), argument(A, "n", V), V < 5.'
    found = asked(old, old.replace("5", "6"))
    assert stated(found) == [['argument(/action, "n", 5)', DEPLOY]]
    assert any("law.mg:9" in item for item in found.left_out)


@pytest.mark.parametrize("reducer", ["fn:collect(N)", "fn:avg(N)"])
def test_what_is_not_translated_is_refused_by_its_place(reducer: str) -> None:
    rule = (
        f"all(S) :- spent(W, N) |> do fn:group_by(), let S = {reducer}.\nforbidden(A) :- tool(A, /x), all(_)."
    )
    found = asked(rule, rule + "\npermitted(A) :- tool(A, /deploy).")
    assert (found.answer, found.found) == (Answer.NOT_APPLICABLE, [])
    assert "law.mg:9" in found.why and reducer.partition("(")[0] in found.why


def test_a_sum_of_numbers_that_the_solver_cannot_hold_is_refused() -> None:
    rule = "permitted(A) :- tool(A, /deploy), all(N), N < %d.\n"
    rule += "all(S) :- spent(W, N) |> do fn:group_by(), let S = fn:sum(N)."
    found = asked(rule % 50_000_000, rule % 60_000_000)
    assert found.answer == Answer.NOT_APPLICABLE and "beyond 10000000" in found.why


def test_without_the_solver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spak.outer.solver.question.find_spec", lambda name: None)
    with pytest.raises(UnavailableError) as error:
        asked("permitted(A) :- tool(A, /x).", "permitted(A) :- tool(A, /y).")
    assert (error.value.code, error.value.exit_code) == ("unavailable.solver", 7)
    assert "spak[solver]" in error.value.hint


def test_what_the_engine_does_not_confirm_is_never_claimed() -> None:
    def lies(job: Job, seconds: float) -> Iterator[dict[str, Any]]:
        yield {"found": "permitted", "kind": 0, "chosen": []}

    old, new = law("permitted(A) :- tool(A, /x)."), law("permitted(A) :- tool(A, /y).")
    with pytest.raises(BugError) as error:
        ask(old, new, 1, search=lies)
    assert error.value.code == "bug.solver"


def test_the_time_limit_ends_the_solver_and_nothing_is_claimed() -> None:
    old = "permitted(A) :- tool(A, /deploy), signed_approval(A, _)."
    found = ask(law(old), law("permitted(A) :- tool(A, /deploy)."), 3, 0.000_001)
    assert (found.answer, found.found, found.finished) == (Answer.UNKNOWN, [], set())
    assert "time limit" in found.why


# ---- nothing is missed ------------------------------------------------------------------------------------

ROWS = (
    "takes(A, W, N)",
    "spent(W, N)",
    "spent(V, M)",
    "signed_approval(A, P)",
    "mid(A, N)",
    'argument(A, "n", X)',
)
TESTS = (
    "N < 2", "N < M", "fn:plus(N, M) < 3", "N != M", "V != W", "!signed_approval(A, _)", "!spent(/b, N)",
    "!mid(A, _)", ':string:starts_with(P, "an")', "X < 2", "X = N", 'P != "ann"',
    "fn:div(4, N) < 3", "W = /b",
)  # fmt: skip
MIDS = (
    "mid(A, N) :- tool(A, _), spent(/a, N).",
    "mid(A, S) :- tool(A, _), spent(W, N) |> do fn:group_by(A), let S = fn:sum(N).",
    "mid(A, C) :- takes(A, W, N) |> do fn:group_by(A), let C = fn:count().",
    "mid(A, K) :- takes(A, W, N) |> let K = fn:plus(N, 1).",
    "mid(A, N) :- takes(A, W, N), !spent(W, N).",
)
PAST = """
Decl event(E) bound [/name].
Decl used(W, N) bound [/name, /number] descr [fold("count")].
feed_used(W) :- event(E), takes(E, W, _).
forbidden(A) :- takes(A, W, N), used(W, M), 2 < fn:plus(N, M).
Decl seen(W) bound [/name] descr [fold("open")].
feed_seen(W) :- event(E), takes(E, W, _).
close_seen(W) :- event(E), spent(W, _).
permitted(A) :- tool(A, /t), seen(W), !used(W, 0).
"""
BIND = {"N": "takes(A, W, N)", "M": "spent(V, M)", "V": "spent(V, M)", "W": "takes(A, W, N)",
        "P": "signed_approval(A, P)", "X": 'argument(A, "n", X)'}  # fmt: skip


def rule(draw: random.Random, head: str) -> str:
    body = ["tool(A, /t)", *draw.sample(ROWS, draw.randint(0, 2))]
    for test in draw.sample(TESTS, draw.randint(0, 2)):
        for name, row in BIND.items():
            needed = any(name in part.replace("fn:", "") for part in test.replace("/", " ").split("(")[-1:])
            bound = any(f"{name})" in part or f"{name}," in part for part in body)
            if needed and not bound:
                body.append(row)
        body.append(test)
    return f"{head}(A) :- {', '.join(dict.fromkeys(body))}."


def pair(seed: int) -> tuple[Policy, Policy] | None:
    """Two laws that differ in a rule, or None where they do not load."""
    draw = random.Random(seed)
    rules = [rule(draw, draw.choice(("permitted", "permitted", "forbidden"))) for _ in range(3)]
    mids = draw.sample(MIDS, draw.randint(1, 2))
    mids += [PAST] if draw.random() < 0.3 else []
    changed = [*rules]
    changed[draw.randrange(3)] = rule(draw, draw.choice(("permitted", "forbidden")))
    try:
        return law("\n".join([*mids, *rules])), law("\n".join([*mids, *changed]))
    except PolicyError:
        return None


def exhausted(old: Policy, new: Policy, most: int) -> dict[str, set[int]]:
    """The acts that the engine judges differently with any `most` facts, judged one by one."""
    found: dict[str, set[int]] = {"permitted": set(), "denied": set()}
    space = domain(old, new, most)
    facts = [(key[0], tuple(map(decode, row))) for key, row in space.facts]
    for number, (own, known) in enumerate(kinds_of_acts(old, new)):
        mine = [fact for fact in facts if fact[0] in known | space.free]
        is_named = ("tool", (ACTION, Name("/t"))) in own  # by all rules: others are tried with one fact
        for count in range((most if is_named else 1) + 1):
            for chosen in combinations(mine, count):
                before, after = (question._judged(policy, [*own, *chosen])[0] for policy in (old, new))
                if before != after:
                    found["permitted" if after else "denied"].add(number)
    return found


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9))
def test_enumerating_one_by_one_finds_no_more_and_no_less(seed: int) -> None:
    laws = pair(seed)
    if laws is None:
        return
    most = next(most for most in (3, 2, 1) if most == 1 or len(domain(*laws, most).facts) < 80 // most)
    found = ask(*laws, most, search=at_once)
    if found.answer == Answer.NOT_APPLICABLE:
        return
    wanted = exhausted(*laws, most)
    shown = {name: {item.facts[:2] for item in found.newly(name)} for name in ("permitted", "denied")}
    for name in ("permitted", "denied"):
        assert len(shown[name]) <= len(wanted[name])
        if not found.left_out:
            assert len(shown[name]) == len(wanted[name]), (name, wanted[name], found.found)


# ---- the command ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "none.mg").write_text("# nothing\n")
    (tmp_path / "host.mg").write_text('allowed_host("a.example").\n')
    (tmp_path / "less.mg").write_text("forbidden(A) :- tool(A, /shell).\n")
    return tmp_path


def test_on_the_command_line(folder: Path) -> None:
    code, found = spak(folder, "policy", "diff", "none.mg", "host.mg", "--solve", "2", "--json")
    assert (code, found["solver"], found["solve"]["most_facts"]) == (1, "counterexample", 2)
    shown = [" ".join(item["facts"]) for item in found["solve"]["newly_permitted"]]
    assert all("a.example" in line for line in shown)
    assert any("tool(/action, /http_request)" in line for line in shown)
    assert found["solve"]["finished"] == ["denied", "permitted"]
    done = raw(folder, "policy", "diff", "host.mg", "none.mg", "--solve", "2")
    assert done.returncode == 0, done.stderr
    text = done.stderr + done.stdout
    assert "newly permitted: nothing up to 2 facts" in text
    assert text.index("OLD permits:") < text.index("permitted(/action)") < text.index("NEW denies:")


SPEC = """AGENT A LEVEL 1 {
  %s
  START -> t
  TASK t {
    step r: tool.read_file { path: "a.txt" }
  }
}
"""


def test_two_specs_and_a_time_limit(folder: Path) -> None:
    (folder / "old.spak").write_text(SPEC % 'POLICY """forbidden(A) :- tool(A, /shell)."""')
    (folder / "new.spak").write_text(SPEC % "")
    code, found = spak(folder, "policy", "diff", "old.spak", "new.spak", "--solve", "1", "--json")
    assert (code, found["solver"]) == (1, "counterexample")
    assert {item["facts"][1] for item in found["solve"]["newly_permitted"]} == {"tool(/action, /shell)"}
    args = ("none.mg", "less.mg", "--solve", "3", "--solve-seconds", "0.001", "--json")
    code, found = spak(folder, "policy", "diff", *args)
    assert (code, found["solver"], found["solve"]["finished"]) == (6, "unknown", [])


@pytest.mark.parametrize(
    "args", [("--solve", "-1"), ("--solve", "x"), ("--solve", "1", "--solve-seconds", "0")]
)
def test_bad_options_are_refused(folder: Path, args: tuple[str, ...]) -> None:
    assert raw(folder, "policy", "diff", "none.mg", "host.mg", *args).returncode == 2


def test_clingo_is_there_for_these_tests() -> None:
    assert find_spec("clingo") is not None
