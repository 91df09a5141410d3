"""The ordinary lines of a developer's day: the shipped law permits each of them in the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate_kit import constitution, workspace, world
from spak.datalog.values import Fact, Name
from spak.policy.actions import Action
from spak.policy.facts import ACTION
from spak.policy.judge import judge

LISTS = sorted((Path(__file__).parent / "data").glob("ordinary*.txt"))
SANDBOXED: list[Fact] = [("sandboxed", (ACTION, Name("/restricted")))]


def lines(file: Path) -> list[str]:
    return [line.replace("⏎", "\n") for line in file.read_text().splitlines()]


def test_there_are_1960() -> None:
    assert sum(len(lines(file)) for file in LISTS) == 1960


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_every_line_is_permitted_in_the_sandbox(file: Path, tmp_path: Path) -> None:
    eyes, law = world(workspace(tmp_path)), constitution()
    calls = [Action("run", {"cmd": ["bash", "-c", line]}) for line in lines(file)]
    assert [call for call in calls if judge(law, call, eyes, SANDBOXED).decision != "allow"] == []


@pytest.mark.parametrize("level", ["none", ""])
def test_none_is_permitted_to_a_run_without_a_sandbox(level: str, tmp_path: Path) -> None:
    known: list[Fact] = [("sandboxed", (ACTION, Name(f"/{level}")))] if level else []
    call = Action("run", {"cmd": ["bash", "-c", "ls"]})
    assert judge(constitution(), call, world(workspace(tmp_path)), known).code == "policy.forbidden"
