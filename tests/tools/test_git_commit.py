"""`git_commit` with real git: what it commits and refuses, and that no repository makes it run anything."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spak.ports import Call, ToolResult
from spak.tools.git_commit import BRANCH, GitCommit

pytestmark = pytest.mark.sandbox

Do = Callable[..., ToolResult]
CLEAN = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=CLEAN, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repo(workspace: Path) -> Path:
    git(workspace, "init", "-q", "-b", "main")
    (workspace / "a.txt").write_text("one\n")
    git(workspace, "add", "a.txt")
    git(workspace, "commit", "-q", "-m", "first")
    return workspace


def commit(do: Do, message: str = "second", **args: Any) -> ToolResult:
    return do("git_commit", message=message, **{"time": 1700000000, **args})


def refused(result: ToolResult) -> str:
    assert (result.status, result.exit) == ("exited", 1), result.output
    return str(result.diagnostics[0]["code"])


def test_what_changed_is_committed_and_git_agrees(do: Do, repo: Path) -> None:
    (repo / "a.txt").write_text("two\n")
    (repo / "dir").mkdir()
    (repo / "dir/new name.txt").write_text("new\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "link").symlink_to("a.txt")
    first = git(repo, "rev-parse", "HEAD")
    done = commit(do, "Say two\n\nand why\n\n", author="Alice B <alice@example.org>")
    assert done.status == "exited" and done.exit == 0, done.output
    assert done.output.startswith(b"committed ") and b"on main: 4 files\n  a.txt\n" in done.output
    assert git(repo, "log", "-1", "--format=%an %ae %cn %at %ct %P") == (
        f"Alice B alice@example.org Alice B 1700000000 1700000000 {first}"
    )
    assert git(repo, "log", "-1", "--format=%B") == "Say two\n\nand why"
    assert git(repo, "status", "--porcelain") == ""
    assert "100755" in git(repo, "ls-tree", "HEAD", "run.sh")
    assert "120000" in git(repo, "ls-tree", "HEAD", "link")
    assert git(repo, "symbolic-ref", "HEAD") == "refs/heads/main"
    git(repo, "fsck", "--strict")
    assert not (repo / ".git/spak-index").exists()


def test_the_same_change_gives_the_same_commit(do: Do, repo: Path, tmp_path: Path) -> None:
    (repo / "b.txt").write_text("b\n")
    kept = tmp_path / "kept"
    shutil.copytree(repo, kept, symlinks=True)
    one = commit(do)
    made = git(repo, "rev-parse", "HEAD")
    shutil.rmtree(repo)
    shutil.copytree(kept, repo, symlinks=True)
    two = commit(do)
    assert git(repo, "rev-parse", "HEAD") == made and one.key == two.key and one.output == two.output


def test_deleted_and_ignored_files(do: Do, repo: Path) -> None:
    (repo / "a.txt").unlink()
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "x.log").write_text("log\n")
    (repo / "private").write_text("mine\n")
    (repo / ".git/info/exclude").write_text("private\n")
    assert commit(do).exit == 0
    assert git(repo, "ls-tree", "--name-only", "HEAD") == ".gitignore"


def test_only_the_paths_that_are_named(do: Do, repo: Path) -> None:
    (repo / "in").mkdir()
    for name in ("in/x", "out", "*"):
        (repo / name).write_text(name)
    (repo / ".git/info/exclude").write_text("out\n")
    assert commit(do, paths=["in", "/ws/in/x", "*"]).exit == 0
    assert git(repo, "ls-tree", "-r", "--name-only", "HEAD") == "*\na.txt\nin/x"
    assert refused(commit(do, paths=["nowhere"])) == "git_commit.failed"
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
    do: Do, repo: Path, left: Callable[[Path], None]
) -> None:
    """The files that were checked are committed whole; any other combination was never checked."""
    (repo / "x").write_text("x")
    left(repo)
    assert refused(commit(do, paths=["x"])) == "git_commit.partial"
    assert git(repo, "rev-list", "--count", "main") == "1"
    assert commit(do).exit == 0


def test_the_first_commit_a_branch_in_a_folder_and_no_branch(do: Do, workspace: Path) -> None:
    git(workspace, "init", "-q", "-b", "topic/one")
    (workspace / "a").write_text("1")
    assert commit(do).exit == 0
    assert git(workspace, "rev-list", "--count", "HEAD") == "1"
    git(workspace, "pack-refs", "--all")
    assert not (workspace / ".git/refs/heads/topic/one").exists()
    (workspace / "a").write_text("2")
    assert commit(do).exit == 0
    assert git(workspace, "rev-list", "--count", "topic/one") == "2"
    git(workspace, "checkout", "-q", "--detach")
    (workspace / "a").write_text("3")
    assert commit(do).exit == 0
    assert git(workspace, "rev-list", "--count", "HEAD") == "3"
    assert git(workspace, "rev-list", "--count", "topic/one") == "2"


def test_nothing_to_commit_changes_nothing(do: Do, repo: Path) -> None:
    before = git(repo, "rev-parse", "HEAD")
    assert refused(commit(do)) == "git_commit.nothing"
    assert git(repo, "rev-parse", "HEAD") == before


@pytest.mark.parametrize("author", ["nobody", "<a@b>", "A <a b>", "A <a@b> x", "A\n <a@b>", "A <>"])
def test_an_author_that_is_none(do: Do, repo: Path, author: str) -> None:
    assert refused(commit(do, author=author)) == "git_commit.author"


@pytest.mark.parametrize("message", ["\n", "  ", "a\0b", "half \ud800"])
def test_a_message_that_is_none(do: Do, repo: Path, message: str) -> None:
    assert refused(commit(do, message)) == "git_commit.message"


def test_without_git_or_a_launcher(do: Do, repo: Path) -> None:
    (repo / "a.txt").write_text("two\n")
    assert do("git_commit", message="m", without="git").exit == 127
    from spak.ports import Toolchain

    chain = Toolchain(programs={"git": "/usr/bin/git", "python": "/usr/bin/python3"})
    assert GitCommit().run(Call("c", "git_commit", {"message": "m"}, repo, None, toolchain=chain)).status == (
        "launcher"
    )


# ---- hostile repositories ------------------------------------------------------------------------------

PROOF = "/ws/ran"
EVIL = f"""#!/bin/sh
echo "$0" >> {PROOF}
cat
"""


def hostile(repo: Path) -> None:
    """Everything of a repository that makes git run a program, or read one's own configuration."""
    evil = repo / ".git/evil.sh"
    evil.write_text(EVIL)
    evil.chmod(0o755)
    guest = "/ws/.git/evil.sh"
    for hook in (
        "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change", "pre-auto-gc",
        "reference-transaction", "fsmonitor-watchman", "post-rewrite", "update", "applypatch-msg",
    ):  # fmt: skip
        shutil.copy(evil, repo / ".git/hooks" / hook)
    (repo / ".git/config").write_text(
        f"""[core]
	repositoryformatversion = 0
	bare = false
	fsmonitor = {guest}
	hooksPath = /ws/.git/hooks
	editor = {guest}
	pager = {guest}
	sshCommand = {guest}
	askPass = {guest}
	gitProxy = {guest}
	alternateRefsCommand = {guest}
	attributesFile = /ws/.git/attributes
	worktree = /tmp
[commit]
	gpgSign = true
	template = /ws/.git/evil.sh
[gpg]
	program = {guest}
[user]
	name = Mallory
	signingKey = evil
[filter "lfs"]
	clean = {guest}
	smudge = {guest}
	process = {guest}
	required = true
[diff]
	external = {guest}
[diff "evil"]
	textconv = {guest}
	command = {guest}
[merge "evil"]
	driver = {guest}
[alias]
	add = !{guest}
	commit-tree = !{guest}
[credential]
	helper = !{guest}
[gc]
	auto = 1
	recentObjectsHook = {guest}
[include]
	path = /ws/.git/more
[trace2]
	eventTarget = {PROOF}
[extensions]
	worktreeConfig = true
"""
    )
    (repo / ".git/more").write_text(f"[core]\n\tfsmonitor = {guest}\n")
    (repo / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {guest}\n")
    (repo / ".git/info/attributes").write_text("* filter=lfs diff=evil merge=evil\n")
    (repo / ".git/attributes").write_text("* filter=lfs\n")
    (repo / ".gitattributes").write_text("* diff=evil merge=evil text\n[attr]lfs filter=lfs\n")


def test_a_hostile_repository_runs_nothing(do: Do, repo: Path) -> None:
    hostile(repo)
    (repo / "a.txt").write_text("two\n")
    done = commit(do)
    assert done.exit == 0, done.output
    assert not (repo / "ran").exists()
    (repo / ".git/config").write_text("[core]\n\trepositoryformatversion = 0\n")
    shutil.rmtree(repo / ".git/hooks")
    assert git(repo, "log", "-1", "--format=%an|%s|%G?") == "SPAK|second|N"
    assert git(repo, "show", "HEAD:a.txt") == "two"


def test_the_hostile_repository_is_hostile(do: Do, repo: Path) -> None:
    """Plain git in the same sandbox does run what `git_commit` does not: the test above tests something."""
    hostile(repo)
    (repo / "a.txt").write_text("two\n")
    do("run", cmd=["git", "-c", "safe.directory=*", "--work-tree=/ws", "add", "-A"], opened=True)
    assert (repo / "ran").exists()


def test_a_filter_is_refused_by_name(do: Do, repo: Path) -> None:
    hostile(repo)
    (repo / ".gitattributes").write_text("*.bin filter=lfs\n")
    (repo / "x.bin").write_text("x")
    before = (repo / ".git/refs/heads/main").read_text()
    assert refused(commit(do)) == "git_commit.filter"
    assert not (repo / "ran").exists()
    assert (repo / ".git/refs/heads/main").read_text() == before
    (repo / ".git/info/exclude").write_text("x.bin\nran\n")
    assert commit(do, paths=["a.txt", ".gitattributes"]).exit == 0


def nested(repo: Path) -> None:
    (repo / "sub").mkdir()
    git(repo / "sub", "init", "-q")
    (repo / "sub/x").write_text("x")
    git(repo / "sub", "add", "x")
    git(repo / "sub", "commit", "-q", "-m", "x")
    hostile(repo / "sub")


def test_repositories_within_are_refused_and_not_entered(do: Do, repo: Path) -> None:
    nested(repo)
    assert refused(commit(do)) == "git_commit.nested"
    (repo / ".gitignore").write_text("sub\n")
    assert commit(do).exit == 0
    (repo / ".gitignore").unlink()
    git(repo, "-c", "core.hooksPath=/dev/null", "add", "sub")
    git(repo, "commit", "-q", "-m", "submodule")
    (repo / "sub/x").write_text("y")
    assert refused(commit(do)) == "git_commit.nested"
    assert not (repo / "ran").exists()


def other_format(repo: Path) -> None:
    (repo / ".git/config").write_text(
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat=sha256\n"
    )


def a_file(repo: Path) -> None:
    (repo / ".git").rename(repo / "g")
    (repo / ".git").write_text("gitdir: g\n")


def a_link(repo: Path) -> None:
    (repo / ".git").rename(repo / "g")
    (repo / ".git").symlink_to("g")


def objects_elsewhere(repo: Path) -> None:
    (repo / ".git/objects").rename(repo / "objects")
    (repo / ".git/objects").symlink_to("../objects")


def outside(repo: Path) -> None:
    shutil.move(repo / ".git", repo.parent / "g")
    (repo / ".git").symlink_to(repo.parent / "g")


def borrowed(repo: Path) -> None:
    (repo / ".git/objects/info/alternates").write_text("/ws/elsewhere\n")


def none(repo: Path) -> None:
    shutil.rmtree(repo / ".git")


@pytest.mark.parametrize(
    "spoil",
    [other_format, a_file, a_link, objects_elsewhere, outside, borrowed, none],
    ids=lambda f: f.__name__,
)
def test_repositories_of_another_shape_are_refused(do: Do, repo: Path, spoil: Callable[[Path], None]) -> None:
    spoil(repo)
    (repo / "a.txt").write_text("two\n")
    assert refused(commit(do)) in ("git_commit.repository", "path.outside")


@pytest.mark.parametrize(
    "head",
    [
        "",
        "ref: refs/heads/",
        "ref: ../../outside",
        "ref: refs/heads/../../config",
        "ref: refs/heads/../hooks/pre-commit",
        "ref: refs/heads/a/../../x",
        "ref: refs/tags/x",
        "ref: refs/heads/.x",
        "ref: refs/heads/x.lock",
        "ref: refs/heads/a b",
        "ref: refs/heads/a\nmore",
        "ref:refs/heads/main",
        "0123",
        "f" * 41,
    ],
)
def test_a_head_that_names_no_branch(do: Do, repo: Path, head: str) -> None:
    (repo / ".git/HEAD").write_text(head)
    (repo / "a.txt").write_text("two\n")
    assert refused(commit(do)) == "git_commit.head"
    assert git_config_is_whole(repo)


def git_config_is_whole(repo: Path) -> bool:
    return "[core]" in (repo / ".git/config").read_text()


def test_branches_that_hold_no_commit(do: Do, repo: Path) -> None:
    branch = repo / ".git/refs/heads/main"
    (repo / "a.txt").write_text("two\n")
    branch.write_text("ref: refs/heads/other\n")
    assert refused(commit(do)) == "git_commit.head"
    branch.write_text("0" * 40 + "\n")
    assert refused(commit(do)) == "git_commit.failed"
    branch.unlink()
    branch.symlink_to("../../config")
    assert refused(commit(do)) == "git_commit.head"


def test_branches_and_an_index_behind_links_are_not_written_through(do: Do, repo: Path) -> None:
    (repo / "a.txt").write_text("two\n")
    (repo / "elsewhere").mkdir()
    (repo / ".git/refs/heads/topic").symlink_to("../../../elsewhere")
    (repo / ".git/HEAD").write_text("ref: refs/heads/topic/one\n")
    assert refused(commit(do)) == "git_commit.head"
    (repo / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (repo / ".git/index").rename(repo / "kept")
    (repo / ".git/index").symlink_to("../kept")
    assert refused(commit(do)) == "git_commit.head"
    assert list((repo / "elsewhere").iterdir()) == []
    assert git(repo, "rev-list", "--count", "main") == "1"


def test_a_graph_of_commits_that_lies_is_not_believed(do: Do, repo: Path) -> None:
    git(repo, "commit-graph", "write", "--reachable")
    graph = repo / ".git/objects/info/commit-graph"
    data = bytearray(graph.read_bytes())
    tree = bytes.fromhex(git(repo, "rev-parse", "HEAD^{tree}"))
    other = bytes.fromhex(git(repo, "hash-object", "-w", "-t", "tree", "/dev/null"))
    graph.chmod(0o644)
    graph.write_bytes(bytes(data.replace(tree, other)))
    (repo / "b.txt").write_text("b\n")
    assert commit(do).exit == 0
    graph.unlink()
    assert git(repo, "ls-tree", "--name-only", "HEAD") == "a.txt\nb.txt"


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


def test_an_index_that_lies_is_not_believed(do: Do, repo: Path) -> None:
    (repo / "a.txt").write_text("two\n")
    git(repo, "update-index", "--assume-unchanged", "a.txt")
    assert commit(do).exit == 0
    assert git(repo, "show", "HEAD:a.txt") == "two"
    (repo / "a.txt").write_text("three\n")
    (repo / ".git/index").write_bytes(b"no index")
    assert commit(do).exit == 0
    assert git(repo, "show", "HEAD:a.txt") == "three"
