"""A user's folder, copied into a workspace; the original is only read.

Takes a folder, an open one and what is wanted (`spak.workspace.brought`); copies files (sharing blocks where
the file system can), links as they are, folders, permission bits and times of files. A file with several
names becomes several files. Sockets, pipes and devices have no content and are left out. It refuses what is
too big before it copies anything, and what changes while it is read. Each file is handed on with its bytes,
so that nobody has to read it again. `skipped` says which names at the top of a workspace are ours.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from spak import canon
from spak.errors import RunError, UsageError
from spak.files.disk import Disk
from spak.paths import OURS
from spak.secrets import contents, which
from spak.workspace.brought import Names, Wanted, choose, unreadable
from spak.workspace.copied import Copied
from spak.workspace.store import CHUNK, Store
from spak.workspace.tree import MAX_DEPTH, TAKES_RIGHTS, Bounds

_FICLONE = 0x40049409
_TRIES = 3
_Identity = tuple[int, int]

Written = list[tuple[os.stat_result, str, bool]]
"""Files that are not large, as `Scanner.know` takes them."""


@dataclass(slots=True)
class _Folder:
    """What is to be copied of one folder, as it was looked at."""

    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    folders: dict[str, tuple[int, _Folder]] = field(default_factory=dict)
    """With their modes."""


@dataclass(slots=True)
class _Counted:
    files: int = 0
    entries: int = 0
    size_bytes: int = 0


def copy(
    source: Path,
    into: int,
    wanted: Wanted,
    store: Store,
    disk: Disk,
    bounds: Bounds,
    ours: Iterable[Path],
) -> tuple[Copied, Written]:
    """Copy what is wanted of a folder into an open one, but for folders of `ours`.

    Raises: RunError `workspace.limit` before the first byte is copied; `workspace.changing`,
    `workspace.unreadable`, `git.*`.
    """
    brought = choose(source, wanted)
    never = frozenset((found.st_dev, found.st_ino) for found in map(os.stat, ours))
    counted, copying = _Counted(), _Copying(disk, store)
    old = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        copying.folder(old, into, _looked(old, brought.files, bounds, never, counted, 0))
    finally:
        os.close(old)
    store.write()
    disk.sync_all(into)
    return Copied.of(source, brought, counted.files), copying.written


def no_folder(source: Path) -> UsageError:
    """The error for what cannot be copied."""
    return UsageError("workspace.source", f"{source} is not a folder", "name a folder with --workspace")


def _looked(
    at: int, names: Names, bounds: Bounds, never: frozenset[_Identity], counted: _Counted, depth: int
) -> _Folder:
    """What is there of the names. Raises: RunError `workspace.limit`."""
    found = _Folder()
    for name, below in names.items():
        try:
            seen = os.stat(name, dir_fd=at, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            continue  # git tracks it, and somebody removed it
        counted.entries += 1
        if stat.S_ISREG(seen.st_mode):
            counted.files += 1
            counted.size_bytes += seen.st_size
            found.files.append(name)
        elif stat.S_ISLNK(seen.st_mode):
            counted.files += 1
            found.links.append(name)
        elif stat.S_ISDIR(seen.st_mode) and (seen.st_dev, seen.st_ino) not in never:
            inner = _open_folder(name, at)
            try:
                mode = stat.S_IMODE(seen.st_mode)
                found.folders[name] = mode, _looked(inner, below or {}, bounds, never, counted, depth + 1)
            finally:
                os.close(inner)
        if counted.entries > bounds.entries or counted.size_bytes > bounds.size_bytes or depth > MAX_DEPTH:
            raise RunError(
                "workspace.limit",
                f"the folder is too big to be copied: more than {bounds.entries} files and folders, "
                f"{bounds.size_bytes >> 20} MiB, or {MAX_DEPTH} folders deep",
                "name a smaller folder with --workspace, or a part of it with `only` in [workspace]",
            )
    return found


class _Copying:
    """One copy."""

    def __init__(self, disk: Disk, store: Store) -> None:
        self._disk, self._store = disk, store
        self.written: Written = []
        self._clones = True
        """Whether the file systems may share blocks; the first file shows it."""

    def folder(self, source: int, into: int, found: _Folder) -> None:
        for name in found.files:
            self._file(name, source, into)
        for name in found.links:
            self._disk.symlink(os.readlink(name, dir_fd=source), name, into)
        for name, (mode, below) in found.folders.items():
            self._disk.mkdir(name, into)
            inner = _open_folder(name, source)
            try:
                with self._disk.folder(name, into) as made:
                    self.folder(inner, made, below)
                    self._disk.own(made, mode)
            finally:
                os.close(inner)

    def _file(self, name: str, source: int, into: int) -> None:
        """Raises: RunError `workspace.changing`."""
        old = _open(name, source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            new = self._disk.create(name, into)
            try:
                for _ in range(_TRIES):
                    seen = os.fstat(old)
                    data = self._contents(old, new, seen.st_size)
                    if _state(os.fstat(old)) == _state(seen) and stat.S_ISREG(seen.st_mode):
                        break
                    os.lseek(new, 0, os.SEEK_SET)
                    os.ftruncate(new, 0)
                else:
                    raise _changing(name)
                self._disk.own(new, stat.S_IMODE(seen.st_mode) & ~TAKES_RIGHTS)
                os.utime(new, ns=(seen.st_atime_ns, seen.st_mtime_ns))
                if data is not None:
                    self._took(name, os.fstat(new), data)
            finally:
                os.close(new)
        finally:
            os.close(old)

    def _took(self, name: str, found: os.stat_result, data: bytes) -> None:
        digest = canon.digest(data)
        self._store.put(digest, data)
        held = which.may_hold(name) and which.finds(name, data[: contents.MAX_BYTES])
        self.written.append((found, digest, bool(held)))

    def _contents(self, old: int, new: int, size: int) -> bytes | None:
        """Copy the bytes; they are given back where they are few."""
        self._clones = self._clones and _clone(old, new)
        if size < CHUNK:
            data = os.pread(old, size + 1, 0)
            if not self._clones:
                self._disk.write(new, data)
            return data
        at = 0
        while not self._clones and at < size and (chunk := os.pread(old, CHUNK, at)):
            self._disk.write(new, chunk)
            at += len(chunk)
        return None


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _changing(name: str) -> RunError:
    return RunError(
        "workspace.changing",
        f"a file changes while it is copied: {name!r}",
        "end whatever writes into the folder, then start the run again",
    )


def _clone(old: int, new: int) -> bool:
    """Share the blocks: nothing is copied until one of the two changes. False where that cannot be done."""
    try:
        fcntl.ioctl(new, _FICLONE, old)
    except OSError:
        return False
    return True


def _open_folder(name: str, at: int) -> int:
    return _open(name, at, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _open(name: str, at: int, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            raise
        raise unreadable(name) from error


def skipped(directory: Path, store: Path) -> frozenset[str]:
    """Names at the top of the folder that are ours and no part of it: the store may lie in `.spak` there."""
    inside, outside = directory.resolve(), store.resolve()
    if inside.is_relative_to(outside):
        raise _nested(directory, store)
    if not outside.is_relative_to(inside):
        return frozenset()
    if outside.relative_to(inside).parts[0] != OURS:
        raise _nested(directory, store)
    return frozenset({OURS})


def _nested(directory: Path, store: Path) -> UsageError:
    return UsageError(
        "workspace.nested",
        f"the workspace {directory} and the run's store {store} lie in one another",
        "name another folder for runs with --runs-dir (`.spak` in the workspace is left alone)",
    )
