"""Every rule of the constitution matters: change any, and the decision about at least one case changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from constitution_mutants import EQUIVALENT, mutants
from gate_calls import FACTS, SITUATIONS
from gate_kit import cases, constitution, workspace, world
from spak.datalog import Fact, Policy
from spak.policy.actions import Action
from spak.policy.facts import ACTION, facts

Case = tuple[list[Fact], str]


def decision(policy: Policy, known: list[Fact]) -> str:
    session = policy.session(known)
    if session.holds("forbidden", ACTION):
        return "forbidden"
    if session.holds("permitted", ACTION):
        return "permitted"
    return "asked" if session.holds("may_ask", ACTION) else "denied"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """The facts of every case and the decision of the constitution; equal facts once."""
    root = workspace(tmp_path_factory.mktemp("gate"))
    eyes = world(root)
    found: dict[tuple[Fact, ...], list[Fact]] = {tuple(known): known for known in FACTS}
    for action, known in SITUATIONS:
        seen = facts(action, eyes, known)
        found[tuple(seen)] = seen
    for name in ("paths.jsonl", "urls.jsonl", "patches.jsonl", "lines.jsonl"):
        for case in cases(name, root):
            seen = facts(Action(case["tool"], case["args"]), eyes)
            found[tuple(seen)] = seen
    return [(known, decision(constitution(), known)) for known in found.values()]


def survivors(judged: list[Case], every: int) -> Iterator[tuple[str, bool]]:
    """Each n-th mutant, and whether no case noticed it."""
    for index, (name, mutant) in enumerate(mutants(constitution())):
        if index % every == 0:
            yield name, all(decision(mutant, known) == before for known, before in judged)


def alive(found: list[tuple[str, bool]]) -> set[str]:
    lives = {name for name, survives in found if survives}
    share = 1 - len(lives) / len(found)
    print(f"mutants of the constitution: {len(found)}, killed {share:.1%}", *sorted(lives), sep="\n  ")
    return lives


def test_some_mutants_are_noticed(judged: list[Case]) -> None:
    assert alive(list(survivors(judged, 8))) <= EQUIVALENT


@pytest.mark.slow
@pytest.mark.fuzz
def test_all_mutants_are_noticed(judged: list[Case]) -> None:
    assert alive(list(survivors(judged, 1))) == EQUIVALENT
