"""The last commits of the user's history, for a scratch repository: `HISTORY n` in CONFIG asks for them.

Takes the run's bare repository, which knows the HEAD that the run began with; writes the last n commits of
its first line into another, each with its author, time and message, and without files of secrets, by their
paths or by what they held. Submodules are left out. A message that holds a secret is replaced.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from spak.repository import stream
from spak.repository.commits import BASE, Secret, blobs
from spak.repository.git import Git
from spak.repository.stream import Person

LARGE = 16 << 20
"""Bytes of a file that is not in a scratch repository."""
HELD_BACK = "(a message that holds a secret)\n"
_FORMAT = "%H%x00%an%x00%ae%x00%at%x00%B%x00"


@dataclass(frozen=True, slots=True)
class _Commit:
    name: str
    person: Person
    message: str


def bring(bare: Git, into: Git, ref: str, count: int, secret: Secret) -> str:
    """Write them to `ref`; gives the last one, nothing where there is no history.

    Raises: RunError `git.*`.
    """
    if not (bare.folder / "HEAD").exists():
        return ""
    said = bare.local("rev-parse", "--quiet", "--verify", f"{BASE}^{{commit}}", accepted=(1,))
    if not (head := said.decode().strip()):
        return ""
    commits = list(_commits(bare, head, count))[::-1]
    changes, before = [], ""
    for one in commits:
        changes.append(list(_changes(bare, before, one.name)))
        before = one.name
    data = dict(blobs(bare, [blob for rows in changes for _, mode, blob in rows if mode]))
    with tempfile.TemporaryFile(dir=into.folder) as file:
        for number, (one, rows) in enumerate(zip(commits, changes, strict=True)):
            message = HELD_BACK if secret("", one.message.encode()) else one.message
            stream.begin(file, ref, "", one.person, message)  # its parent is where the ref is by then
            for path, mode, blob in sorted(rows, key=lambda row: bool(row[1])):  # what goes makes room first
                content = data.get(blob, b"")
                if mode and len(content) <= LARGE and not secret(path, content):
                    stream.inline(file, path, mode, content)
                elif number:
                    file.write(b"D %s\n" % stream.quoted(path))
            file.write(b"\n")
        into.local("fast-import", "--depth=0", "--quiet", "--done", given=stream.ended(file))
    return into.local("rev-parse", "--verify", ref).decode().strip()


def _commits(bare: Git, head: str, count: int) -> Iterator[_Commit]:
    """The newest first."""
    words = ("log", "--first-parent", f"--max-count={count}", f"--format={_FORMAT}", "--no-show-signature")
    parts = bare.local(*words, head).decode("utf-8", "replace").split("\0")[:-1]
    for name, author, mail, at, message in zip(*(parts[n::5] for n in range(5)), strict=True):
        person = Person(_plain(author), _plain(mail), max(0, int(at)))
        yield _Commit(name.strip(), person, message.strip("\n") + "\n")


def _changes(bare: Git, before: str, commit: str) -> Iterator[tuple[str, str, str]]:
    """Path, mode and hash of each file that differs; an empty mode for one that is gone. All files where
    there is no commit before."""
    if not before:
        for line in bare.local("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, blob = about.decode().split()
            if mode.startswith(("100", "120")):
                yield os.fsdecode(path), mode, blob
        return
    items = iter(bare.local("diff-tree", "-r", "-z", "--no-renames", before, commit).split(b"\0"))
    for item in items:
        if item:
            _, mode, _, blob, _ = item[1:].decode().split()
            yield os.fsdecode(next(items)), mode if mode.startswith(("100", "120")) else "", blob


def _plain(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable() and sign not in "<>").strip() or "somebody"
