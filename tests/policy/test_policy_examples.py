"""The worked examples of docs/policy.md: each policy loads without a finding and answers as the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from gate_calls import HELD, fact
from gate_kit import workspace, world
from spak.cli.gate import command as gate
from spak.datalog import Fact, Policy, PolicyError
from spak.errors import UsageError
from spak.policy.actions import Action
from spak.policy.judge import judge
from spak.policy.law import Law, compiled
from spak.runner.genesis import constitution

PAGE = Path(__file__).parents[2] / "docs/policy.md"
EXAMPLE = re.compile(
    r"\*\*(?P<number>\d+)\. (?P<title>[^*]+)\*\*(?:(?!\*\*\d).)*?"
    r"```mangle(?P<level>| team)\n(?P<rules>.*?)```\n```\n(?P<answers>.*?)```",
    re.S,
)
EXAMPLES = [found.groupdict() for found in EXAMPLE.finditer(PAGE.read_text())]
ANSWERS = [
    pytest.param(example, line, id=f"{example['number']}-{line[:40]}")
    for example in EXAMPLES
    for line in example["answers"].splitlines()
]


def policy_of(example: dict[str, str]) -> Policy:
    """The policy that a run would have, with the example at the level that the page names."""
    if example["level"]:
        return compiled(Law(constitution(), team={"POLICY": example["rules"]}), "", {})
    return compiled(Law(constitution()), example["rules"], {})


def known(tool: str) -> list[Fact]:
    """What is known of the run around a call; `shell` is for agents outside of one."""
    return [*(HELD if tool != "shell" else ()), fact("in_task", "build")]


def test_there_are_ten() -> None:
    assert [int(example["number"]) for example in EXAMPLES] == list(range(1, 11))
    widen = {example["number"] for example in EXAMPLES if example["level"]}
    assert widen == {"1", "4", "5", "8"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["title"])
def test_an_example_loads_without_a_finding(example: dict[str, str]) -> None:
    files = constitution()
    assert [item for item in policy_of(example).diagnostics if item.place.file not in files] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["title"])
def test_an_example_that_widens_is_not_a_specs(example: dict[str, str]) -> None:
    if example["level"]:
        with pytest.raises(PolicyError) as caught:
            compiled(Law(constitution()), example["rules"], {})
        assert caught.value.code == "policy.closed"


@pytest.mark.parametrize(("example", "line"), ANSWERS)
def test_an_example_answers_as_the_page_says(example: dict[str, str], line: str, tmp_path: Path) -> None:
    wanted, tool, args = line.split(" ", 2)
    action = Action(tool, json.loads(args))
    decision = judge(policy_of(example), action, world(workspace(tmp_path)), known(tool))
    assert decision.decision == wanted, decision.reason


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["title"])
def test_an_example_changes_something(example: dict[str, str], tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    without = compiled(Law(constitution()), "", {})
    changed = []
    for line in example["answers"].splitlines():
        wanted, tool, args = line.split(" ", 2)
        before = judge(without, Action(tool, json.loads(args)), eyes, known(tool))
        changed.append(before.decision != wanted)
    assert any(changed)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["title"])
def test_the_gate_answers_an_example_from_its_file(example: dict[str, str], tmp_path: Path) -> None:
    """`--policy` adds to the law, at the level that the page names, for a call within a run or outside."""
    root, rules = workspace(tmp_path), tmp_path / "rules.mg"
    rules.write_text(example["rules"])
    lines = [line.split(" ", 2) for line in example["answers"].splitlines()]
    calls = [json.dumps({"id": 1, "tool": tool, "args": json.loads(args)}) for _, tool, args in lines]
    level = "team" if example["level"] else "spec"
    options = ["--policy", str(rules), "--as", level, "--task", "build", "--sandbox", "restricted"]
    done = CliRunner().invoke(gate, [*options, "--workspace", str(root)], input="\n".join(calls))
    found = [json.loads(line)["decision"] for line in done.stdout.splitlines()]
    assert found == [wanted for wanted, _, _ in lines], done.stdout


@pytest.mark.parametrize(
    "options", [["--policy-only"], ["--as", "spec"], ["--policy", "R", "--policy-only", "--as", "team"],
                ["--sandbox", "tent"]]
)  # fmt: skip
def test_options_that_say_nothing_are_refused(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "R").write_text("")
    given = [str(tmp_path / "R") if word == "R" else word for word in options]
    with pytest.raises(UsageError) as caught:
        CliRunner().invoke(gate, given, input="", catch_exceptions=False)
    assert caught.value.code == "usage.arguments"


def test_a_spec_does_not_widen_by_the_gate(tmp_path: Path) -> None:
    rules = tmp_path / "rules.mg"
    rules.write_text('allowed_program("make").')
    with pytest.raises(PolicyError) as caught:
        CliRunner().invoke(gate, ["--policy", str(rules), "--as", "spec"], input="", catch_exceptions=False)
    assert caught.value.code == "policy.closed"
