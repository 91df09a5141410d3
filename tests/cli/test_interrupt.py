"""A run that is stopped in the middle of a tool: Ctrl+C, SIGTERM, a timeout, a kill; and two resuming it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cli_calls import Background, Cli, gone, processes

SLOW = """
task Slow {
  step first: tool.write_file { path: "first.txt" content: "one\\n" }
  step slow: tool.run { cmd: "python3 slow.py MARKER" }
  step last: tool.run { cmd: "cat first.txt half.txt" output_var: both }
  success: file_exists("half.txt")
}
"""
SCRIPT = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("half.txt").write_text("half")
pathlib.Path("first.txt").write_text("spoilt")
time.sleep(3)
"""
UNTIL_TOLD = """
for _ in range(3000):
    if pathlib.Path("go").exists():
        break
    time.sleep(0.02)
"""


@pytest.fixture
def marker(tmp_path: Path) -> str:
    """Names the tool's process; a spec whose second step takes a while lies ready."""
    name = f"slow-{abs(hash(str(tmp_path)))}"
    (tmp_path / "slow.spak").write_text(SLOW.replace("MARKER", name))
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/slow.py").write_text(SCRIPT)
    return name


START = ("run", "slow.spak", "--seed", "1", "--json")


def half(runs: Path) -> list[Path]:
    return list(runs.glob("*/workspace/half.txt"))


def rolled_back(runs: Path, run: str) -> bool:
    workspace = runs / run / "workspace"
    return not (workspace / "half.txt").exists() and (workspace / "first.txt").read_text() == "one\n"


@pytest.mark.sandbox
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl_c", "sigterm"])
def test_a_signal_in_the_middle_of_a_tool(
    cli: Cli, tmp_path: Path, runs: Path, marker: str, number: int
) -> None:
    summary = cli(*START).json["summary_hash"]
    (first,) = half(runs)
    stopped = Background(tmp_path, *START)
    stopped.until(lambda: len(half(runs)) == 2)
    stopped.kill(number)
    done = stopped.done()
    assert gone(marker), processes(marker)
    assert (done.code, done.json["state"]) == (6, "paused"), done.err
    run = done.json["run"]
    assert rolled_back(runs, run) and first.exists()
    assert cli("show", run, "--json").json["state"] == "paused"
    resumed = cli("resume", run, "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["state"] == "succeeded"
    assert resumed.json["summary_hash"] == summary


@pytest.mark.sandbox
def test_a_timeout_in_the_middle_of_a_tool(cli: Cli, runs: Path, marker: str) -> None:
    for timeout in (1, 3, 5, 7, 9, 12, 15, 18, 21):  # the tool takes 3 s: one of these ends in its middle
        done = cli(*START, "--timeout", str(timeout))
        assert gone(marker), processes(marker)
        assert (done.code, done.json["state"]) == (6, "paused")
        if (runs / done.json["run"] / "workspace/first.txt").exists():
            break
    run, records = done.json["run"], done.json["records"]
    assert rolled_back(runs, run)
    assert done.json["refusal"] is None and done.json["waiting"] is None
    again = cli("resume", run, "--timeout", "0.6", "--json")
    assert (again.code, again.json["state"]) == (6, "paused")
    assert again.json["summary_hash"] == done.json["summary_hash"], "a stop leaves no commit"
    assert again.json["records"] == records + 1, "only the resumption is recorded"
    resumed = cli("resume", run, "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["state"] == "succeeded"
    assert resumed.json["summary_hash"] == cli(*START).json["summary_hash"]
    assert cli("replay", run, "--json").json["equal"] is True


@pytest.mark.sandbox
def test_two_who_resume_the_same_run(cli: Cli, tmp_path: Path, runs: Path, marker: str) -> None:
    script = tmp_path / "slow/slow.py"
    script.write_text(SCRIPT.replace("time.sleep(3)", UNTIL_TOLD))
    run = cli(*START, "--timeout", "0").json["run"]
    first = Background(tmp_path, "resume", run, "--json")
    first.until(lambda: half(runs))
    assert cli("show", run, "--json").json["state"] == "running"
    for verb in (("resume", run), ("step", run), ("cancel", run), ("resume", run, "--timeout", "0")):
        second = cli(*verb, "--json")
        assert (second.code, second.error) == (1, "ledger.busy"), verb
        assert str(first.process.pid) in second.json["error"]["message"]
    (runs / run / "workspace" / "go").touch()
    done = first.done()
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert cli("replay", run, "--json").json["equal"] is True


@pytest.mark.sandbox
def test_a_kill_in_the_middle_of_a_tool(cli: Cli, tmp_path: Path, runs: Path, marker: str) -> None:
    killed = Background(tmp_path, *START)
    killed.until(lambda: half(runs))
    killed.kill(signal.SIGKILL)
    assert killed.done().code == -signal.SIGKILL
    assert gone(marker), processes(marker)
    (row,) = cli("runs", "--json").json["runs"]
    assert row["state"] == "paused"
    assert cli("ledger", "verify", row["run"]).code == 0
    resumed = cli("resume", row["run"], "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["state"] == "succeeded"
    assert (runs / row["run"] / "workspace/first.txt").read_text() == "spoilt"
    assert resumed.json["summary_hash"] == cli(*START).json["summary_hash"]


@pytest.mark.sandbox
def test_a_timeout_that_is_not_reached_changes_nothing(cli: Cli, ended: str) -> None:
    from cli_calls import HELLO

    done = cli("run", HELLO, "--seed", "7", "--timeout", "60", "--json")
    assert done.code == 0
    assert done.json["summary_hash"] == cli("show", ended, "--json").json["summary_hash"]
