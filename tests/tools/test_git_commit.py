"""`git_commit` with real git: what it commits and refuses, in repositories of every shape."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commits_kit import Do, RunOf, commit, hostile, names, refused
from git_http_kit import git
from spak.ports import Call
from spak.tools.git_commit import GitCommit
from spak.tools.git_push import BRANCH


def test_what_changed_is_committed_and_git_agrees(do: Do, repo: Path, run: RunOf) -> None:
    (repo / "a.txt").write_text("two\n")
    (repo / "dir").mkdir()
    (repo / "dir/new name.txt").write_text("new\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "link").symlink_to("a.txt")
    first = git(repo, "rev-parse", "HEAD")
    done = commit(do, "Say two\n\nand why\n\n", author="Alice B <alice@example.org>")
    assert done.status == "exited" and done.exit == 0, done.output
    assert done.output.startswith(b"committed ") and b"repository: 4 files\n  a.txt\n" in done.output
    assert git(run.bare, "log", "-1", "--format=%an %ae %cn %at %ct %P") == (
        f"Alice B alice@example.org Alice B 1700000000 1700000000 {first}"
    )
    assert git(run.bare, "log", "-1", "--format=%B") == "Say two\n\nand why"
    assert "100755" in git(run.bare, "ls-tree", "HEAD", "run.sh")
    assert "120000" in git(run.bare, "ls-tree", "HEAD", "link")
    git(run.bare, "fsck", "--strict")
    assert git(repo, "rev-parse", "HEAD") == first, "the user's repository is as it was"
    assert git(repo, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_the_next_commit_stands_on_the_one_before(do: Do, repo: Path, run: RunOf) -> None:
    (repo / "new").write_text("1\n")
    assert commit(do).exit == 0
    first = run.head()
    (repo / "new").unlink()
    (repo / "b").write_text("2\n")
    assert commit(do, "third").exit == 0
    assert git(run.bare, "log", "-1", "--format=%P", run.head()) == first
    assert names(run) == ["a.txt", "b"]
    assert refused(commit(do)) == "git_commit.nothing"


def test_a_commit_that_was_not_recorded_is_made_again(do: Do, repo: Path, run: RunOf) -> None:
    """The process died between the commit and its record: the records say which one was the last."""
    (repo / "b.txt").write_text("b\n")
    one = commit(do)
    made, run.last, run.calls = run.head(), "", 0
    assert commit(do).output == one.output and run.head() == made


def test_the_head_that_the_run_began_with_is_the_parent(do: Do, repo: Path, run: RunOf) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "commit", "-q", "--allow-empty", "-m", "the user goes on")
    (repo / "b.txt").write_text("b\n")
    assert commit(do).exit == 0
    assert git(run.bare, "log", "-1", "--format=%P") == first


def test_deleted_and_ignored_files(do: Do, repo: Path, tmp_path: Path, begun: list[RunOf]) -> None:
    (repo / ".git/info/exclude").write_text("private\n")
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "a.txt").unlink()
    (repo / ".gitignore").write_text("*.log\nout/\n")
    (repo / "out").mkdir()
    for name in ("x.log", "private", "out/[a]*", "out/:x"):
        (repo / name).write_text(name)
    assert commit(do).exit == 0
    assert names(begun[0]) == [".gitignore"]


def test_what_was_not_there_when_the_run_began_stays(do: Do, repo: Path, run: RunOf, tmp_path: Path) -> None:
    """A sparse checkout, or a part of a big repository: what was not brought was not deleted."""
    (repo / "b.txt").write_text("b\n")
    git(repo, "add", "b.txt")
    git(repo, "commit", "-q", "-m", "b")
    (repo / "b.txt").unlink()
    part = RunOf(repo, tmp_path / "other")
    (repo / "c.txt").write_text("c\n")
    commits = part.commits()
    assert commits.head == git(repo, "rev-parse", "HEAD")
    done = GitCommit().run(
        Call("x", "git_commit", {"message": "m"}, repo, None, repository=commits)
    )  # fmt: skip
    assert done.exit == 0 and names(part) == ["a.txt", "b.txt", "c.txt"]


def test_only_the_paths_that_are_named(do: Do, repo: Path, run: RunOf) -> None:
    (repo / "in").mkdir()
    for name in ("in/x", "*"):
        (repo / name).write_text(name)
    assert commit(do, paths=["in", "/ws/in/x", "*"]).exit == 0
    assert names(run) == ["*", "a.txt", "in/x"]
    assert refused(commit(do, paths=["nowhere"])) == "git_commit.nothing"
    for path in ("../x", "/etc/passwd", "a\0b"):
        assert refused(commit(do, paths=[path])).startswith("path.")


def untracked(repo: Path) -> None:
    (repo / "b").write_text("b")


def changed(repo: Path) -> None:
    (repo / "a.txt").write_text("two\n")


def removed(repo: Path) -> None:
    (repo / "a.txt").unlink()


@pytest.mark.parametrize("left", [untracked, changed, removed], ids=lambda f: f.__name__)
def test_a_change_that_the_paths_leave_out_is_refused(
    do: Do, repo: Path, run: RunOf, left: Callable[[Path], None]
) -> None:
    """The files that were checked are committed whole; any other combination was never checked."""
    (repo / "x").write_text("x")
    left(repo)
    assert refused(commit(do, paths=["x"])) == "git_commit.partial"
    assert commit(do).exit == 0


def none(repo: Path) -> None:
    """No repository at all."""


def unborn(repo: Path) -> None:
    git(repo, "init", "-q", "-b", "topic/one")


@pytest.mark.parametrize("begin", [none, unborn], ids=lambda f: f.__name__)
def test_the_first_commit_where_there_is_none(
    do: Do, workspace: Path, tmp_path: Path, begun: list[RunOf], begin: Callable[[Path], None]
) -> None:
    begin(workspace)
    (workspace / "a").write_text("1")
    begun.append(RunOf(workspace, tmp_path / "store"))
    assert commit(do).exit == 0
    (workspace / "a").write_text("2")
    assert commit(do).exit == 0
    assert git(begun[0].bare, "rev-list", "--count", "refs/heads/spak") == "2"


def a_worktree(repo: Path) -> Path:
    git(repo, "worktree", "add", "-q", "--detach", str(repo.parent / "tree"))
    return repo.parent / "tree"


def packed(repo: Path) -> Path:
    git(repo, "pack-refs", "--all")
    git(repo, "gc", "-q")
    return repo


def detached(repo: Path) -> Path:
    git(repo, "checkout", "-q", "--detach")
    return repo


@pytest.mark.parametrize("kind", [a_worktree, packed, detached], ids=lambda f: f.__name__)
def test_repositories_of_every_shape(repo: Path, tmp_path: Path, kind: Callable[[Path], Path]) -> None:
    place = kind(repo)
    run = RunOf(place, tmp_path / "store")
    (place / "b").write_text("b")
    done = GitCommit().run(
        Call("x", "git_commit", {"message": "m"}, place, None, repository=run.commits())
    )  # fmt: skip
    assert done.exit == 0, done.output
    assert git(run.bare, "log", "-1", "--format=%P") == git(repo, "rev-parse", "HEAD")


def other_format(repo: Path) -> None:
    shutil.rmtree(repo / ".git")
    git(repo, "init", "-q", "--object-format=sha256")


def damaged(repo: Path) -> None:
    (repo / ".git/config").write_text("[core\n")


@pytest.mark.parametrize("spoil", [other_format, damaged], ids=lambda f: f.__name__)
def test_repositories_that_cannot_be_used(
    do: Do, repo: Path, tmp_path: Path, begun: list[RunOf], spoil: Callable[[Path], None]
) -> None:
    """The run begins, and only a commit is refused."""
    spoil(repo)
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "a.txt").write_text("two\n")
    assert refused(commit(do)) == "git_commit.repository"


def test_nothing_to_commit_changes_nothing(do: Do, run: RunOf) -> None:
    assert refused(commit(do)) == "git_commit.nothing"
    assert git(run.bare, "for-each-ref", "--format=%(refname)") == "refs/spak/base"


@pytest.mark.parametrize("author", ["nobody", "<a@b>", "A <a b>", "A <a@b> x", "A\n <a@b>", "A <>"])
def test_an_author_that_is_none(do: Do, run: RunOf, author: str) -> None:
    assert refused(commit(do, author=author)) == "git_commit.author"


@pytest.mark.parametrize("message", ["\n", "  ", "a\0b", "half \ud800"])
def test_a_message_that_is_none(do: Do, run: RunOf, message: str) -> None:
    assert refused(commit(do, message)) == "git_commit.message"


def test_a_run_that_keeps_no_commits_and_one_whose_commits_are_elsewhere(do: Do, repo: Path) -> None:
    assert refused(commit(do)) == "git_commit.repository"


def test_an_earlier_commit_that_is_on_another_machine(do: Do, repo: Path, run: RunOf) -> None:
    run.last = "gone"
    assert refused(commit(do)) == "git_commit.away"


# ---- secrets, links ------------------------------------------------------------------------------------

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".env", "A=b\n"),
        ("conf/prod.yml", "db_password: hunter22x9\n"),
        ("docs/notes.txt", f"use {TOKEN}\n"),
        ("docs/run.md", "DB_PASSWORD=hunter22x9\n"),
    ],
)
def test_a_file_of_secrets_is_refused_by_name(do: Do, repo: Path, run: RunOf, path: str, text: str) -> None:
    (repo / path).parent.mkdir(exist_ok=True)
    (repo / path).write_text(text)
    (repo / "a.txt").write_text("two\n")
    done = commit(do)
    assert refused(done) == "git_commit.secret" and path.encode() in done.output
    assert b"hunter22" not in done.output and TOKEN.encode() not in done.output
    (repo / ".gitignore").write_text(f"/{path}\n")
    assert commit(do).exit == 0 and path not in names(run)


def test_a_secret_that_the_base_has_is_no_news(
    do: Do, repo: Path, begun: list[RunOf], tmp_path: Path
) -> None:
    text = 'SECRET_KEY = "hunter22x9-7k"\n'
    (repo / "settings.py").write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "x")
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "settings.py").write_text(f"{text}DEBUG = False\n")
    assert commit(do).exit == 0


def test_a_secret_that_lay_uncommitted_when_the_run_began_is_refused(
    do: Do, repo: Path, tmp_path: Path, begun: list[RunOf]
) -> None:
    for name in (".env", "notes.txt"):
        (repo / name).write_text(f"PASSWORD={TOKEN}\n")
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "a.txt").write_text("two\n")
    done = commit(do)
    assert refused(done) == "git_commit.secret" and b"'.env', 'notes.txt'" in done.output


def test_a_message_that_holds_a_secret(do: Do, repo: Path, run: RunOf, monkeypatch: Any) -> None:
    (repo / "a.txt").write_text("two\n")
    monkeypatch.setattr(
        "commits_kit.is_secret", lambda path, data, old=None: not path and b"hunter22" in data
    )
    assert refused(commit(do, "it is hunter22")) == "git_commit.secret"


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "in/../../x", ".git/config", ".GIT/config"])
def test_a_link_that_leads_out_is_refused(do: Do, repo: Path, run: RunOf, target: str) -> None:
    (repo / "link").symlink_to(target)
    assert refused(commit(do)) == "git_commit.link"


# ---- what git of the user would do otherwise -----------------------------------------------------------


def test_line_ends_of_windows(do: Do, repo: Path, tmp_path: Path, begun: list[RunOf]) -> None:
    """A folder in which git ends lines otherwise than it stores them: only what the run changed changes, and
    it is stored as before."""
    (repo / "b.txt").write_text("b\n")
    git(repo, "add", "b.txt")
    git(repo, "commit", "-q", "-m", "b")
    for name in ("a.txt", "b.txt"):
        data = (repo / name).read_bytes().replace(b"\n", b"\r\n")
        (repo / name).write_bytes(data)
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (repo / "c.txt").write_bytes(b"new\r\n")
    done = commit(do)
    assert done.exit == 0 and done.output.endswith(b"2 files\n  a.txt\n  c.txt\n")
    shown = git(begun[0].bare, "cat-file", "-p", "refs/heads/spak:a.txt")
    assert shown == "one\ntwo" and git(begun[0].bare, "cat-file", "-s", "refs/heads/spak:c.txt") == "5"


def test_modes_that_the_user_does_not_compare(do: Do, repo: Path, tmp_path: Path, begun: list[RunOf]) -> None:
    git(repo, "config", "core.fileMode", "false")
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "a.txt").chmod(0o755)
    assert refused(commit(do)) == "git_commit.nothing"
    for name in ("a.txt", "new.txt"):
        (repo / name).write_text("changed\n")
        (repo / name).chmod(0o755)
    assert commit(do).exit == 0
    listed = git(begun[0].bare, "ls-tree", "refs/heads/spak", "a.txt", "new.txt").splitlines()
    assert [line.split()[0] for line in listed] == ["100644", "100644"]


def test_a_file_that_a_filter_made_stays_as_it_is_stored(
    do: Do, repo: Path, tmp_path: Path, begun: list[RunOf]
) -> None:
    (repo / "x.bin").write_text("a pointer\n")
    git(repo, "add", "x.bin")
    (repo / ".gitattributes").write_text("*.bin filter=lfs\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "-q", "-m", "a pointer")
    (repo / "x.bin").write_text("the content\n")
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "a.txt").write_text("two\n")
    assert commit(do).exit == 0
    assert git(begun[0].bare, "show", "refs/heads/spak:x.bin") == "a pointer"
    (repo / "x.bin").write_text("other content\n")
    assert refused(commit(do)) == "git_commit.filter"


@pytest.mark.parametrize("text", ["*.bin filter=lfs\n", "*.bin working-tree-encoding=UTF-16LE\n"])
def test_a_new_file_that_wants_a_filter_is_refused(do: Do, repo: Path, run: RunOf, text: str) -> None:
    (repo / ".gitattributes").write_text(text)
    (repo / "x.bin").write_text("x")
    assert refused(commit(do)) == "git_commit.filter"
    (repo / ".gitignore").write_text("x.bin\n")
    assert commit(do).exit == 0


def test_repositories_within_are_refused_and_not_entered(
    do: Do, repo: Path, tmp_path: Path, begun: list[RunOf]
) -> None:
    (repo / "sub").mkdir()
    git(repo / "sub", "init", "-q")
    (repo / "sub/x").write_text("x")
    git(repo / "sub", "add", "x")
    git(repo / "sub", "commit", "-q", "-m", "x")
    hostile(repo / "sub", tmp_path)
    begun.append(RunOf(repo, tmp_path / "store"))
    assert refused(commit(do)) == "git_commit.nested"
    (repo / ".gitignore").write_text("sub\n")
    assert commit(do).exit == 0
    assert not (tmp_path / "ran").exists()


def test_a_submodule_stays_as_it_is(do: Do, repo: Path, tmp_path: Path, begun: list[RunOf]) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{first},sub")
    git(repo, "commit", "-q", "-m", "submodule")
    (repo / "sub").mkdir()
    (repo / "sub/x").write_text("x")
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "a.txt").write_text("two\n")
    assert commit(do).exit == 0
    assert git(begun[0].bare, "rev-parse", "refs/heads/spak:sub") == first
    (repo / "sub/x").write_text("y")
    assert refused(commit(do)) == "git_commit.nested"


def test_names_of_branches() -> None:
    for name in ("main", "a/b", "feature/x-1", "a.b", "ü", "a{b", "@x"):
        assert BRANCH.match(f"refs/heads/{name}"), name
    for name in (
        "",
        ".a",
        "a/.b",
        "a..b",
        "a//b",
        "a/",
        "a.",
        "a.lock",
        "a.lock/b",
        "a~",
        "a^",
        "a:",
        "a\\b",
    ):
        assert not BRANCH.match(f"refs/heads/{name}"), name
