"""Paths below the folder of a user: what is there, and how to replace it.

Takes the folder and a path as a workspace's tree names it; gives a Thing with its bytes. No link is
followed on the way: where a folder of the path is a link or a file by now, something else stands there. A
file is written aside and renamed. It decides nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from spak import canon
from spak.files.disk import Disk
from spak.workspace.tree import to_bytes, to_text

ASIDE = ".spak-applying"
"""The name of a file that is being written; one that a killed process left is taken away by the next."""

Kind = Literal["", "f", "l", "other"]


@dataclass(frozen=True, slots=True)
class Thing:
    """What is at a path: nothing, a file, a link (with its target's digest), or something else."""

    kind: Kind = ""
    digest: str = ""
    executable: bool = False
    mode: int = field(default=0, compare=False)
    """Permission bits of a file of the folder, for when it is put back; 0 where they are not known."""


NOTHING = Thing()
OTHER = Thing("other")


class UserFolder:
    """An open folder. Use it as a context. Without `modes` no file counts as executable or becomes so."""

    def __init__(self, path: Path, disk: Disk | None = None, *, modes: bool = True) -> None:
        self.path, self._modes = path, modes
        self._disk = disk or Disk()
        self.fd = -1

    def __enter__(self) -> UserFolder:
        self.fd = self._disk.open_folder(str(self.path.resolve()))
        if os.geteuid() == 0:
            found = os.fstat(self.fd)
            self._disk.owner = (found.st_uid, found.st_gid)
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.fd)

    def read(self, path: str) -> tuple[Thing, bytes]:
        """What is there, and its bytes or the target of the link. Raises: OSError."""
        try:
            with self._parent(path) as (at, name):
                found = os.stat(name, dir_fd=at, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    data = to_bytes(os.readlink(name, dir_fd=at))
                    return Thing("l", canon.digest(data)), data
                if not stat.S_ISREG(found.st_mode):
                    return OTHER, b""
                with os.fdopen(self._disk.open_file(name, at), "rb") as file:
                    data = file.read()
                mode = stat.S_IMODE(found.st_mode) & 0o777
                return Thing("f", canon.digest(data), self._modes and bool(mode & 0o100), mode), data
        except FileNotFoundError:
            return NOTHING, b""
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EINVAL):
                return OTHER, b""
            raise

    def put(self, path: str, thing: Thing, data: bytes) -> None:
        """Write it there, in place of nothing, a file or a link. Raises: OSError."""
        if not thing.kind:
            self._remove(path)
            return
        with self._parent(path, make=True) as (at, name):
            with suppress(FileNotFoundError):
                self._disk.unlink(ASIDE, at)
            if thing.kind == "l":
                self._disk.symlink(to_text(data), ASIDE, at)
            else:
                fd = self._disk.create(ASIDE, at)
                try:
                    self._disk.write(fd, data)
                    self._disk.own(fd, self._mode(name, at, thing))
                finally:
                    os.close(fd)
            try:
                self._disk.rename(ASIDE, name, at)
            except IsADirectoryError:
                self._disk.rmdir(name, at)  # one that a path of before left empty
                self._disk.rename(ASIDE, name, at)

    def tidy(self, path: str) -> None:
        """Remove the temporary file that a killed process left next to the path."""
        with suppress(OSError), self._parent(path) as (at, _):
            self._disk.unlink(ASIDE, at)

    def sync(self) -> None:
        """What was put is durable after this."""
        self._disk.sync_all(self.fd)

    def _mode(self, name: str, at: int, thing: Thing) -> int:
        """Permission bits: those of the file that is there, else those that it had, else as `umask` gives
        them. What a link has says nothing."""
        found = 0
        with suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
        mode = stat.S_IMODE(found) & 0o777 if stat.S_ISREG(found) else thing.mode
        if not stat.S_ISREG(found) and not mode:
            mask = os.umask(0o077)
            os.umask(mask)
            mode = 0o666 & ~mask
        if not self._modes:
            return mode
        runs = (mode & 0o444) >> 2
        return mode | runs if thing.executable else mode & ~0o111

    def _remove(self, path: str) -> None:
        """Remove what is there, and the parent folders that become empty."""
        folders = path.split("/")[:-1]
        try:
            with suppress(FileNotFoundError), self._parent(path) as (at, name):
                self._disk.unlink(name, at)
            while folders:
                with suppress(FileNotFoundError), self._parent("/".join(folders)) as (at, name):
                    self._disk.rmdir(name, at)
                folders.pop()
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
                raise

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder of a path, and the name in it."""
        *folders, name = path.split("/")
        fd = os.dup(self.fd)
        try:
            for folder in folders:
                if make:
                    self._make(folder, fd)
                inner = self._disk.open_folder(folder, fd)
                os.close(fd)
                fd = inner
            yield fd, name
        finally:
            os.close(fd)

    def _make(self, folder: str, at: int) -> None:
        try:
            self._disk.mkdir(folder, at)
        except FileExistsError:
            return
        with self._disk.folder(folder, at) as made:
            mask = os.umask(0o077)
            os.umask(mask)
            self._disk.own(made, 0o777 & ~mask)
