"""A user's repository with a run in it, as far as its commits go."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from git_http_kit import git
from spak.door import secret_in
from spak.ports import ToolResult
from spak.repository.begun import follow
from spak.repository.commits import Commits, Files
from spak.secrets import which
from spak.workspace import Workspace

Do = Callable[..., ToolResult]
"""A call of a tool by its name, as tests/tools/conftest.py has it."""


def is_secret(path: str, data: bytes, old: bytes | None = None) -> bool:
    """What the names and the contents say, with no value that is known."""
    if old is not None:
        return which.secret(path) or bool(secret_in(path, data, old, lambda _: False))
    return which.secret(path) or (which.may_hold_at(path) and bool(which.finds(path, data)))


class RunOf:
    """A run that began in `place` when this was made; its files are those that lie there."""

    def __init__(self, place: Path, store: Path) -> None:
        self.space = Workspace(place, store)
        self.begun, self.last, self.calls = self.space.snapshot(), "", 0
        follow(self.space.git.repository, place)

    @property
    def bare(self) -> Path:
        """Where its commits are."""
        return self.space.git.repository

    def commits(self) -> Commits:
        """Its commits, as the runner gives them to a call."""
        return Commits(self.space.git.repository, self.last, self._files, is_secret)

    def head(self) -> str:
        """Its last commit."""
        return git(self.bare, "rev-parse", "refs/heads/spak")

    def _files(self) -> Files:
        now, begun = self.space.git.files(self.space.snapshot()), self.space.git.files(self.begun)
        return Files(self.space.directory, now, begun, self.space.git.read)


def commit(do: Do, message: str = "second", **args: Any) -> ToolResult:
    """A call of `git_commit` at a time of its own."""
    return do("git_commit", message=message, **{"time": 1700000000, **args})


def refused(result: ToolResult) -> str:
    """The code of a call that was refused."""
    assert (result.status, result.exit) == ("exited", 1), result.output
    return str(result.diagnostics[0]["code"])


def names(run: RunOf) -> list[str]:
    """The files of its last commit."""
    return git(run.bare, "ls-tree", "-r", "--name-only", "refs/heads/spak").splitlines()


def hostile(repo: Path, tmp_path: Path) -> None:
    """Everything of a repository that makes git run a program, or read one's own configuration."""
    evil = repo / ".git/evil.sh"
    evil.write_text(f'#!/bin/sh\necho "$0" >> {tmp_path}/ran\ncat\n')
    evil.chmod(0o755)
    (repo / ".git/hooks").mkdir(exist_ok=True)
    for hook in (
        "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change", "pre-auto-gc",
        "reference-transaction", "fsmonitor-watchman", "post-rewrite", "update", "applypatch-msg",
    ):  # fmt: skip
        shutil.copy(evil, repo / ".git/hooks" / hook)
    (repo / ".git/config").write_text(
        f"""[core]
	repositoryformatversion = 0
	bare = false
	fsmonitor = {evil}
	hooksPath = {repo}/.git/hooks
	editor = {evil}
	pager = {evil}
	sshCommand = {evil}
	askPass = {evil}
	gitProxy = {evil}
	alternateRefsCommand = {evil}
	attributesFile = {repo}/.git/attributes
	worktree = /tmp
[commit]
	gpgSign = true
[gpg]
	program = {evil}
[user]
	name = Mallory
	signingKey = evil
[filter "lfs"]
	clean = {evil}
	smudge = {evil}
	process = {evil}
	required = true
[diff]
	external = {evil}
[diff "evil"]
	textconv = {evil}
	command = {evil}
[merge "evil"]
	driver = {evil}
[alias]
	rev-parse = !{evil}
	config = !{evil}
[gc]
	auto = 1
	recentObjectsHook = {evil}
[include]
	path = {repo}/.git/more
[extensions]
	worktreeConfig = true
"""
    )
    (repo / ".git/more").write_text(f"[core]\n\tfsmonitor = {evil}\n")
    (repo / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {evil}\n")
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text("* filter=lfs diff=evil merge=evil\n")
    (repo / ".git/attributes").write_text("* filter=lfs\n")
    (repo / ".gitattributes").write_text("* diff=evil merge=evil text\n")
