"""A run that pushes: only what a person signed reaches the remote, at the address that was judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli
from git_http_kit import git, serving
from judged_host_kit import REACH, at_home

pytestmark = pytest.mark.sandbox

SPEC = """
AGENT Push LEVEL 2 {
  CONFIG { APPROVALS ask, HOSTS ["api.example"] }
  START -> t
  TASK t {
    step out: tool.git_push {
      url: "http://api.example:PORT/app.git", branch: "spak/x", token: "secret://GIT"
    }
    step line: tool.run { cmd: ["git", "log", "--oneline"] }
  }
}
"""
SECRET = 'secret_may_go("GIT", /git_push, "token").\n'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    with serving(tmp_path / "remote") as found:
        found.password = "x-access-token:t0ken-of-the-team"
        yield found


@pytest.fixture
def project(tmp_path: Path, server: Any, cli: Cli) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    (tmp_path / "push.spak").write_text(SPEC.replace("PORT", str(server.server_port)))
    (tmp_path / "law.mg").write_text(REACH + SECRET)
    key = cli("keys", "make", "alice", env=home(tmp_path)).out
    (tmp_path / "spak.toml").write_text(
        f'[policy]\nlaw = ["law.mg"]\n[secrets]\nGIT = {{ env = "TEAM_TOKEN" }}\n{key}'
    )
    return folder


def home(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "home"), "TEAM_TOKEN": "t0ken-of-the-team"}


def start(cli: Cli, folder: Path) -> Any:
    done = cli("run", "push.spak", "--workspace", "project", "--json", env=home(folder), before=at_home)
    assert done.code == 4, done.out + done.err
    return done.json


def test_an_approved_push_reaches_the_remote(cli: Cli, server: Any, project: Path, tmp_path: Path) -> None:
    waits = start(cli, tmp_path)
    assert waits["waiting"]["name"] == "git_push" and server.seen == []
    done = cli("approve", waits["run"], "--json", env=home(tmp_path), before=at_home)
    assert (done.code, done.json["state"]) == (0, "succeeded"), done.out + done.err
    assert git(server.bare, "rev-parse", "spak/x") == git(project, "rev-parse", "HEAD")
    records = next(tmp_path.rglob("trace.jsonl")).read_text()
    assert "t0ken-of-the-team" not in records
    seen = len(server.seen)
    assert cli("replay", waits["run"], "--json").json["equal"] and len(server.seen) == seen


def test_a_push_that_is_not_approved_does_not(cli: Cli, server: Any, project: Path, tmp_path: Path) -> None:
    waits = start(cli, tmp_path)
    done = cli("approve", waits["run"], "--deny", "--json", env=home(tmp_path), before=at_home)
    assert done.code != 0 and server.seen == []
    assert git(server.bare, "for-each-ref") == ""


@pytest.mark.parametrize("law", ["", SECRET, REACH])
def test_no_signature_opens_what_the_law_closes(
    cli: Cli, server: Any, project: Path, tmp_path: Path, law: str
) -> None:
    (tmp_path / "law.mg").write_text(law or "# nothing\n")
    done = cli("run", "push.spak", "--workspace", "project", "--json", env=home(tmp_path), before=at_home)
    assert done.code not in (0, 4) and "policy.forbidden" in done.out and server.seen == []
