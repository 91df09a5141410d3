"""A user's repository with a run in it, as far as its commits go."""

from __future__ import annotations

from pathlib import Path

from git_http_kit import git
from spak.door import secret_in
from spak.repository.commits import Commits, Files, follow
from spak.secrets import which
from spak.workspace import Workspace


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
