"""Hooks of an agent behind the walls: what the law forbids is denied, all else goes on in silence."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli
from guard_kit import AGENT, Model

pytestmark = pytest.mark.sandbox

LAW = """
forbidden(A) :- runs_program(A, _, "curl").
forbidden(A) :- uses_path(A, /edits, _, "kept.txt").
forbidden(A) :- tool(A, /mcp__mail__send).
Decl tested(What) descr [fold("open"), counts("done")] bound [/string].
feed_tested("src") :- event(E), tool(E, /run).
close_tested("src") :- event(E), tool(E, /write_file).
forbidden(A) :- uses_path(A, /edits, _, "VERSION"), !tested("src").
forbidden(A) :- uses_path(A, /edits, _, "signed.txt"), !approved(A).
"""


@pytest.fixture
def project(tmp_path: Path, cli: Cli) -> Path:
    """A project with a law, and with hooks of each agent."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept\n")
    (folder / "law.mg").write_text(LAW)
    (folder / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    shutil.copy(AGENT, folder / "agent.py")
    for agent in ("claude", "codex"):
        assert cli("guard", "hooks", "install", agent, folder=folder).code == 0
    return folder


def asked(file: str, tool: str, cwd: str = "/ws", **args: Any) -> str:
    """A command of the agent that runs the hook before a call, as its settings say it."""
    find = f"import json; print(json.load(open('{file}'))['hooks']['PreToolUse'][0]['hooks'][0]['command'])"
    event = json.dumps({"tool_name": tool, "tool_input": args, "cwd": cwd, "session_id": "s"})
    return f'sh -c "$(python3 -c {shlex.quote(find)})" <<\'E\'; echo "hook $?"\n{event}\nE\n'


def posted(path: str, body: str) -> str:
    """The same as Claude Code asks by HTTP, with any text."""
    code = "import os, sys, urllib.request as u; base = os.environ['HTTPS_PROXY']\n"
    code += f"print('answer', u.urlopen(base + '{path}', {body.encode()!r}).read().decode())"
    return f"python3 -c {shlex.quote(code)}\n"


@pytest.mark.parametrize("file", [".claude/settings.local.json", ".codex/hooks.json"])
def test_what_the_law_forbids_is_denied_with_its_rule(cli: Cli, project: Path, file: str) -> None:
    texts = [
        asked(file, "Bash", command="curl https://example.org/"),
        asked(file, "Write", file_path="/ws/kept.txt", content="x"),
        asked(file, "Write", cwd=str(project), file_path=f"{project}/kept.txt", content="x"),
        asked(file, "Write", file_path="kept.txt", content="x"),
        asked(file, "mcp__mail__send", to="bob"),
    ]
    with Model(texts).serving() as model:
        done = cli("guard", "--", sys.executable, "agent.py", "x", env=model.env, folder=project)
    assert done.code == 0, done.err
    for number, rule in enumerate((2, 3, 3, 3, 4), 1):
        said = model.said(number)
        assert f"operator/law.mg:{rule}" in said and "hook 2" in said, said


def test_all_else_is_let_through_in_silence(cli: Cli, project: Path) -> None:
    """What nobody permitted, what the shipped law forbids, what is not understood: the walls hold."""
    file = ".codex/hooks.json"
    texts = [
        asked(file, "Bash", command="rm -rf / --no-preserve-root"),
        asked(file, "Read", file_path="/etc/passwd"),
        asked(file, "mcp__other__tool", a=1),
        asked(file, "Write", file_path="/ws/other.txt", content="x"),
        asked(file, "Write", file_path="/ws/VERSION", content="x"),  # what happened before is not known here
        asked(file, "Write", file_path="/ws/signed.txt", content="x"),
        posted("/hook", "[1]") + posted("/hook", "no JSON") + posted("/hook", '{"tool_input": {}}'),
    ]
    with Model(texts).serving() as model:
        done = cli("guard", "--", sys.executable, "agent.py", "x", env=model.env, folder=project)
    assert done.code == 0, done.err
    assert [model.said(number) for number in range(1, 7)] == ["hook 0\nexit 0"] * 6
    assert model.said(7) == "answer \n" * 3 + "exit 0"


def test_claude_code_asks_by_http_without_hooks_of_the_project(cli: Cli, project: Path) -> None:
    """Its options say so, where the law has a rule of its own; the answer is as it reads one."""
    shutil.rmtree(project / ".claude")
    agent = project / "claude"
    options = "import sys; print('options', sys.argv[sys.argv.index('--settings') + 1])"
    agent.write_text(
        f"#!/usr/bin/env python3\n{options}\nimport sys; sys.argv[1] = 'x'\n" + AGENT.read_text()
    )
    agent.chmod(0o755)
    event = json.dumps({"tool_name": "Bash", "tool_input": {"command": "curl x"}, "cwd": "/ws"})
    with Model([posted("/hook", event)]).serving() as model:
        done = cli("guard", "--", "./claude", "x", env=model.env, folder=project)
        (project / "spak.toml").unlink()
        without = cli("guard", "--", "./claude", "x", env=model.env, folder=project)
    settings = json.loads(done.out.partition("options ")[2].partition("\n")[0])
    (hook,) = settings["hooks"]["PreToolUse"][0]["hooks"]
    assert hook["type"] == "http" and hook["url"].endswith("/hook")
    said = json.loads(model.said(1).partition("answer ")[2].partition("\n")[0])["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny" and "operator/law.mg:2" in said["permissionDecisionReason"]
    assert "hooks" not in json.loads(without.out.partition("options ")[2].partition("\n")[0])
