"""What a change of the law permits and denies among abstract actions, and that nothing of it is missed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_kit import spak
from gate_kit import workspace, world
from spak.datalog import Fact, Name, Policy, load
from spak.evolve import abstract_actions
from spak.evolve.abstract_actions import Compared, compare
from spak.policy.actions import Action
from spak.policy.facts import facts
from spak.policy.law import RESERVED
from spak.policy.stated import OF_ACT, OF_ALL, OF_OTHER, STATED
from spak.policy.toolfacts import ACTION

DECLS = """
Decl tool(Action, Tool) bound [/name, /name].
Decl uses_path(Action, How, Place, Path) bound [/name, /name, /name, /string].
Decl signed_approval(Action, Who) bound [/name, /string].
Decl spent(What, Amount) bound [/name, /number].
Decl place(How, Place) bound [/name, /name].
place(/reads, /inside).
permitted(A) :- tool(A, /read_file), uses_path(A, How, Place, _), place(How, Place).
"""


def law(more: str = "") -> Policy:
    return load({"law.mg": DECLS + more})


def words(found: Compared, direction: Any) -> list[tuple[str, ...]]:
    """The facts of each difference, without those that every act has."""
    plain = ("act(", "sandboxed(")
    return [
        tuple(fact for fact in item.facts if not fact.startswith(plain)) for item in found.newly(direction)
    ]


READ, DEPLOY = "tool(/action, /read_file)", "tool(/action, /deploy)"
CASES = [
    (
        "place(/writes, /inside).",
        [(READ, 'uses_path(/action, /writes, /inside, "other")')],
        [],
    ),
    (
        "forbidden(A) :- uses_path(A, _, /inside, _).",
        [],
        [(READ, 'uses_path(/action, /reads, /inside, "other")')],
    ),
    (
        'permitted(A) :- tool(A, /deploy), uses_path(A, /reads, /git, "x"), signed_approval(A, _).',
        [(DEPLOY, 'uses_path(/action, /reads, /git, "x")', 'signed_approval(/action, "other")')],
        [],
    ),
    (
        "permitted(A) :- tool(A, /deploy), spent(/steps, N), N < 3.",
        [(DEPLOY, "spent(/steps, 1)"), (DEPLOY, "spent(/steps, 2)")],
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("more", "permitted", "denied"), CASES)
def test_what_a_rule_changes_is_found_with_a_proof(more: str, permitted: Any, denied: Any) -> None:
    found = compare(law(), law(more))
    assert sorted(map(sorted, words(found, "permitted"))) == sorted(map(sorted, permitted))
    assert sorted(map(sorted, words(found, "denied"))) == sorted(map(sorted, denied))
    assert all(item.proof for item in found.found)
    back = compare(law(more), law())
    assert len(back.newly("denied")) == len(permitted) and len(back.newly("permitted")) == len(denied)


def test_what_one_fact_turns_round_is_listed_beside_what_the_act_alone_changes() -> None:
    old = law("permitted(A) :- tool(A, /deploy), signed_approval(A, _).")
    new = law("permitted(A) :- tool(A, /deploy).\nforbidden(A) :- tool(A, /deploy), signed_approval(A, _).")
    found = compare(old, new)
    assert (DEPLOY,) in words(found, "permitted")
    assert words(found, "denied") == [(DEPLOY, 'signed_approval(/action, "other")')]


def test_of_very_many_differences_the_first_are_listed_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    more = "permitted(A) :- spent(/steps, N), N < 40, uses_path(A, _, _, _)."
    whole = compare(law(), law(more))
    monkeypatch.setattr(abstract_actions, "LISTED", 2)
    part = compare(law(), law(more))
    assert len(whole.found) > 2
    assert (len(part.found), part.unlisted) == (2, len(whole.found) - 2)
    assert part.to_json()["unlisted"] == part.unlisted


ARGUMENT = "Decl argument(Action, Name, Value) bound [/name, /string, /any].\n"


def test_where_a_rule_faults_the_action_is_denied_and_the_others_are_judged() -> None:
    base = ARGUMENT + "permitted(A) :- tool(A, /deploy).\n"
    more = 'forbidden(A) :- argument(A, "n", V), V > 5.\n'
    more += "permitted(A) :- tool(A, /send), signed_approval(A, _)."
    found = compare(law(base), law(base + more))
    assert words(found, "permitted") == [("tool(/action, /send)", 'signed_approval(/action, "other")')]
    assert sorted(words(found, "denied")) == [
        (DEPLOY, 'argument(/action, "n", /other)'), (DEPLOY, 'argument(/action, "n", 6)')
    ]  # fmt: skip


def test_the_same_rules_in_another_order_change_nothing() -> None:
    more = "permitted(A) :- tool(A, /deploy).\nforbidden(A) :- uses_path(A, /writes, _, _)."
    found = compare(law(more), law("\n".join(reversed(more.splitlines()))))
    assert (found.judged, found.found) == (0, [])


def test_what_is_beyond_the_most_is_counted() -> None:
    whole = compare(law(), law("permitted(A) :- tool(A, /deploy)."))
    part = compare(law(), law("permitted(A) :- tool(A, /deploy)."), most=5)
    assert (part.judged, part.judged + part.left_out) == (5, whole.judged)
    assert whole.left_out == 0


@pytest.mark.parametrize("more", [more for more, _, _ in CASES])
def test_nothing_is_missed_that_a_judgement_of_its_own_finds(more: str) -> None:
    """Every act with two facts of a world of our own, judged one by one with fresh sessions."""
    old, new = law(), law(more)
    hows, places = ("reads", "writes"), ("inside", "git")
    world: list[Fact] = [
        ("uses_path", (ACTION, Name(f"/{how}"), Name(f"/{place}"), path))
        for how in hows
        for place in places
        for path in ("x", "other")
    ]
    world += [("signed_approval", (ACTION, "other")), ("spent", (Name("/steps"), 2))]
    differs = {
        tool
        for tool in ("read_file", "deploy", "other")
        for one in world
        for two in world
        if _permits(old, tool, one, two) != _permits(new, tool, one, two)
    }
    found = {item.facts[1].split("/")[2].rstrip(")") for item in compare(old, new).found}
    assert differs == found


def _permits(policy: Policy, tool: str, *facts: Fact) -> bool:
    session = policy.session([("tool", (ACTION, Name(f"/{tool}"))), *facts])
    return session.holds("permitted", ACTION) and not session.holds("forbidden", ACTION)


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "old.mg").write_text("# nothing\n")
    (tmp_path / "new.mg").write_text('allowed_host("a.example").\n')
    code, found = spak(tmp_path, "policy", "diff", "old.mg", "new.mg", "--abstract", "--json")
    assert (code, found["runs"], found["abstract"]["left_out"]) == (1, 0, 0)
    shown = [" ".join(item["facts"]) for item in found["abstract"]["newly_permitted"]]
    requests = [line for line in shown if "/http_request" in line]
    assert len(requests) == 2 and all('"https", "a.example", 443' in line for line in requests)
    assert {line.rpartition('"')[0].rpartition('"')[2] for line in requests} == {"GET", "HEAD"}
    tunnels = [line for line in shown if "/tunnel" in line]
    assert len(shown) == 4 and all('"a.example", 443' in line for line in tunnels)
    assert found["abstract"]["newly_denied"] == []


CASE_FILES = sorted((Path(__file__).parents[1] / "policy/cases").glob("*.jsonl"))


@pytest.mark.parametrize("file", CASE_FILES, ids=lambda file: file.stem)
def test_what_is_stated_of_real_actions_can_be_stated_of_abstract_ones(file: Path, tmp_path: Path) -> None:
    """A fact that is stated of a tool and not enumerated for it would be a change that is not seen."""
    eyes = world(workspace(tmp_path))
    seen: dict[str, set[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        stated = {name for name, _ in facts(Action(case["tool"], case["args"]), eyes)}
        seen.setdefault(f"/{case['tool']}", set()).update(stated)
    for tool, stated in seen.items():
        assert stated & RESERVED <= OF_ALL | STATED.get(tool, OF_OTHER) | set(OF_ACT), tool
