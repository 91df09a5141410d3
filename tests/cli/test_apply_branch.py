"""`spak apply --branch`: commits of a run become a branch, and nothing else of the repository changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_kit import raw, run_dir, spak
from git_http_kit import git

pytestmark = pytest.mark.sandbox

SPEC = """AGENT P LEVEL 4 {{ CONFIG {{ MODE full_auto }} START -> a
TASK a {{ {steps}
  VALIDATOR Command {{ cmd: "true" }} NEXT {{ success -> b }} }}
TASK b {{ step k: tool.git_commit {{ message: "fix" }} {after} }} }}
"""
TWICE = """AGENT P LEVEL 4 { CONFIG { MODE full_auto } START -> a
TASK a { step w: tool.write_file { path: "conftest.py" content: "import os" }
  VALIDATOR Command { cmd: "true" } NEXT { success -> b } }
TASK b { step k: tool.git_commit { message: "plant" } NEXT { success -> c } }
TASK c { step r: tool.run { cmd: "rm conftest.py" }
  step w: tool.write_file { path: "src/app.py" content: "X = 2" }
  VALIDATOR Command { cmd: "true" } NEXT { success -> d } }
TASK d { step k: tool.git_commit { message: "fix" } } }
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "src/app.py").write_text("X = 1\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def writes(path: str, text: str = "X = 2\\n") -> str:
    return f'step w{len(path)}: tool.write_file {{ path: "{path}" content: "{text}" }}'


def ran(repo: Path, *steps: str, after: str = "") -> str:
    (repo.parent / "p.spak").write_text(SPEC.format(steps="\n".join(steps), after=after))
    code, seen = spak(repo.parent, "run", "p.spak", "--workspace", "repo", "--json")
    assert code == 0, seen
    return str(seen["run"])


def test_the_commits_become_a_branch_and_nothing_else_changes(repo: Path, tmp_path: Path) -> None:
    (repo / ".git/hooks").mkdir(exist_ok=True)
    hook = repo / ".git/hooks/reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    run = ran(repo, writes("src/app.py"))
    code, found = spak(tmp_path, "apply", run, "--branch", "", "--check", "--json")
    assert (code, found["applied"]) == (0, [{"path": "src/app.py", "class": "ordinary"}])
    assert git(repo, "branch", "--format=%(refname:short)") == "main"
    for _ in range(2):
        code, found = spak(tmp_path, "apply", run, "--branch", f"spak/{run}", "--json")
        assert (code, found["branch"]) == (0, f"spak/{run}")
    assert git(repo, "log", "--format=%s", f"spak/{run}").splitlines() == ["fix", "first"]
    assert git(repo, "show", f"spak/{run}:src/app.py") == "X = 2"
    assert (repo / "src/app.py").read_text() == "X = 1\n" and git(repo, "status", "--porcelain") == ""
    assert not (tmp_path / "ran").exists()
    git(repo, "fsck", "--strict")


def test_what_may_run_by_itself_waits(repo: Path, tmp_path: Path) -> None:
    run = ran(repo, writes("src/app.py"), writes("conftest.py"))
    code, found = spak(tmp_path, "apply", run, "--branch", "spak/x", "--json")
    assert code == 4 and [one["path"] for one in found["held"]] == ["conftest.py"]
    assert git(repo, "branch", "--format=%(refname:short)") == "main"
    code, _ = spak(tmp_path, "apply", run, "--branch", "spak/x", "--allow-runs", "conftest.py", "--json")
    assert code == 0 and "conftest.py" in git(repo, "ls-tree", "--name-only", "spak/x")


def test_what_an_earlier_commit_has_waits_too(repo: Path, tmp_path: Path) -> None:
    """It is gone at the end, and in the history that the branch brings."""
    (tmp_path / "p.spak").write_text(TWICE)
    _, seen = spak(tmp_path, "run", "p.spak", "--workspace", "repo", "--json")
    assert seen["state"] == "succeeded", seen
    run = str(seen["run"])
    code, found = spak(tmp_path, "apply", run, "--branch", "spak/x", "--json")
    assert code == 4 and [one["path"] for one in found["held"]] == ["conftest.py"]
    code, _ = spak(tmp_path, "apply", run, "--branch", "spak/x", "--allow-runs", "conftest.py", "--json")
    assert code == 0 and git(repo, "log", "--format=%s", "spak/x").splitlines() == ["fix", "plant", "first"]


def test_what_a_person_confirmed_is_signed_and_kept(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    run = ran(repo, writes("src/app.py"), writes("conftest.py"))
    (tmp_path / "spak.toml").write_text(raw(tmp_path, "keys", "make", "me").stdout)
    confirmed = ("apply", run, "--branch", "spak/x", "--allow-runs", "conftest.py", "--json")
    keys = tmp_path / "config/spak/keys"
    keys.rename(tmp_path / "elsewhere")
    code, found = spak(tmp_path, *confirmed)
    assert (code, found["error"]["code"]) == (2, "keys.missing")
    assert git(repo, "branch", "--format=%(refname:short)") == "main"
    (tmp_path / "elsewhere").rename(keys)
    assert spak(tmp_path, *confirmed)[0] == 0
    (kept,) = json.loads((run_dir(tmp_path, {"run": run}) / "applied/done.json").read_bytes())
    assert (kept["about"]["runs"], kept["about"]["branch"]) == (["conftest.py"], "spak/x")
    assert kept["about"]["approval"]["signature"]
    code, found = spak(tmp_path, "apply", run, "--undo", "--json")
    assert (code, found["error"]["code"]) == (1, "apply.nothing"), "a branch changed no file of the folder"


@pytest.mark.parametrize(("name", "code"), [("main", "apply.branch_taken"), ("a..b", "apply.branch")])
def test_names_that_are_taken_or_none(repo: Path, tmp_path: Path, name: str, code: str) -> None:
    run = ran(repo, writes("src/app.py"))
    status, found = spak(tmp_path, "apply", run, f"--branch={name}", "--json")
    assert status == 1 and found["error"]["code"] == code
    assert git(repo, "log", "--format=%s", "main") == "first"


def test_files_that_changed_after_the_commit_are_not_what_was_looked_at(repo: Path, tmp_path: Path) -> None:
    run = ran(repo, writes("src/app.py"), after=writes("src/app.py", "X = 3\\n"))
    status, found = spak(tmp_path, "apply", run, "--branch", "spak/x", "--json")
    assert status == 1 and found["error"]["code"] == "apply.branch_behind"
