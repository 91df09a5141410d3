"""What a run changed, in git's own words: a patch that `git apply` takes, or a commit.

Takes a run and two roots of its workspace; writes a stream for `git fast-import`. Only plain files go out: a
file of secrets by its name, a link, and what belongs to a repository (`.git`) is refused, and names what it
is. Nothing is checked out, and nothing of the files is executed.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from typing import IO

from django.conf import settings

from spak.commandline import places
from spak.errors import RunError
from spak.files.scratch import Scratch
from spak.workspace.store import Store
from spak.workspace.tree import Node, load
from spak.workspace.unpack import items_of
from spakweb.ledger.workspaces import store_of
from spakweb.runs.models import Run
from spakweb.sources.addresses import Address
from spakweb.sources.git import Git, Remote
from spakweb.text import one_line

BEFORE, AFTER = "refs/spak/before", "refs/spak/after"
PATCH_S = 30
"""Seconds that making a patch may take."""
NOWHERE = Remote(Address("none", "none:"))
AUTHOR = "SPAK"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ./_-+=@,~")


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None where there is none."""

    path: str
    before: Node | None
    after: Node | None


def of(store: Store, before: str, now: str) -> list[Change]:
    """What differs between two roots, in order of the paths.

    Raises: RunError `git.change_secret`, `git.change_kind`, `workspace.object`.
    """
    old, new = (dict(items_of(load(store, root))) for root in (before, now))
    found = []
    for path in sorted({*old, *new}, key=os.fsencode):
        one, other = old.get(path), new.get(path)
        if one is not None and other is not None and _same(one, other):
            continue
        _require_plain(path, one, other)
        found.append(Change(path, one, other))
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
        git = Git(folder / "git", NOWHERE, time.monotonic() + PATCH_S, settings.RUN_FILES_BYTES)
        git.begin()
        with tempfile.TemporaryFile(dir=folder) as stream:
            begun = [Change(one.path, None, one.before) for one in found if one.before is not None]
            _write(stream, store, BEFORE, "", begun, run, "before")
            _write(stream, store, AFTER, BEFORE, found, run, "after")
            git.local("fast-import", "--quiet", "--done", given=ended(stream))
        options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "-p")
        return git.local("diff-tree", *options, BEFORE, AFTER)


def commit(git: Git, run: Run, parent: str, found: list[Change], title: str, body: str) -> str:
    """A commit of these changes upon a parent that git has; the same each time. Gives its id."""
    with tempfile.TemporaryFile(dir=git.folder) as stream:
        _write(stream, store_of(run), AFTER, parent, found, run, f"{title}\n\n{body}")
        git.local("fast-import", "--quiet", "--done", given=ended(stream))
    return git.local("rev-parse", "--verify", AFTER).decode().strip()


def _same(one: Node, other: Node) -> bool:
    return (one.kind, one.digest, _mode(one)) == (other.kind, other.digest, _mode(other))


def _mode(node: Node) -> str:
    return "100755" if node.mode & 0o100 else "100644"


def _require_plain(path: str, *nodes: Node | None) -> None:
    shown = ascii(path[:80])
    if places.secret(path):
        hint = "take it out of the run's files, or carry the change over by hand"
        raise RunError("git.change_secret", f"the run changed {shown}, by its name a file of secrets", hint)
    of_git = any(part.lower().rstrip(" .") == ".git" for part in path.split("/"))
    if of_git or any(node is not None and node.kind != "f" for node in nodes):
        what = "something of a repository" if of_git else "a link or something else that is not a file"
        raise RunError("git.change_kind", f"the run changed {shown}, {what}", "carry it over by hand")


def _write(
    stream: IO[bytes], store: Store, ref: str, parent: str, found: list[Change], run: Run, message: str
) -> None:
    """One commit in the language of git-fast-import(1)."""
    begin(stream, ref, parent, run.ended_at or run.made_at, message)
    for one in found:  # a folder may stand where a file was
        if one.after is None:
            stream.write(b"D %s\n" % quoted(one.path))
    for one in found:
        if one.after is None:
            continue
        data = store.read(one.after.digest)
        stream.write(b"M %s inline %s\ndata %d\n" % (_mode(one.after).encode(), quoted(one.path), len(data)))
        stream.write(data)
        stream.write(b"\n")
    stream.write(b"\n")


def begin(stream: IO[bytes], ref: str, parent: str, at: datetime, message: str) -> None:
    """The head of a commit: the same for the same time and message."""
    address = "".join(sign for sign in settings.DEFAULT_FROM_EMAIL if sign.isalnum() or sign in "@.-_+")
    text = message.encode()
    stream.write(f"commit {ref}\ncommitter {AUTHOR} <{address}> {int(at.timestamp())} +0000\n".encode())
    stream.write(b"data %d\n%s\n" % (len(text), text))
    if parent:
        stream.write(f"from {parent}\n".encode())


def quoted(path: str) -> bytes:
    """A path as fast-import reads it, whatever bytes it has."""
    return b'"%s"' % b"".join(bytes([one]) if one in _PLAIN else b"\\%03o" % one for one in os.fsencode(path))


def ended(stream: IO[bytes]) -> IO[bytes]:
    """A stream of git-fast-import(1) that is written, to be read from its start."""
    stream.seek(0, os.SEEK_END)
    stream.write(b"done\n")
    stream.seek(0)
    return stream


def title_of(text: str, run: Run) -> str:
    """The first line of a commit's message."""
    return one_line(text, 100) or f"{one_line(run.name, 60)}: run {run.key}"
