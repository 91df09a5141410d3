"""The last commits of the user's history, for a scratch repository: `HISTORY n` in CONFIG asks for them.

`freeze` gives them as bytes, for a case or for a run whose files a source gave, and `thaw` makes a
repository of such bytes beside the run's bare one. `bring` takes the bare one, which knows the HEAD that
the run began with, or what was thawed; writes the last n commits of its first line into another, each with
its author, time and message, and without files of secrets, by their paths or by what they held. Submodules
are left out. A message or an author that holds a secret is replaced.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spak.errors import RunError
from spak.repository import stream
from spak.repository.begun import BASE, MOST_BYTES, SECONDS
from spak.repository.commits import Secret, blobs
from spak.repository.git import Git
from spak.repository.stream import Person
from spak.secrets import which

LARGE = 16 << 20
"""Bytes of a file that is not in a scratch repository."""
FROZEN = 64 << 20
"""Bytes of commits that are frozen."""
PAST = "refs/spak/past"
"""The last of the commits that were frozen."""
THAWED = "past"
"""The folder of the repository that was made of them."""
HELD_BACK = "(a message that holds a secret)\n"
NOBODY = "somebody"
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
    bare = known(bare.folder)
    if not (head := _head(bare)):
        return ""
    with tempfile.TemporaryFile(dir=into.folder) as file:
        _write(bare, head, file, ref, count, secret)
        into.local("fast-import", "--depth=0", "--quiet", "--done", given=stream.ended(file))
    return into.local("rev-parse", "--verify", ref).decode().strip()


def freeze(bare: Git, count: int, secret: Secret, head: str = "") -> bytes:
    """The same as bytes that `thaw` takes; they follow from the commits alone. Nothing where there is no
    history. Raises: RunError `git.*`."""
    if not (head := head or _head(bare)):
        return b""
    require_whole(bare, count, head)
    with tempfile.TemporaryFile(dir=bare.folder) as file:
        _write(bare, head, file, PAST, count, secret)
        with stream.ended(file) as whole:
            if whole.seek(0, os.SEEK_END) > FROZEN:
                raise RunError(
                    "git.huge",
                    f"the last {count} commits are larger than {FROZEN >> 20} MiB",
                    "ask for less HISTORY",
                )
            whole.seek(0)
            return whole.read()


def thaw(folder: Path, frozen: bytes) -> None:
    """Make the repository that `bring` reads in place of the run's bare one in `folder`, whose own commits
    stand on none of these; one that is there stays. Raises: RunError `git.*`."""
    place = folder.with_name(THAWED)
    if place.exists():
        return
    made = git(place.with_name(f"{THAWED}.new"))
    shutil.rmtree(made.folder, ignore_errors=True)
    made.begin()
    made.local("fast-import", "--depth=0", "--quiet", "--done", given=frozen)
    made.local("rev-parse", "--quiet", "--verify", f"{PAST}^{{commit}}")
    made.folder.rename(place)


def known(folder: Path) -> Git:
    """The repository that has the history of the run whose bare one is in `folder`."""
    place = folder.with_name(THAWED)
    return git(place if place.exists() else folder)


def git(folder: Path) -> Git:
    """git in a bare repository, with the bounds of a run's."""
    return Git(folder, time.monotonic() + SECONDS, MOST_BYTES)


def require_whole(bare: Git, count: int, head: str = "") -> None:
    """Raises: RunError `git.shallow` where a shallow clone lacks some of the commits; `git.*`."""
    if not count or not (head := head or _head(bare)):
        return
    line = bare.local("rev-list", "--first-parent", f"--max-count={count}", head).decode().split()
    try:
        cut = (bare.folder / "shallow").read_text().split()
    except OSError:
        return
    if len(line) < count and line[-1] in cut:
        found = f"{len(line)} commit{'' if len(line) == 1 else 's'}"
        raise RunError(
            "git.shallow",
            f"the spec asks for HISTORY {count}, and the repository is a shallow clone with {found}",
            "fetch the others there (`git fetch --unshallow`), or ask for less HISTORY",
        )


def recognised(holds: Callable[[bytes], bool]) -> Secret:
    """What says which are secrets where no run is at work: names, contents, and values that are known."""

    def secret(path: str, data: bytes, old: bytes | None = None) -> bool:
        named = bool(path) and which.secret(path)
        return named or holds(data) or (which.may_hold_at(path) and bool(which.finds(path, data)))

    return secret


def _head(bare: Git) -> str:
    """The last of the commits that were frozen, else the HEAD that the run began with."""
    if not (bare.folder / "HEAD").exists():
        return ""
    for ref in (PAST, BASE):
        said = bare.local("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}", accepted=(1,))
        if head := said.decode().strip():
            return head
    return ""


def _write(bare: Git, head: str, file: IO[bytes], ref: str, count: int, secret: Secret) -> None:
    """The commits as a stream."""
    commits = list(_commits(bare, head, count))[::-1]
    changes, before = [], ""
    for one in commits:
        changes.append(list(_changes(bare, before, one.name)))
        before = one.name
    for number, (one, rows) in enumerate(zip(commits, changes, strict=True)):
        person, message = one.person, one.message
        if secret("", message.encode()):
            message = HELD_BACK
        if secret("", f"{person.name} {person.mail}".encode()):
            person = Person(NOBODY, NOBODY, person.at)
        stream.begin(file, ref, "", person, message)  # its parent is where the ref is by then
        if number:  # all goes first that is there no more, or otherwise: a folder may stand where a file was
            file.writelines(b"D %s\n" % stream.quoted(path) for path, _, _ in rows)
        files: dict[str, list[tuple[str, str]]] = {}
        for path, mode, blob in rows:
            if mode:
                files.setdefault(blob, []).append((path, mode))
        for blob, content in blobs(bare, files, LARGE):
            for path, mode in files[blob]:
                if not secret(path, content):
                    stream.inline(file, path, mode, content)
        file.write(b"\n")


def _commits(bare: Git, head: str, count: int) -> Iterator[_Commit]:
    """The newest first."""
    words = ("log", "--first-parent", f"--max-count={count}", f"--format={_FORMAT}", "--no-show-signature")
    parts = bare.local(*words, head).decode("utf-8", "replace").split("\0")[:-1]
    for name, author, mail, at, message in zip(*(parts[n::5] for n in range(5)), strict=True):
        person = Person(_plain(author), _plain(mail), int(at) if at.isdecimal() and len(at) < 12 else 0)
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
    return "".join(sign for sign in text if sign.isprintable() and sign not in "<>").strip() or NOBODY
