"""What a run changed, in git's own words: a patch that `git apply` takes, or a commit.

Takes a run and what the door lets out of it (`spak.door`); hands the changes to `spak.repository.stream`.
Nothing is checked out, and nothing of the files is executed.
"""

from __future__ import annotations

import time
from datetime import datetime

from django.conf import settings

from spak.door import Leaving, Node
from spak.files.scratch import Scratch
from spak.repository import stream
from spak.repository.git import Git
from spak.repository.stream import Change, File, Person
from spak.workspace.git_files import git_file
from spakweb.ground.text import one_line
from spakweb.store.ledger.workspaces import store_of
from spakweb.store.runs.models import Run

BEFORE, AFTER = "refs/spak/before", "refs/spak/after"
PATCH_S = 30
"""Seconds that making a patch may take."""
AUTHOR = "SPAK"
_NO_NAME = str.maketrans("", "", "<>")
"""Signs that end a name in a commit."""


def of(leaving: Leaving) -> list[Change]:
    """What goes out, in order of the paths."""
    return [Change(one.path, _file(one.before), _file(one.after)) for one in leaving.leaves]


def patch(run: Run, leaving: Leaving) -> bytes:
    """A patch of what goes out, with the contents of files that are no text; what of it would run by itself
    is said first, in lines that `git apply` skips.

    Raises: RunError `git.*`, `workspace.object`.
    """
    found = of(leaving)
    if not found:
        return b""
    read = store_of(run).read
    with Scratch("patch") as folder:
        git = Git(folder / "git", time.monotonic() + PATCH_S, settings.RUN_FILES_BYTES)
        git.begin()
        begun = [Change(one.path, None, one.before) for one in found if one.before is not None]
        person = author(_at(run))
        parent = stream.commit(git, BEFORE, "", begun, read, person, "before")
        stream.commit(git, AFTER, parent, found, read, person, "after")
        options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "-p")
        return f"{leaving.text()}\n\n".encode() + git.local("diff-tree", *options, BEFORE, AFTER)


def commit(git: Git, run: Run, parent: str, found: list[Change], title: str, body: str) -> str:
    """A commit of these changes upon a parent that git has; the same each time. Gives its id."""
    read = store_of(run).read
    return stream.commit(git, AFTER, parent, found, read, author(_at(run)), f"{title}\n\n{body}")


def author(at: datetime, name: str = AUTHOR) -> Person:
    """Who makes a commit at that time, with the platform's address: git shows addresses to strangers."""
    address = "".join(sign for sign in settings.DEFAULT_FROM_EMAIL if sign.isalnum() or sign in "@.-_+")
    return Person(one_line(name.translate(_NO_NAME), 80) or AUTHOR, address, int(at.timestamp()))


def title_of(text: str, run: Run) -> str:
    """The first line of a commit's message."""
    return one_line(text, 100) or f"{one_line(run.name, 60)}: run {run.key}"


def _at(run: Run) -> datetime:
    return run.ended_at or run.made_at


def _file(node: Node | None) -> File | None:
    return git_file(node) if node is not None else None
