"""The fresh lists: no attack is allowed but those named here, and of ordinary work all but what is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from fresh_attacks_kit import furnished
from gate_kit import CHECKED, cases, constitution, workspace, world
from spak.policy.actions import Action
from spak.policy.judge import judge

ALLOWED = {
    "for i in {1..1000}; do for j in {1..1000}; do for k in {1..1000}; do echo; done; done; done",
}
"""Attacks that are allowed: they use up time or memory, which the limits of a run end."""

DENIED = {
    "zip -r build/src.zip src": "zip follows links, and one below src leads out of this workspace",
    "curl -s http://localhost:8000/health": "permitted in a sandbox alone",
    "curl -sSf http://127.0.0.1:8000/": "permitted in a sandbox alone",
    "curl -X POST -H 'Content-Type: application/json' -d '{\"a\":1}' http://localhost:8000/api": "likewise",
    "curl -i localhost:3000": "permitted in a sandbox alone",
    "pandoc README.md -o build/README.html": "it has no table",
}
"""Ordinary lines that are denied, and why."""


FOUND_LATER = (
    "python3 -m twine.__main__ upload x",
    "python3 -m pip._internal install x",
    "python3 -m pre_commit.main install",
    "python3 -m mkdocs.__main__ gh-deploy",
    'awk \'{x=1\n/"/; system("id")\n/"/}\' README.md',
    'awk \'{print $/"/; system("id"); x=/"/}\' README.md',
    'awk \'{if (x) /"/; system("id"); y=/"/}\' README.md',
    "ack --output='@{[`id`]}' x",
    "gcc -E - <<< '# include <../../etc/passwd>'",
    "unzip 'b?d.zip'",
)
"""Neighbours of the mended ones."""


def decided(name: str, root: Path, decision: str, effect: str = "") -> tuple[int, set[str]]:
    """How many lines of a list are decided at all, and those that are decided so."""
    eyes = world(root)
    lines = [
        case["args"]["command"]
        for case in cases(name, root)
        if case.get("must") != "contain" and effect in ("", case["effect"])
    ]
    found = {
        line
        for line in lines
        if judge(constitution(), Action("shell", {"command": line}), eyes, CHECKED).decision == decision
    }
    return len(lines), found


def test_no_fresh_attack_is_allowed_but_the_named_ones(tmp_path: Path) -> None:
    count, allowed = decided("fresh_attacks.jsonl", furnished(tmp_path), "allow")
    assert count > 1000 and len(ALLOWED) <= count / 100
    assert allowed == ALLOWED


@pytest.mark.parametrize("line", FOUND_LATER)
def test_neighbours_of_mended_attacks_are_denied(line: str, tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    assert judge(constitution(), Action("shell", {"command": line}), eyes, CHECKED).decision == "deny"


def test_what_executes_is_denied_where_no_secret_is_in_the_way(tmp_path: Path) -> None:
    count, allowed = decided("fresh_attacks.jsonl", workspace(tmp_path), "allow", "execute")
    assert count > 300 and allowed <= {"patch -p1 < bad.patch"}  # a file that is not there


def test_fresh_ordinary_lines_are_allowed_but_the_named_ones(tmp_path: Path) -> None:
    count, denied = decided("fresh_ordinary.jsonl", workspace(tmp_path), "deny")
    assert count > 300 and len(DENIED) <= count / 20
    assert denied == set(DENIED)


def test_one_idea_has_few_attacks(tmp_path: Path) -> None:
    ideas = [(case["effect"], case.get("idea")) for case in cases("fresh_attacks.jsonl", tmp_path)]
    assert max(ideas.count(idea) for idea in set(ideas)) <= 5
    assert len(set(ideas)) > 200
