"""What commits of a run let out, as the door has it (spak.door): what each of them has otherwise than where
the run began.

Takes a repository and two commits; gives `Leaving`, in which a path has the strictest class that it has in
one of the commits between them. Who gets a branch gets all of them, so what a later commit takes away is
looked at too. It decides nothing: who sends commits calls `Leaving.require`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spak.door import Change, Class, Leaving, Node, look
from spak.repository.git import Git
from spak.repository.stream import LINK, File, blob_id

Read = Callable[[str], bytes]
Look = Callable[[Node, Node, Read], Leaving]
STRICT = (Class.ODD, Class.SECRET, Class.RUNS, Class.CHECKS, Class.ORDINARY, Class.IGNORED)
_KINDS = {"040000": "d", "120000": "l", "160000": "s"}


@dataclass(slots=True)
class Thing:
    """What a commit has at a path; its digest is git's hash."""

    kind: str
    mode: int = 0
    digest: str = ""
    size: int = 0
    children: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Begun:
    """Files of a store, and what reads them."""

    files: Mapping[str, File]
    read: Read


def of_commits(git: Git, began: str, last: str, looked: Look = look, begun: Begun | None = None) -> Leaving:
    """Of the commits above `began` up to `last`. Where the run began with no commit, `began` is empty and
    `begun` are the files that were there. Raises: RunError `git.*`, `workspace.object`."""
    above = (f"^{began}",) if began else ()
    commits = git.local("rev-list", "--reverse", last, *above, "--").decode().split()
    files = begun or Begun({}, lambda _: b"")
    kept: dict[str, str] = {}
    before = tree(git, began) if began else _planted(files, kept)

    def read(digest: str) -> bytes:
        return files.read(kept[digest]) if digest in kept else git.local("cat-file", "blob", digest)

    found = Leaving(before.digest, before.digest, ())
    for commit in commits:
        now = looked(before, tree(git, commit), read)
        paths = {one.path: one for one in found.changes}
        gone = () if began else [one for one in now.changes if one.after is None]  # it was in no commit
        new = [one for one in now.changes if one not in gone]
        paths |= {one.path: _stricter(paths.get(one.path), one) for one in new}
        found = replace(now, changes=tuple(paths[path] for path in sorted(paths)))
    return found


def tree(git: Git, commit: str) -> Thing:
    """The files of a commit. Raises: RunError `git.*`."""
    said = git.local("ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit)
    root = Thing("d", digest=git.local("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip())
    places = {"": root}
    for path, thing in _things(said):
        above, _, name = path.rpartition("/")
        places[above].children[name] = thing
        if thing.kind == "d":
            places[path] = thing
    return root


def _planted(begun: Begun, kept: dict[str, str]) -> Thing:
    """The same for files of a store; `kept` gets the store's digest of each by git's hash."""
    root = Thing("d")
    for path, file in begun.files.items():
        data = begun.read(file.digest)
        digest = blob_id(data)
        kept[digest] = file.digest
        *folders, name = path.split("/")
        at: Any = root
        for folder in folders:
            at = at.children.setdefault(folder, Thing("d"))
        at.children[name] = Thing(
            "l" if file.mode == LINK else "f", int(file.mode, 8) & 0o777, digest, len(data)
        )
    return root


def _things(said: bytes) -> Iterator[tuple[str, Thing]]:
    """What `ls-tree` lists, folders before what is in them."""
    for line in said.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, digest, size = about.decode().split()
        kind = _KINDS.get(mode, "f")
        yield os.fsdecode(path), Thing(kind, int(mode, 8) & 0o777, digest, int(size) if size != "-" else 0)


def _stricter(one: Change | None, other: Change) -> Change:
    return other if one is None or STRICT.index(other.of) <= STRICT.index(one.of) else one
