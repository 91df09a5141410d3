"""Which calls of tools open the repository of a workspace, its `.git`, for writing.

Takes the name and arguments of a permitted call; gives an Opening, or None where `.git` stays closed: mounted
read-only and compared afterwards (spak.tools.git.repository). Open are `git_commit` and command lines on
which nothing but git writes: whatever else runs there could write `.git` by itself. It permits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spak import shell
from spak.commandline.commands import read_line
from spak.errors import UserError
from spak.policy.actions import Seen, World

DOORS = frozenset(
    f"git {verb}"
    for verb in ("commit", "merge", "rebase", "cherry-pick", "revert", "am", "pull", "stash", "notes")
)
"""What can make a commit: the rows of `commit_door` in specs/policy/guards.mg."""

_ALONE = frozenset({"computes", "reads", "commits"})
"""Deeds of commands that git may share a line with."""

_BLIND = World(lambda path: Seen("inside", path), lambda pattern: (), None)


@dataclass(frozen=True, slots=True)
class Opening:
    """What a call may do to `.git`."""

    tool: bool = False
    """It is `git_commit`, which sees to all of it by itself."""
    commits: bool = False
    """It may make a commit of the files as they are."""
    configures: bool = False
    """It may change `.git/config`: who commits."""


def opening(tool: str, args: Mapping[str, Any]) -> Opening | None:
    """What the call may do to `.git`, or None. It never raises."""
    if tool == "git_commit":
        return Opening(tool=True)
    words = args.get("cmd")
    if tool != "run" or not isinstance(words, (list, tuple)):
        return None
    try:
        reading = read_line(shell.join([str(word) for word in words]), _BLIND)
    except (UserError, RecursionError):
        return None
    kinds = {deed.kind for deed in reading.deeds}
    # Where `.git` is open no file is masked, so that no other program of the line may read one.
    strangers = {deed.kind for deed in reading.deeds if not deed.about.startswith("git ")} - {"computes"}
    if reading.trouble is not None or "commits" not in kinds or not kinds <= _ALONE or strangers:
        return None
    abouts = {deed.about for deed in reading.deeds if deed.kind == "commits"}
    return Opening(commits=bool(abouts & DOORS), configures="git config" in abouts)
