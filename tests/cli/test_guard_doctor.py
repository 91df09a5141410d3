"""`spak guard doctor`: with an agent of ours that asks hooks as a real one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_calls import Cli, gone
from spak.errors import UsageError
from spak.guard import doctor

pytestmark = pytest.mark.sandbox
AGENT = Path(__file__).parents[1] / "hooked_agent.py"
OPEN = {
    "prints something else", "prints broken JSON", "gives an unknown decision", "its option is misspelt",
    "its type is misspelt", "its event is misspelt", "the settings file is broken", "HTTP: nobody listens",
    "HTTP: status 500", "HTTP: status 200 without a word",
}  # fmt: skip
"""Ways by which this agent is open, without anything but hooks."""


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / "bin/claude"
    path.parent.mkdir()
    path.write_text("#!/usr/bin/env python3\n" + AGENT.read_text())
    path.chmod(0o755)
    return path


def test_every_way_is_tried_and_nothing_is_left(cli: Cli, tmp_path: Path, agent: Path) -> None:
    (tmp_path / "temporary").mkdir()
    env = {"TMPDIR": str(tmp_path / "temporary")}
    done = cli("guard", "doctor", str(agent), "--mode", "hooks", "--json", env=env)
    assert done.code == 0, done.err
    assert (done.json["agent"], done.json["version"]) == ("claude", "9.9.9")
    ways = [way.name for way in doctor.WAYS if way.only in ("", "claude")]
    expected = [{"name": f"hooks: {way}", "state": "open" if way in OPEN else "shut"} for way in ways]
    assert done.json["rows"] == expected
    assert list((tmp_path / "temporary").iterdir()) == []
    assert gone(str(tmp_path / "temporary"))


def test_behind_the_walls_a_hook_that_fails_changes_nothing(agent: Path) -> None:
    """And ours let the agent work there, though no guard of hooks answers."""
    ways = [way for way in doctor.WAYS if way.name == "its event is misspelt"]
    assert [row.state for row in doctor.rows(agent, ["guard"], ways)] == ["shut"]
    ours = next(way for way in doctor.WAYS if way.name == "ours: no guard runs")
    assert doctor._guarded(agent, doctor.PATIENTS["claude"], ours, 9) == (True, True)


def test_what_comes_home_against_the_law_is_open(agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LAW", "")
    with pytest.raises(UsageError, match="did not do what"):
        list(doctor.rows(agent, ["guard"]))
    assert doctor._state("guard", doctor.NO_HOOK, done=True, held=False) == "open"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("#!/bin/sh\nexit 3\n", "guard.agent"),
        ("#!/bin/sh\necho no number\n", "guard.agent"),
        ("#!/bin/sh\necho 1.2.3\n", "guard.trial"),
    ],
)
def test_an_agent_that_cannot_be_tried_says_why(cli: Cli, agent: Path, text: str, code: str) -> None:
    agent.write_text(text)
    done = cli("guard", "doctor", str(agent), "--mode", "hooks", "--json")
    assert (done.code, done.error) == (2, code)


def test_an_agent_that_nobody_knows_is_refused(cli: Cli) -> None:
    for name in ("nobody", "/nowhere/claude"):
        done = cli("guard", "doctor", name, "--json")
        assert (done.code, done.error) == (2, "guard.agent")
