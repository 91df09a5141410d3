"""The one walk below a folder of the workspace that tools and validators share: names in order, no link
followed.

Takes the workspace's folder and a judged path; gives every entry below it. `Entry.read` opens a file only
where the law would let its path be read: no link, no second name of another file, nothing of git's and no
file of secrets, by its name or its contents. It decides nothing about the path that it begins at: the gate
judged that. What the law itself asks of a workspace (`paths.Observer`, `code`) walks by it too, and opens
what it needs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spak.files import beneath
from spak.secrets import which
from spak.secrets.files import holds

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Kind = Literal["file", "folder", "link"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One name below the folder; valid until the walk goes on."""

    path: str
    """Relative to the folder that the walk began at."""
    name: str
    kind: Kind
    trouble: str = ""
    """Why a folder is not entered that should have been."""
    top: str = ""
    """The folder that the walk began at, relative to the workspace, links resolved."""
    fd: int = -1

    @property
    def whole(self) -> str:
        """The path from the workspace."""
        return f"{self.top}/{self.path}" if self.top else self.path

    def open(self) -> int:
        """A descriptor of the file, to be closed; the last name is no link. Raises: OSError."""
        return os.open(self.name, _FILE, dir_fd=self.fd)

    @property
    def secret(self) -> bool:
        """Whether it is a file of secrets, by its name or by what is in it."""
        return which.secret(self.whole) or (self.kind == "file" and holds(self.whole, self.name, self.fd))

    @property
    def named_readable(self) -> bool:
        """Whether the law would let it be read, as far as names say: no link, nothing of git's, no secret."""
        parts = self.whole.split("/")
        return self.kind == "file" and not which.secret(self.whole) and not any(map(which.of_git, parts))

    def read(self, limit: int) -> bytes | None:
        """At most so many bytes of a file; None where it may not be read, or is no regular file."""
        if not self.named_readable or self.secret:
            return None
        try:
            fd = self.open()
        except OSError:
            return None
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                return None
            return file.read(limit)


def of_git(path: str) -> bool:
    """Whether a folder is a repository's own."""
    return path.rpartition("/")[2] == ".git"


def walk(root: Path, path: str, depth: int = 64, skip: Callable[[str], bool] = of_git) -> Iterator[Entry]:
    """Every entry below the folder, depth first, by name. A folder whose path (from the workspace) is to be
    skipped is named and not entered.

    Raises: NotADirectoryError where the path is a file; UsageError `path.*`, as `beneath.open_beneath`.
    """
    fd, parts = beneath.open_beneath(root, path)
    try:
        yield from _below(fd, "", depth, "/".join(parts), skip)
    finally:
        os.close(fd)


def _below(fd: int, prefix: str, depth: int, top: str, skip: Callable[[str], bool]) -> Iterator[Entry]:
    with os.scandir(fd) as entries:
        found = sorted(
            (entry.name, entry.is_symlink(), entry.is_dir(follow_symlinks=False)) for entry in entries
        )
    for name, is_link, is_folder in found:
        path = prefix + name
        if is_link or not is_folder:
            yield Entry(path, name, "link" if is_link else "file", "", top, fd)
            continue
        entry = Entry(path, name, "folder", "", top, fd)
        if depth <= 1 or skip(entry.whole):
            yield entry
            continue
        try:
            inner = os.open(name, _FOLDER, dir_fd=fd)
        except OSError as error:
            yield Entry(path, name, "folder", error.strerror or "it cannot be opened", top, fd)
            continue
        try:
            yield entry
            yield from _below(inner, path + "/", depth - 1, top, skip)
        finally:
            os.close(inner)


def printable(path: str) -> str:
    """The path as one line of text: what is not printable is escaped."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in path)
