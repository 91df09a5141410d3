"""A run's commits as a branch of the repository that it began from; HEAD, index and files there stay.

Takes the run's bare repository and the top of the user's; gives the branch and what it holds. Nothing of the
user's settings is obeyed, no hook runs, and the files belong to the owner of the repository. It does not
decide whether the commits may leave: the caller asks the door's `leaving`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from spak.door import Leaving
from spak.errors import RunError
from spak.repository.begun import BASE, MOST_BYTES, SECONDS, TIP, git_folder
from spak.repository.git import Git
from spak.repository.leaving import Begun, Look, of_commits
from spak.repository.stream import blob_id


@dataclass(frozen=True, slots=True)
class Commits:
    """The last commit of a run, where it began (empty without history), and the paths that differ, each with
    git's hash of what the last commit has there, empty for none."""

    last: str
    base: str
    changed: dict[str, str]

    def lacks(self, path: str, data: bytes | None) -> bool:
        """Whether the last commit has something else there than this content, or none."""
        mine = self.changed.get(path, "")
        if data is None:
            return bool(mine)
        return mine not in (blob_id(data), blob_id(data.replace(b"\r\n", b"\n")))


def commits(bare: Path) -> Commits:
    """Raises: RunError `apply.no_commits`, `git.*`."""
    git = Git(bare, time.monotonic() + SECONDS, MOST_BYTES)
    found = {}
    for name in (TIP, BASE) if (bare / "HEAD").exists() else ():
        said = git.local("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}", accepted=(1,))
        found[name] = said.decode().strip()
    if not found.get(TIP):
        raise RunError(
            "apply.no_commits",
            "the run made no commit",
            "a step `git_commit` makes one; apply the files instead",
        )
    last, base = found[TIP], found[BASE]
    words = ("diff-tree", "-r", "-z", "--no-renames", "--root", "--no-commit-id", *filter(None, (base, last)))
    items = iter(git.local(*words).split(b"\0"))
    changed = {}
    for item in items:
        if item:
            _, mode, _, blob, _ = item[1:].decode().split()
            changed[os.fsdecode(next(items))] = blob if mode != "000000" else ""
    return Commits(last, base, changed)


def leaving(bare: Path, made: Commits, looked: Look, begun: Begun) -> Leaving:
    """What the commits let out, of a run that began with those files. Raises: RunError `git.*`,
    `workspace.object`."""
    git = Git(bare, time.monotonic() + SECONDS, MOST_BYTES)
    return of_commits(git, made.base, made.last, looked, begun)


def give(bare: Path, top: Path, name: str, made: Commits) -> None:
    """Make the branch `name`; one that is at the commit already is left.

    Raises: RunError `apply.branch`, `apply.branch_taken`, `apply.no_repository`, `git.*`.
    """
    place = git_folder(top / ".git")
    if place is None:
        raise RunError("apply.no_repository", f"{top} is no repository", "apply the files instead")
    info = place.stat()
    owner = (info.st_uid, info.st_gid) if os.geteuid() == 0 and info.st_uid else None
    users = Git(place, time.monotonic() + SECONDS, MOST_BYTES, owner=owner)
    ref = f"refs/heads/{name}"
    try:
        users.local("check-ref-format", "--branch", name)
    except RunError as error:
        if error.code != "git.failed":
            raise
        raise RunError("apply.branch", f"{name[:80]!a} is no name of a branch", "spak/fix-7") from error
    there = users.local("rev-parse", "--quiet", "--verify", ref, accepted=(1,)).decode().strip()
    if there == made.last:
        return
    if there:
        raise RunError(
            "apply.branch_taken", f"there is a branch {name} already", "name another: --branch NAME"
        )
    git = Git(bare, time.monotonic() + SECONDS, MOST_BYTES)
    tips = "".join(f"{tip}\n" for tip in (made.last, f"^{made.base}" if made.base else "") if tip).encode()
    data = git.local("pack-objects", "--revs", "--stdout", "-q", given=tips)
    users.local("index-pack", "--stdin", given=data)
    users.local("update-ref", ref, made.last, "0" * 40)
