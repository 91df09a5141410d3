"""Commits in the language of git-fast-import(1): git never sees a folder, only a stream of files.

Takes files (mode and content's digest) and a function that reads contents; writes the stream and hands it to
a Git. Nothing is checked out, and no attribute, filter or hook decides what is stored. It judges no file:
the caller has left out what must not be in a commit.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import IO

from spak.repository.git import Git

LINK, PLAIN, PROGRAM = "120000", "100644", "100755"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ./_-+=@,~")

Read = Callable[[str], bytes]
"""The content of a digest. Raises: RunError `workspace.object`."""


@dataclass(frozen=True, slots=True)
class File:
    """A file or a link: git's mode, and the digest of its content in the workspace's store."""

    mode: str
    digest: str


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None where there is none."""

    path: str
    before: File | None
    after: File | None


@dataclass(frozen=True, slots=True)
class Person:
    """Who made a commit, and when (Unix seconds, UTC)."""

    name: str
    mail: str
    at: int


def blob_id(data: bytes) -> str:
    """git's hash of a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def changes(before: Mapping[str, File], after: Mapping[str, File]) -> list[Change]:
    """What differs, in order of the paths."""
    paths = sorted(before.keys() | after.keys(), key=os.fsencode)
    rows = (Change(path, before.get(path), after.get(path)) for path in paths)
    return [row for row in rows if row.before != row.after]


def commit(
    git: Git, ref: str, parent: str, rows: Iterable[Change], read: Read, person: Person, message: str
) -> str:
    """A commit of these changes upon a parent that git has, the same each time; `ref` is moved to it. Gives
    its id. Raises: RunError `git.*`."""
    with tempfile.TemporaryFile(dir=git.folder) as stream:
        write(stream, ref, parent, rows, read, person, message)
        git.local("fast-import", "--depth=0", "--quiet", "--force", "--done", given=ended(stream))
    return git.local("rev-parse", "--verify", ref).decode().strip()


def write(
    stream: IO[bytes], ref: str, parent: str, rows: Iterable[Change], read: Read, person: Person, message: str
) -> None:
    """One commit."""
    begin(stream, ref, parent, person, message)
    later = []
    for row in rows:  # a folder may replace a file
        if row.after is None:
            stream.write(b"D %s\n" % quoted(row.path))
        else:
            later.append((row.path, row.after))
    for path, file in later:
        inline(stream, path, file.mode, read(file.digest))
    stream.write(b"\n")


def begin(stream: IO[bytes], ref: str, parent: str, person: Person, message: str) -> None:
    """The head of a commit."""
    text = message.encode("utf-8", "replace")
    stream.write(f"commit {ref}\ncommitter {person.name} <{person.mail}> {person.at} +0000\n".encode())
    stream.write(b"data %d\n%s\n" % (len(text), text))
    if parent:
        stream.write(f"from {parent}\n".encode())


def inline(stream: IO[bytes], path: str, mode: str, data: bytes) -> None:
    """A file of the commit that is being written."""
    stream.write(b"M %s inline %s\ndata %d\n" % (mode.encode(), quoted(path), len(data)))
    stream.write(data)
    stream.write(b"\n")


def quoted(path: str) -> bytes:
    """A path as fast-import reads it, whatever bytes it has."""
    return b'"%s"' % b"".join(bytes([one]) if one in _PLAIN else b"\\%03o" % one for one in os.fsencode(path))


def ended(stream: IO[bytes]) -> IO[bytes]:
    """A stream that is written, to be read from its start."""
    stream.seek(0, os.SEEK_END)
    stream.write(b"done\n")
    stream.seek(0)
    return stream
