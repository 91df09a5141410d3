"""The worked examples of docs/policy.md: each policy loads without a finding and answers as the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gate_calls import HELD, fact
from gate_kit import workspace, world
from spak import data
from spak.policy import Policy, load
from spak.policy.actions import Action
from spak.policy.judge import judge

PAGE = Path(__file__).parents[2] / "docs/policy.md"
EXAMPLE = re.compile(
    r"\*\*(?P<number>\d+)\. (?P<title>[^*]+)\*\*(?:(?!\*\*\d).)*?"
    r"```mangle\n(?P<rules>.*?)```\n```\n(?P<answers>.*?)```",
    re.S,
)
EXAMPLES = [found.groupdict() for found in EXAMPLE.finditer(PAGE.read_text())]
ANSWERS = [
    pytest.param(example["rules"], line, id=f"{example['number']}-{line[:40]}")
    for example in EXAMPLES
    for line in example["answers"].splitlines()
]


def with_rules(rules: str) -> Policy:
    files = {file.name: file.read_text() for file in sorted(data.path("specs/policy").glob("*.mg"))}
    return load({**files, "POLICY": rules})


def test_there_are_ten() -> None:
    assert [int(example["number"]) for example in EXAMPLES] == list(range(1, 11))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["title"])
def test_an_example_loads_without_a_finding(example: dict[str, str]) -> None:
    found = [item for item in with_rules(example["rules"]).diagnostics if item.place.file == "POLICY"]
    assert found == []


@pytest.mark.parametrize(("rules", "line"), ANSWERS)
def test_an_example_answers_as_the_page_says(rules: str, line: str, tmp_path: Path) -> None:
    wanted, tool, args = line.split(" ", 2)
    action = Action(tool, json.loads(args))
    decision = judge(with_rules(rules), action, world(workspace(tmp_path)), [*HELD, fact("in_task", "build")])
    assert decision.decision == wanted, decision.reason


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["title"])
def test_an_example_changes_something(example: dict[str, str], tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    without = with_rules("")
    changed = []
    for line in example["answers"].splitlines():
        wanted, tool, args = line.split(" ", 2)
        before = judge(without, Action(tool, json.loads(args)), eyes, [*HELD, fact("in_task", "build")])
        changed.append(before.decision != wanted)
    assert any(changed)
