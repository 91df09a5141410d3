"""`HISTORY n`: the last commits of the user, without what is secret, in the repository that jobs see."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from commits_kit import is_secret
from git_http_kit import git
from spak.errors import RunError
from spak.repository.begun import follow
from spak.repository.git import Git
from spak.repository.past import HELD_BACK, LARGE, bring, freeze, recognised, require_whole, thaw

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


def test_a_damaged_author_and_one_that_holds_a_secret_bring_nobody(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    commit(repo, "one", a_txt="1\n")
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    parent = git(repo, "rev-parse", "HEAD")
    authors = (
        "A <a@b>",
        f"{TOKEN} <{TOKEN}@b> 1 +0000",
        "A <a@b> -9 +0000",
        "A <a@b> 99999999999999999999 +0000",
    )
    for author in authors:
        text = f"tree {tree}\nparent {parent}\nauthor {author}\ncommitter A <a@b> 1 +0000\n\nmore\n"
        made = tmp_path / "commit"
        made.write_text(text)
        parent = git(repo, "hash-object", "-t", "commit", "-w", "--literally", str(made))
    git(repo, "update-ref", "refs/heads/main", parent)
    found = brought(repo, tmp_path, 9)
    assert git(found, "log", "--format=%an %at", "main~4..main~2") == "somebody 1\nA 0"
    assert TOKEN not in git(found, "log", "--format=%an %ae %B", "--all")


def test_what_is_large_or_not_in_the_clone_stays_out_and_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small pack may hold gigabytes, and a partial clone lacks what its history names."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / "large.bin").write_bytes(b"\0" * (LARGE + 1))
    commit(repo, "one", a_txt="1\n", gone_txt="first\n")
    commit(repo, "two", gone_txt="second\n")
    lost = git(repo, "rev-parse", "HEAD:gone.txt")
    (repo / ".git/objects" / lost[:2] / lost[2:]).unlink()
    read = []
    local = Git.local
    monkeypatch.setattr(Git, "local", lambda *args, **more: read.append(local(*args, **more)) or read[-1])
    made = brought(repo, tmp_path, 9)
    assert max(map(len, read)) < LARGE
    assert git(made, "ls-tree", "--name-only", "main~1") == "a.txt\ngone.txt"
    assert git(made, "ls-tree", "--name-only", "main") == "a.txt"


def test_without_history_nothing_comes(tmp_path: Path) -> None:
    bare, into = (Git(tmp_path / name, time.monotonic() + 60, 1 << 30) for name in ("bare", "scratch"))
    assert bring(bare, into, "refs/heads/main", 3, is_secret) == ""


def test_frozen_commits_come_in_place_of_the_users_and_are_the_same_each_time(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    commit(repo, "one", a_txt="1\n", _env="PASSWORD=hunter22x9\n")
    commit(repo, "two", b_txt="a value that is known\n")
    commit(repo, "three", a_txt="3\n")
    follow(tmp_path / "users", repo)
    users = Git(tmp_path / "users", time.monotonic() + 60, 1 << 30)
    secret = recognised(lambda data: b"that is known" in data)
    frozen = freeze(users, 2, secret)
    assert frozen == freeze(users, 2, secret) and b"three" in frozen and b"\none\n" not in frozen
    whole = freeze(users, 9, secret)
    assert b"\none\n" in whole and b"hunter22x9" not in whole and b"that is known" not in whole
    follow(tmp_path / "bare", repo)
    commit(repo, "later", a_txt="4\n")
    for _ in range(2):
        thaw(tmp_path / "bare", frozen)
    made = [Git(tmp_path / name, time.monotonic() + 60, 1 << 30) for name in ("bare", "scratch")]
    made[1].begin()
    bring(*made, "refs/heads/main", 9, is_secret)
    assert git(made[1].folder, "log", "--format=%s", "main") == "three\ntwo"
    assert git(made[0].folder, "for-each-ref", "--format=%(refname)") == "refs/spak/base"


def test_what_frozen_commits_name_besides_is_no_commit_of_the_run(tmp_path: Path) -> None:
    frozen = b"commit refs/spak/base\ncommitter A <a@b> 1 +0000\ndata 4\nevil\nM 644 inline x\ndata 1\nx\n\n"
    frozen += (
        b"commit refs/spak/past\ncommitter A <a@b> 1 +0000\ndata 4\ngood\nM 644 inline y\ndata 1\ny\n\ndone\n"
    )
    thaw(tmp_path / "bare", frozen)
    assert not (tmp_path / "bare").exists()
    bare, into = (Git(tmp_path / name, time.monotonic() + 60, 1 << 30) for name in ("bare", "scratch"))
    into.begin()
    bring(bare, into, "refs/heads/main", 9, is_secret)
    assert git(into.folder, "log", "--all", "--format=%s") == "good"


def test_a_shallow_clone_that_lacks_commits_is_said_to(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    for number in range(4):
        commit(repo, str(number), a_txt=f"{number}\n")
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{repo}", "shallow")
    follow(tmp_path / "bare", tmp_path / "shallow")
    bare = Git(tmp_path / "bare", time.monotonic() + 60, 1 << 30)
    for count in (0, 2):
        require_whole(bare, count)
    with pytest.raises(RunError) as raised:
        require_whole(bare, 3)
    assert raised.value.code == "git.shallow" and "HISTORY 3" in raised.value.message
    assert "2 commits" in raised.value.message
    follow(tmp_path / "whole", repo)
    require_whole(Git(tmp_path / "whole", time.monotonic() + 60, 1 << 30), 9)
