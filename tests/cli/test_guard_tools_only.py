"""`spak guard --workspace-mode tools`: the agent sees an empty folder, and the files by our tools only."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli, Done, forked
from guard_kit import AGENT, Model, tree
from spak.records import Record
from spak.runner import Run

pytestmark = pytest.mark.sandbox

CLIENT = Path(__file__).parents[1] / "mcp_client.py"
READS = 'forbidden(A) :- uses_path(A, /reads, _, "private.txt").\n'
LOOK = "ls -A; cat private.txt a.txt; echo x > new.txt"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "private.txt").write_text("the private text\n")
    return folder


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A folder with the agent and a client of MCP, outside of the project."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for file in (AGENT, CLIENT):
        shutil.copy(file, folder)
    return folder


def tool(agent: Path, name: str, args: Mapping[str, Any]) -> str:
    return f"python3 {agent}/mcp_client.py {name} '{json.dumps(args)}'"


def guard(cli: Cli, model: Model, project: Path, agent: Path, *more: str) -> Done:
    line = ("guard", "--show", str(agent), *more, "--", sys.executable, f"{agent}/{AGENT.name}", "work")
    return cli(*line, env=model.env, folder=project)


def test_it_sees_an_empty_folder_and_works_by_our_tools(cli: Cli, project: Path, agent: Path) -> None:
    before = tree(project)
    write = tool(agent, "write_file", {"path": "a.txt", "content": "two\n"})
    texts = [LOOK, tool(agent, "read_file", {"path": "a.txt"}), write, f"cat a.txt {project}/a.txt"]
    with Model([*texts, tool(agent, "run", {"cmd": ["cat", "a.txt"]})]).serving() as model:
        done = guard(cli, model, project, agent, "--workspace-mode", "tools")
    assert done.code == 0, done.err
    assert "the agent sees an empty folder: it works by our tools" in done.err
    said = model.said(1)
    assert "private text" not in said and "one" not in said and ".venv" not in said, said
    assert "Read-only file system" in said, "what it writes there would be lost"
    assert "done: one\n" in model.said(2) and "done: a.txt" in model.said(3)
    assert "two" not in model.said(4) and "done: two\n" in model.said(5)
    assert tree(project) == before
    name = done.err.partition("spak: run ")[2].partition(";")[0]
    for verb in (("replay", name), ("ledger", "verify", name), ("apply", name)):
        assert cli(*verb, folder=project).code == 0
    assert (project / "a.txt").read_text() == "two\n"


def test_a_law_that_speaks_about_reads_switches_it_on(cli: Cli, project: Path, agent: Path) -> None:
    (project / "law.mg").write_text(READS)
    (project / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    read = tool(agent, "read_file", {"path": "private.txt"})
    with Model([LOOK, read]).serving() as model:
        done = guard(cli, model, project, agent)
    assert done.code == 0, done.err
    assert "an empty folder, since operator/law.mg:1 speaks about reads" in done.err
    assert "private text" not in model.said(1) + model.said(2)
    assert "failed: " in model.said(2) and "law.mg:1" in model.said(2)


def test_rules_of_the_command_line_do_too(cli: Cli, project: Path, agent: Path) -> None:
    (project / "more.mg").write_text(READS)
    with Model([LOOK]).serving() as model:
        done = guard(cli, model, project, agent, "--policy", "more.mg")
    assert "since team/more.mg:1 speaks about reads" in done.err
    assert "private text" not in model.said(1)


def killed() -> None:
    """In the command's process: killed when the first file is written."""
    appended = Run._append

    def append(self: Run, records: list[Record]) -> None:
        appended(self, records)
        if self.state.r3 != self.rules.r3:
            os.kill(os.getpid(), signal.SIGKILL)

    Run._append = append  # type: ignore[method-assign]


def test_a_session_goes_on_as_it_began(cli: Cli, project: Path, agent: Path) -> None:
    write = tool(agent, "write_file", {"path": "b.txt", "content": "two\n"})
    line = ("--show", str(agent), "--", sys.executable, f"{agent}/{AGENT.name}", "work")
    with Model([write]).serving() as model:
        done = forked(project, ("guard", "--workspace-mode", "tools", *line), env=model.env, before=killed)
        assert done.code == -signal.SIGKILL, done.err
        name = next((project / ".spak/runs").glob("2*")).name
        model.texts = [LOOK, tool(agent, "read_file", {"path": "b.txt"})]
        model.asked.clear()
        done = forked(project, ("guard", "--resume", name, *line), env=model.env)
    assert done.code == 0 and "the agent sees an empty folder" in done.err, done.err
    assert "one" not in model.said(1) and "done: two\n" in model.said(2)
    again = cli(
        "guard", "--json", "--resume", name, "--workspace-mode", "tools", "--", "true", folder=project
    )
    assert again.code == 2 and again.error == "usage.arguments"
