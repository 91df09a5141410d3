"""`HISTORY n`: the last commits of the user, without what is secret, in the repository that jobs see."""

from __future__ import annotations

import time
from pathlib import Path

from commits_kit import is_secret
from git_http_kit import git
from spak.repository.commits import follow
from spak.repository.git import Git
from spak.repository.past import HELD_BACK, bring

TOKEN = "ghp_" + "a1B2" * 9


def commit(repo: Path, message: str, **files: str | None) -> None:
    for name, text in files.items():
        path = repo / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.unlink() if text is None else path.write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", message)


def brought(repo: Path, tmp_path: Path, count: int) -> Path:
    follow(tmp_path / "bare", repo)
    bare, into = (Git(tmp_path / name, time.monotonic() + 60, 1 << 30) for name in ("bare", "scratch"))
    into.begin()
    last = bring(
        bare, into, "refs/heads/main", count, lambda path, data, old=None: is_secret(path or "x", data)
    )
    assert last == git(into.folder, "rev-parse", "main")
    return into.folder


def test_the_last_commits_come_without_secrets(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    commit(repo, "too old", a_txt="0\n", old_txt="old\n")
    commit(repo, "one", a_txt="1\n", _env="PASSWORD=hunter22x9\n", docs__n_txt=f"use {TOKEN}\n")
    commit(repo, "two\n\nand why", b_txt="2\n", docs__n_txt="clean\n", old_txt=None)
    commit(repo, f"a message with {TOKEN}", _env=None, docs__n_txt=f"again {TOKEN}\n")
    made = brought(repo, tmp_path, 3)
    log = git(made, "log", "--format=%an <%ae> %B", "--reverse", "main")
    assert log.splitlines()[0] == "A <a@b> one" and "too old" not in log
    assert "and why" in log and log.endswith(HELD_BACK.strip())
    assert git(made, "ls-tree", "-r", "--name-only", "main~2").splitlines() == ["a.txt", "old.txt"]
    assert git(made, "ls-tree", "-r", "--name-only", "main~1").splitlines() == [
        "a.txt",
        "b.txt",
        "docs/n.txt",
    ]
    assert git(made, "ls-tree", "-r", "--name-only", "main").splitlines() == ["a.txt", "b.txt"]
    every = git(made, "log", "-p", "--all")
    assert "hunter22x9" not in every and TOKEN not in every
    git(made, "fsck", "--strict")


def test_a_merge_is_one_commit_of_the_first_line(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    commit(repo, "one", a_txt="1\n")
    git(repo, "switch", "-q", "-c", "topic")
    commit(repo, "aside", t_txt="t\n")
    git(repo, "switch", "-q", "main")
    commit(repo, "two", a_txt="2\n")
    git(repo, "merge", "-q", "--no-ff", "-m", "merged", "topic")
    made = brought(repo, tmp_path, 9)
    assert git(made, "log", "--format=%s", "main") == "merged\ntwo\none"
    assert git(made, "ls-tree", "--name-only", "main") == "a.txt\nt.txt"


def test_without_history_nothing_comes(tmp_path: Path) -> None:
    bare, into = (Git(tmp_path / name, time.monotonic() + 60, 1 << 30) for name in ("bare", "scratch"))
    assert bring(bare, into, "refs/heads/main", 3, is_secret) == ""
