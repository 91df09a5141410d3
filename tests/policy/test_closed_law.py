"""No text of a spec permits what the law does not, no team's rules lift a prohibition: by derivation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from law_kit import under
from spak.datalog import PolicyError
from spak.datalog.session import load
from spak.policy.closed_predicates import Level, closed
from spak.policy.law import RESERVED, Law, compiled
from spak.runner.genesis import constitution

SPAK = Path(__file__).resolve().parents[2] / "agents/spak"
LAW = Law(constitution())
FILES = list(LAW.shipped)
SHIPPED = load(LAW.shipped)
BY_LEVEL: dict[Level, list[tuple[str, int]]] = {
    "spec": sorted(closed(SHIPPED, FILES, "spec")),
    "team": sorted(closed(SHIPPED, FILES, "team")),
}
FORGED = {
    "approved": "approved(A) :- tool(A, _).",
    "reachable_kind": "reachable_kind(/loopback).",
    "least_sandbox": "least_sandbox(/run, /none).",
    "as_strict": "as_strict(/none, /restricted).",
    "held": "held(A) :- tool(A, _).",
    "signed_approval": 'signed_approval(A, "alice") :- tool(A, _).',
    "checked": "checked().",
}
"""What would lift a prohibition."""
WIDER = {
    "permitted": "permitted(A) :- tool(A, /run).",
    "permitted_place": "permitted_place(/reads, /secret).",
    "allowed_program": 'allowed_program("make").',
    "command_tool": "command_tool(/deploy).",
    "file_tool": "file_tool(/deploy, /reads).",
    "reading_method": 'reading_method("POST").',
    "allowed_host": 'allowed_host("example.org").',
    "secret_may_go": 'secret_may_go("KEY", /deploy, "key").',
}
"""What would permit more and lifts no prohibition that holds for all."""


def code(law: Law, text: str = "", axioms: dict[str, str] | None = None) -> str:
    """What a policy is refused with; empty where it loads."""
    try:
        compiled(law, text, axioms or {})
    except PolicyError as error:
        return error.code
    return ""


def team(text: str, operator: str = "") -> Law:
    return Law(constitution(), {"o.mg": operator} if operator else {}, {"t.mg": text})


@pytest.mark.parametrize("text", [*FORGED.values(), *WIDER.values()], ids=[*FORGED, *WIDER])
def test_a_spec_only_narrows(text: str) -> None:
    wanted = "policy.reserved" if text.split("(")[0] in RESERVED else "policy.closed"
    assert code(LAW, text) == wanted
    assert code(LAW, "", {"axiom.1": text}) == wanted


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED)
def test_a_team_lifts_no_prohibition(text: str) -> None:
    assert code(team(text)) in ("policy.closed", "policy.reserved")


@pytest.mark.parametrize("text", WIDER.values(), ids=WIDER)
def test_a_team_permits_more(text: str) -> None:
    assert code(team(text)) == ""


@pytest.mark.parametrize("name", sorted({*FORGED, *WIDER} - {"signed_approval"}))
def test_the_operator_extends_every_table(name: str) -> None:
    assert code(under({**FORGED, **WIDER}[name])) == ""


@pytest.mark.parametrize("name", sorted(RESERVED - {"held", "as_strict"}))
def test_nobody_states_what_the_kernel_and_the_world_state(name: str) -> None:
    arity = next((key[1] for key in SHIPPED.predicates if key[0] == name), 1)
    text = f"{name}({', '.join(['/action'] * arity)})."
    for law, spec in ((under(text), ""), (team(text), ""), (LAW, text)):
        assert code(law, spec) in ("policy.reserved", "policy.invalid"), "the second where a type is wrong"


@pytest.mark.parametrize(
    ("level", "key"), [(level, key) for level, keys in BY_LEVEL.items() for key in keys], ids=str
)
def test_every_derived_predicate_is_closed(level: Level, key: tuple[str, int]) -> None:
    names = ", ".join(f"X{n}" for n in range(key[1]))
    body = " :- " + ", ".join(f"argument(/a, _, X{n})" for n in range(key[1])) if key[1] else ""
    text = f"{key[0]}({names}){body}."
    assert code(LAW, text) if level == "spec" else code(team(text))


@pytest.mark.parametrize(
    "text",
    [
        "guard(/refactor).",
        'opinion("pytest").',
        'commit_door("hub commit").',
        "odd_url(A) :- tool(A, /http_request).",
        "forbidden(A) :- tool(A, /run).",
        "mine(A) :- tool(A, _). forbidden(A) :- mine(A).",
        "known(/x). forbidden(A) :- tool(A, T), !known(T).",
    ],
)
def test_what_narrows_stays_possible(text: str) -> None:
    assert code(LAW, text) == code(team(text)) == ""


def test_the_lists_are_derived_from_the_rules() -> None:
    rules = "forbidden(A) :- tool(A, _), !trusted(A).\ntrusted(A) :- known(A).\n"
    rules += "permitted(A) :- tool(A, T), safe(T), !odd(A).\nodd(A) :- strange(A), !usual(A).\n"
    rules += "usual(/x). strange(/x). safe(/x). known(/x)."

    def names(level: Level, more: str = "") -> set[str]:
        return {key[0] for key in closed(load({"law.mg": more + rules}), ["law.mg"], level)}

    assert names("team") == {"trusted", "known"}
    assert names("spec") == {"trusted", "known", "permitted", "tool", "safe", "usual", "extension"}
    assert names("team", 'Decl known(A) descr [open("team")].\n') == {"trusted"}
    assert "known" in names("spec", 'Decl known(A) descr [open("team")].\n')
    assert "known" not in names("spec", 'Decl known(A) descr [open("spec")].\n')


def test_what_an_upper_level_rests_on_is_closed_to_the_lower_ones() -> None:
    operator = "forbidden(A) :- tool(A, T), !ours(T).\nours(/run).\n"
    assert code(under(operator), "ours(/shell).") == "policy.closed"
    assert code(team("ours(/shell).", operator)) == "policy.closed"
    assert code(team("permitted(A) :- tool(A, T), fine(T). fine(/run)."), "fine(/shell).") == "policy.closed"
    opened = 'Decl ours(T) descr [open("spec")] bound [/name].\n' + operator
    assert code(under(opened), "ours(/shell).") == code(team("ours(/shell).", opened)) == ""


def test_a_lower_level_declares_nothing_of_the_law() -> None:
    for text in ('Decl approved(A) descr [open("spec")].', "Decl broken(Why) bound [/string]."):
        assert code(LAW, text) == code(team(text)) == "policy.closed"
    assert code(LAW, "Decl mine(A) bound [/string].") == code(team("Decl mine(A).")) == ""


def test_no_text_takes_the_place_of_one_of_the_law() -> None:
    for law in (LAW, under("forbidden(A) :- tool(A, /x).")):
        for name in law.sources:
            assert code(law, "", {name: "mine(/x)."}) == "policy.closed"
    assert compiled(Law(LAW.shipped, {"base.mg": ""}, {"base.mg": ""}), "", {}).hash == LAW.hash


def test_a_group_closes_what_it_counts() -> None:
    rules = "forbidden(A) :- tool(A, _), n(A, N), N < 2.\nn(A, N) :- vote(A, W) |> do fn:group_by(A), "
    found = closed(load({"law.mg": rules + "let N = fn:count()."}), ["law.mg"], "team")
    assert ("vote", 2) in found


def test_a_refusal_says_where_a_wider_rule_belongs() -> None:
    for name, word in (("permitted", "operator"), ("allowed_host", "HOSTS"), ("secret_may_go", "keeps")):
        with pytest.raises(PolicyError) as caught:
            compiled(LAW, WIDER[name], {})
        assert word in caught.value.hint and caught.value.message.startswith("POLICY:1:1")


def test_the_law_of_a_session_joins_at_its_level() -> None:
    """It lifts nothing that the law above it forbids, the team's own included; a spec's permits nothing."""
    team = Law(
        constitution(), {}, {"t.mg": "forbidden(A) :- tool(A, /run), !fine(A).\nfine(A) :- in_task(A)."}
    )
    forbids = {"s.mg": 'forbidden(A) :- changed(A, "a.py", _).'}
    assert team.joined({}, "spec") is team
    for level in ("team", "spec"):
        joined = team.joined({"t.mg": forbids["s.mg"]}, level)
        assert list(joined.team) == ["t.mg", "also_t.mg"]
        for text in ("reachable_kind(/loopback).", "fine(A) :- tool(A, /run)."):
            with pytest.raises(PolicyError) as caught:
                team.joined({"s.mg": text}, level)
            assert caught.value.message.startswith("team/s.mg:1:1")
    assert "s.mg" in team.joined({"s.mg": WIDER["permitted"]}, "team").team
    with pytest.raises(PolicyError):
        team.joined({"s.mg": WIDER["permitted"]}, "spec")


def test_nothing_that_the_runtime_states_is_left_open() -> None:
    shut = {key[0] for key in BY_LEVEL["team"]} | RESERVED
    assert {"approved", "reachable_kind", "checked"} <= shut
    stated = {
        name for room in ("kernel", "policy") for path in (SPAK / room).rglob("*.py") for name in rows(path)
    }
    assert len(stated) > 30
    assert stated - RESERVED == {"allowed_host"}, "add it to RESERVED in policy/law.py"


def rows(path: Path) -> Iterator[str]:
    """The predicates of the facts that a module writes: `("tool", (action, name))`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            name, row = node.elts
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and isinstance(row, ast.Tuple):
                yield name.value
