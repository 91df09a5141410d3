"""`spak guard`: an agent's own sign-in in the place of a key, read on the host and sent by the proxy."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli, Done
from guard_kit import AGENT, KEY, Model

pytestmark = pytest.mark.sandbox

TOKEN = "oat01-the-token-of-alice-7d1f"
LATER = "oat01-a-renewed-token-of-alice-33"
CLAUDE = ".claude/.credentials.json"
FAR = 4_102_444_800_000
"""The year 2100, in milliseconds."""
LOOK = (
    "cat ~/.claude/.credentials.json $CLAUDE_CONFIG_DIR/.credentials.json; env; find / -name '.credentials*'"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project; beside it agents with the names of real ones."""
    folder = tmp_path / "project"
    folder.mkdir()
    bin_ = tmp_path / "node_modules/.bin"
    bin_.mkdir(parents=True)
    for name in ("claude", "codex", "other"):
        (bin_ / name).write_text("#!/usr/bin/env python3\n" + AGENT.read_text())
        (bin_ / name).chmod(0o755)
    return folder


def signed(folder: Path, **about: Any) -> Path:
    """Claude Code's file, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ".credentials.json"
    file.write_text(json.dumps({"claudeAiOauth": {"accessToken": TOKEN, "expiresAt": FAR} | about}))
    file.chmod(0o600)
    return file


def guard(cli: Cli, model: Model, project: Path, agent: str = "claude", **env: str) -> Done:
    home = str(project.parent / "home")
    all_of = {**model.env, "ANTHROPIC_API_KEY": "", "HOME": home, "CLAUDE_CONFIG_DIR": "", **env}
    program = str(project.parent / "node_modules/.bin" / agent)
    return cli("guard", "--json", "--", program, "work", env=all_of, folder=project)


def kept(project: Path) -> str:
    """All that the records of the runs hold, as text."""
    files = [path for path in project.glob(".spak/runs/2*/**/*") if path.is_file()]
    assert any(path.name == "trace.jsonl" for path in files)
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


@pytest.mark.parametrize("there", ["home/.claude", "elsewhere"])
def test_claudes_token_is_sent_and_is_nowhere_else(cli: Cli, project: Path, there: str) -> None:
    signed(project.parent / there)
    env = {"CLAUDE_CONFIG_DIR": str(project.parent / there)} if there == "elsewhere" else {}
    with Model([LOOK, f"echo {TOKEN}", f"echo {TOKEN}"]).serving() as model:
        done = guard(cli, model, project, **env)
    assert done.code == 0, done.err
    assert [one["authorization"] for one in model.headers] == [f"Bearer {TOKEN}"] * 4
    assert {one["anthropic-beta"] for one in model.headers} == {"oauth-2025-04-20"}
    assert not any(model.keys), "and no key besides"
    said = json.dumps(model.asked)
    assert TOKEN not in said and "[redacted" in said, "the agent does not see it, and cannot send it on"
    assert TOKEN not in kept(project) and TOKEN not in done.out
    assert cli("replay", done.json["run"], folder=project).code == 0


def test_it_is_sent_to_models_and_to_no_other_part_of_the_account(cli: Cli, project: Path) -> None:
    signed(project.parent / "home/.claude")
    code = r"""
import os, urllib.error, urllib.request
for path in ("v1/messages/batches", "api/oauth/claude_cli/create_api_key", "v1/sessions", "v1/messages?a=1"):
    try:
        print(urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/" + path, b'{"model": "m"}').status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""
    with Model([f"python3 -c {shlex.quote(code)}"]).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert model.said(2).split() == ["403", "403", "403", "200", "exit", "0"]
    assert len(model.asked) == 3


def test_a_token_that_was_renewed_outside_is_sent_from_then_on(cli: Cli, project: Path) -> None:
    folder = project.parent / "home/.claude"
    signed(folder)
    with Model(["true", f"echo {LATER}"]).serving() as model:
        model.before[0] = lambda: signed(folder, accessToken=LATER)
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert [one["authorization"] for one in model.headers] == [f"Bearer {TOKEN}", *[f"Bearer {LATER}"] * 2]
    assert LATER not in kept(project) + json.dumps(model.asked)


def test_a_token_that_expires_in_a_session_is_refused_with_what_to_do(cli: Cli, project: Path) -> None:
    folder = project.parent / "home/.claude"
    signed(folder)
    with Model(["true"]).serving() as model:
        model.before[0] = lambda: signed(folder, expiresAt=1)
        done = guard(cli, model, project)
    assert (done.code, len(model.asked)) == (3, 1), "the agent's own exit code"
    assert "has expired; start claude once outside of the guard and sign in there" in done.err
    assert "[guard.sign_in]" in done.err
    assert "guard.sign_in" in kept(project), "a clear record"


@pytest.mark.parametrize(
    ("agent", "file", "text", "why"),
    [
        ("claude", CLAUDE, {"claudeAiOauth": {"accessToken": TOKEN, "expiresAt": 1}}, "expired"),
        ("claude", CLAUDE, {"claudeAiOauth": {}}, "holds no token"),
        ("claude", CLAUDE, {"claudeAiOauth": {"accessToken": "a\nb" * 10}}, "holds no token"),
        ("claude", CLAUDE, [TOKEN], "not as the agent writes it"),
        ("codex", ".codex/auth.json", {"OPENAI_API_KEY": None, "tokens": {"access_token": TOKEN}}, "ChatGPT"),
    ],
)  # fmt: skip
def test_a_sign_in_that_cannot_be_used_is_an_error_before_anything_runs(
    cli: Cli, project: Path, agent: str, file: str, text: object, why: str
) -> None:
    path = project.parent / "home" / file
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(text))
    with Model([]).serving() as model:
        done = guard(cli, model, project, agent)
    assert (done.code, done.error) == (2, "guard.sign_in") and why in done.out, done.out
    assert not (project / ".spak/runs").exists() and TOKEN not in done.out + done.err


def test_codexs_key_is_sent_as_its_own(cli: Cli, project: Path) -> None:
    folder = project.parent / "home/.codex"
    folder.mkdir(parents=True)
    (folder / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-codex-key-of-alice-1234"}))
    with Model([]).serving() as model:
        send = """python3 - <<'E'
import os, urllib.request
base = os.environ["OPENAI_BASE_URL"]
urllib.request.urlopen(base + "/responses", b'{"model": "m"}').read()
E"""
        model.texts = [send]
        done = guard(cli, model, project, "codex", OPENAI_BASE_URL=model.env["ANTHROPIC_BASE_URL"])
    assert done.code == 0, done.err
    assert [one.get("authorization") for one in model.headers] == [
        None,
        "Bearer sk-codex-key-of-alice-1234",
        None,
    ]


@pytest.mark.parametrize(
    ("agent", "env"), [("other", {}), ("claude", {"ANTHROPIC_API_KEY": KEY}), ("codex", {})]
)
def test_it_is_sent_for_its_own_agent_only_and_not_where_there_is_a_key(
    cli: Cli, project: Path, agent: str, env: Mapping[str, str]
) -> None:
    signed(project.parent / "home/.claude")
    with Model([]).serving() as model:
        done = guard(cli, model, project, agent, **env)
    assert done.code == 0, done.err
    assert "authorization" not in model.headers[0]
    assert model.keys == [env.get("ANTHROPIC_API_KEY", "")]


def test_what_the_files_of_secrets_hold_is_not_sent_beside_a_key_either(cli: Cli, project: Path) -> None:
    """The same value in another file, which the agent sees."""
    (project / ".env").write_text("DB_PASSWORD=hunter2hunter2hunter2\n")
    (project / "notes.txt").write_text("the value is hunter2hunter2hunter2\n")
    shutil.copy(AGENT, project / "agent.py")
    with Model(["cat notes.txt"]).serving() as model:
        done = cli("guard", "--json", "--", sys.executable, "agent.py", "x", env=model.env, folder=project)
    assert done.code == 0, done.err
    assert "the value is [redacted" in model.said(1)
