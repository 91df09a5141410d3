"""The guard is killed after any record of a session: its agent is gone with it, and the session goes on."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli_calls import Done, forked
from fault_points import FaultPoints
from guard_kit import AGENT, Model, left_of
from mcp_kit import pin
from process_kit import until
from spak.ports import Call, ToolResult
from spak.records import Record
from spak.runner import Run
from spak.tools.served import Served

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(900)]

CLIENT = Path(__file__).parents[1] / "mcp_client.py"
STEPS = (
    "echo 1 >> log; sleep 1000 >/dev/null 2>&1 & echo started",
    'python3 mcp_client.py run \'{"cmd": ["sh", "-c", "echo 2 >> log"]}\'',
    "mkdir -p deep/er; chmod +x log; echo 3 >> log",
)
ENDED, OVER = 45, 48
"""Records after which the end of the agent is one of them, and after which they lead to the run's end."""


def killed_after(count: int) -> None:
    """In the command's process: no record after so many, also where several are written at once."""
    appended = Run._append

    def append(self: Run, records: list[Record]) -> None:
        appended(self, records[: count - self.ledger.count])
        if self.ledger.count >= count:
            os.kill(os.getpid(), signal.SIGKILL)

    Run._append = append  # type: ignore[method-assign]


def session(project: Path, model: Model, *more: str, count: int = 1 << 30) -> Done:
    line = ("guard", "--json", "--wait", "0", *more, "--", sys.executable, "agent.py", "work")
    return forked(project, line, env=model.env, before=lambda: killed_after(count))


def placed(project: Path) -> Path:
    project.mkdir()
    for file in (AGENT, CLIENT):
        shutil.copy(file, project / ("agent.py" if file == AGENT else file.name))
    return project


def records(tmp_path: Path) -> int:
    """How many records a whole session has."""
    project = placed(tmp_path / "whole")
    with Model(STEPS).serving() as model:
        name = session(project, model).json["run"]
    return len((project / ".spak/runs" / name / "trace.jsonl").read_bytes().splitlines())


def walk(tmp_path: Path, counts: Sequence[int], points: FaultPoints) -> None:
    for count in counts:
        project = placed(tmp_path / f"p{count}")
        with Model(STEPS).serving() as model:
            killed = session(project, model, count=count)
            assert killed.code == -signal.SIGKILL, (count, killed.err)
            until(lambda project=project: not left_of(project))  # type: ignore[misc]
            name = next((project / ".spak/runs").glob("2*")).name
            model.texts = ["cat log 2>/dev/null; ls -l log; ls -d deep/er; echo again >> log"]
            model.asked.clear()
            done = session(project, model, "--resume", name)
        if count >= OVER:
            assert done.error == "guard.over", (count, done.err)
        else:
            assert done.code == 0, (count, done.err)
        assert forked(project, ("show", "--json", name)).json["state"] == "succeeded", count
        lines = (project / ".spak/runs" / name / "workspace/log").read_text().split()
        if count >= ENDED:
            assert lines == ["1", "2", "3"] and not model.asked, count
        else:
            assert lines == [*["1", "2", "3"][: len(lines) - 1], "again"], (count, "each effect once")
            if "3" in lines:
                assert "-rwx" in model.said(1) and "deep/er\n" in model.said(1), count
        for verb in (("ledger", "verify"), ("replay",)):
            assert forked(project, (*verb, name)).code == 0, (count, verb)
        points["killed"] += 1


def test_a_killed_guard_takes_its_agent_along_and_goes_on(tmp_path: Path, fault_points: FaultPoints) -> None:
    """During a request to the model, a turn's changes, a call of a tool of ours."""
    walk(tmp_path, (5, 13, 18, 27, ENDED), fault_points)


@pytest.mark.faults
@pytest.mark.slow
def test_the_same_after_every_record(tmp_path: Path, fault_points: FaultPoints) -> None:
    walk(tmp_path, range(1, records(tmp_path)), fault_points)


def test_a_call_of_an_mcp_server_that_was_under_way_is_not_made_again(tmp_path: Path) -> None:
    project = placed(tmp_path / "project")
    pin(project, "small")
    (project / "law.mg").write_text('mcp_may("small", "say").\n')
    (project / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    called = Served._run

    def killed() -> None:
        def run(self: Served, call: Call) -> ToolResult:
            called(self, call)
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        Served._run = run  # type: ignore[method-assign]

    say = 'python3 mcp_client.py small__say \'{"text": "a"}\''
    line = ("--", sys.executable, "agent.py", "work")
    with Model([say]).serving() as model:
        begun = forked(project, ("guard", "--mcp", "small", *line), env=model.env, before=killed)
        assert begun.code == -signal.SIGKILL, begun.err
        until(lambda: not left_of(project))
        name = next((project / ".spak/runs").glob("2*")).name
        model.texts = [say, "python3 mcp_client.py small__count '{}'"]
        model.asked.clear()
        done = session(project, model, "--resume", name)
    assert done.code == 0, done.err
    assert "whether the last call of small.say was done is not known" in model.said(1)
    assert 'mcp_may("small", "count")' in model.said(2), "the tools are those that it began with"
    lines = (project / ".spak/runs" / name / "trace.jsonl").read_text().splitlines()
    assert sum("mcp.lost" in line for line in lines) == 1 and not any("say 1:" in line for line in lines)
    for verb in (("ledger", "verify"), ("replay",)):
        assert forked(project, (*verb, name)).code == 0, verb


def test_a_session_that_ended_is_not_resumed(tmp_path: Path) -> None:
    shutil.copy(AGENT, tmp_path / "agent.py")
    with Model([]).serving() as model:
        name = session(tmp_path, model).json["run"]
        again = session(tmp_path, model, "--resume", name)
    assert again.code == 2 and again.error == "guard.over"
