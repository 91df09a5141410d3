"""A user's folder, copied into a workspace; the original is only read.

Takes two open folders; copies files (sharing blocks where the file system can), links as they are, folders,
permission bits and times of files. Sockets, pipes and devices have no content and are left out, and so is
`.spak` at the top, which is ours. It refuses what is too big before it copies anything. `skipped` says which
names at the top of a workspace are ours.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

from spak.errors import RunError, UsageError
from spak.files.disk import Disk
from spak.paths import OURS
from spak.workspace.tree import MAX_DEPTH, Bounds

_FICLONE = 0x40049409
_CHUNK = 1 << 22
_Identity = tuple[int, int]


def copy(source: int, into: int, disk: Disk, bounds: Bounds, never: frozenset[_Identity]) -> None:
    """Copy all of an open folder but those in `never` (device and inode of folders).

    Raises: RunError `workspace.limit` before the first byte is copied.
    """
    _weigh(source, bounds, never)
    _copy_folder(source, into, disk, never, top=True)
    disk.sync_all(into)


def _weigh(source: int, bounds: Bounds, never: frozenset[_Identity]) -> None:
    entries = total = 0

    def walk(fd: int, depth: int) -> None:
        nonlocal entries, total
        for name, found in _listed(fd, never, top=depth == 0):
            entries += 1
            total += found.st_size if stat.S_ISREG(found.st_mode) else 0
            if entries > bounds.entries or total > bounds.size_bytes or depth > MAX_DEPTH:
                raise RunError(
                    "workspace.limit",
                    f"the folder is too big to be copied: more than {bounds.entries} files and folders, "
                    f"{bounds.size_bytes >> 20} MiB, or {MAX_DEPTH} folders deep",
                    "name a smaller folder with --workspace, or use --in-place",
                )
            if stat.S_ISDIR(found.st_mode):
                inner = _open_folder(name, fd)
                try:
                    walk(inner, depth + 1)
                finally:
                    os.close(inner)

    walk(source, 0)


def _copy_folder(source: int, into: int, disk: Disk, never: frozenset[_Identity], *, top: bool) -> None:
    for name, found in _listed(source, never, top=top):
        if stat.S_ISREG(found.st_mode):
            _copy_file(name, source, into, disk, found)
        elif stat.S_ISLNK(found.st_mode):
            disk.symlink(os.readlink(name, dir_fd=source), name, into)
        elif stat.S_ISDIR(found.st_mode):
            disk.mkdir(name, into)
            inner = _open_folder(name, source)
            try:
                with disk.folder(name, into) as made:
                    _copy_folder(inner, made, disk, never, top=False)
                    disk.own(made, stat.S_IMODE(found.st_mode))
            finally:
                os.close(inner)


def _copy_file(name: str, source: int, into: int, disk: Disk, found: os.stat_result) -> None:
    old = _open(name, source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        new = disk.create(name, into)
        try:
            if not _clone(old, new):
                while chunk := os.read(old, _CHUNK):
                    disk.write(new, chunk)
            disk.own(new, stat.S_IMODE(found.st_mode))
            os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(new)
    finally:
        os.close(old)


def _clone(old: int, new: int) -> bool:
    """Share the blocks: nothing is copied until one of the two changes. False where that cannot be done."""
    try:
        fcntl.ioctl(new, _FICLONE, old)
    except OSError:
        return False
    return True


def _listed(fd: int, never: frozenset[_Identity], *, top: bool) -> list[tuple[str, os.stat_result]]:
    found = []
    with os.scandir(fd) as entries:
        for entry in entries:
            seen = entry.stat(follow_symlinks=False)
            if not (top and entry.name == OURS) and (seen.st_dev, seen.st_ino) not in never:
                found.append((entry.name, seen))
    return found


def _open_folder(name: str, at: int) -> int:
    return _open(name, at, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _open(name: str, at: int, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            raise
        raise RunError(
            "workspace.unreadable",
            f"a file or folder may not be read: {name!r}",
            "give the user who runs SPAK the right to read it, or leave it out of the folder",
        ) from error


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
