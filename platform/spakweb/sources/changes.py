"""What a run changed, in git's own words: a patch that `git apply` takes, or a commit.

Takes a run and two roots of its workspace; hands the changes to `spak.repository.stream`. Only plain files go
out: a file of secrets by its name, a link, and what belongs to a repository (`.git`) is refused, and names
what it is. Nothing is checked out, and nothing of the files is executed.
"""

from __future__ import annotations

import time
from datetime import datetime

from django.conf import settings

from spak.commandline import places
from spak.errors import RunError
from spak.files.scratch import Scratch
from spak.repository import stream
from spak.repository.git import Git
from spak.repository.stream import Change, File, Person
from spak.workspace.git_files import git_files
from spak.workspace.store import Store
from spak.workspace.tree import load
from spakweb.ledger.workspaces import store_of
from spakweb.runs.models import Run
from spakweb.text import one_line

BEFORE, AFTER = "refs/spak/before", "refs/spak/after"
PATCH_S = 30
"""Seconds that making a patch may take."""
AUTHOR = "SPAK"


def of(store: Store, before: str, now: str) -> list[Change]:
    """What differs between two roots, in order of the paths.

    Raises: RunError `git.change_secret`, `git.change_kind`, `workspace.object`.
    """
    found = stream.changes(*(git_files(load(store, root)) for root in (before, now)))
    for one in found:
        _require_plain(one.path, one.before, one.after)
    return found


def patch(run: Run, before: str, now: str) -> bytes:
    """A patch of everything that the run changed, with the contents of files that are no text.

    Raises: RunError `git.*`, `workspace.object`.
    """
    if before == now:
        return b""
    store = store_of(run)
    found = of(store, before, now)
    with Scratch("patch") as folder:
        git = Git(folder / "git", time.monotonic() + PATCH_S, settings.RUN_FILES_BYTES)
        git.begin()
        begun = [Change(one.path, None, one.before) for one in found if one.before is not None]
        person = author(_at(run))
        parent = stream.commit(git, BEFORE, "", begun, store.read, person, "before")
        stream.commit(git, AFTER, parent, found, store.read, person, "after")
        options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "-p")
        return git.local("diff-tree", *options, BEFORE, AFTER)


def commit(git: Git, run: Run, parent: str, found: list[Change], title: str, body: str) -> str:
    """A commit of these changes upon a parent that git has; the same each time. Gives its id."""
    read = store_of(run).read
    return stream.commit(git, AFTER, parent, found, read, author(_at(run)), f"{title}\n\n{body}")


def author(at: datetime) -> Person:
    """The platform, as who makes a commit at that time."""
    address = "".join(sign for sign in settings.DEFAULT_FROM_EMAIL if sign.isalnum() or sign in "@.-_+")
    return Person(AUTHOR, address, int(at.timestamp()))


def title_of(text: str, run: Run) -> str:
    """The first line of a commit's message."""
    return one_line(text, 100) or f"{one_line(run.name, 60)}: run {run.key}"


def _at(run: Run) -> datetime:
    return run.ended_at or run.made_at


def _require_plain(path: str, *files: File | None) -> None:
    shown = ascii(path[:80])
    if places.secret(path):
        hint = "take it out of the run's files, or carry the change over by hand"
        raise RunError("git.change_secret", f"the run changed {shown}, by its name a file of secrets", hint)
    of_git = any(part.lower().rstrip(" .") == ".git" for part in path.split("/"))
    if of_git or any(file is not None and file.mode == stream.LINK for file in files):
        what = "something of a repository" if of_git else "a link or something else that is not a file"
        raise RunError("git.change_kind", f"the run changed {shown}, {what}", "carry it over by hand")
