"""A user's folder, copied into a workspace; the original is only read.

Takes a folder, an open one and what is wanted (`spak.workspace.brought`); copies files (sharing blocks where
the file system can), links unchanged, folders, permission bits and times of files. A file with several
names becomes several files. Sockets, pipes and devices have no content and are left out. It refuses what is
too big before it copies anything, and what changes while it is read. What each file holds is handed on, so
that nobody has to read it again; what an earlier copy has read (`spak.workspace.earlier`) comes from there
where no blocks are shared. The store is synced; the files are not, since they can be made from it. `skipped`
says which names at the top of a workspace are ours.
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
from spak.workspace.earlier import Earlier, Known, state
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

    files: list[tuple[str, tuple[Known, os.stat_result] | None]] = field(default_factory=list)
    """With what an earlier copy knows of it."""
    links: list[str] = field(default_factory=list)
    folders: dict[str, tuple[int, _Folder]] = field(default_factory=dict)
    """With their modes."""


def copy(
    source: Path,
    into: int,
    wanted: Wanted,
    store: Store,
    disk: Disk,
    bounds: Bounds,
    ours: Iterable[Path],
    runs: Path | None = None,
) -> tuple[Copied, Written]:
    """Copy what is wanted of a folder into an open one, but for folders of `ours`. In the folder `runs` what
    is read is kept for the next copy.

    Raises: RunError `workspace.limit` before the first byte is copied; `workspace.changing`,
    `workspace.unreadable`, `git.*`.
    """
    brought = choose(source, wanted)
    never = frozenset((found.st_dev, found.st_ino) for found in map(os.stat, ours))
    earlier = Earlier(runs, source, store, disk)
    looking, copying = _Looking(bounds, never, earlier), _Copying(disk, earlier)
    old = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = looking.folder(old, brought.files)
        earlier.begin(looking.small, looking.known, bounds.store_bytes)
        copying.folder(old, into, found)
    finally:
        os.close(old)
    earlier.keep()
    return Copied.of(source, brought, looking.files), copying.written


def no_folder(source: Path) -> UsageError:
    """The error for what cannot be copied."""
    return UsageError("workspace.source", f"{source} is not a folder", "name a folder with --workspace")


class _Looking:
    """What is there of the names, counted before a byte is copied."""

    def __init__(self, bounds: Bounds, never: frozenset[_Identity], earlier: Earlier) -> None:
        self._bounds, self._never, self._earlier = bounds, never, earlier
        self._most_bytes = min(bounds.size_bytes, bounds.store_bytes)
        self._tops: dict[str, tuple[int, int]] = {}
        """Entries and bytes of what is at the top, as far as they were counted."""
        self.files = self.entries = self.size_bytes = 0
        self.small = self.known = 0
        """Files that earlier copies can know, and how many they know."""

    def folder(self, at: int, names: Names, path: str = "", depth: int = 0) -> _Folder:
        """Raises: RunError `workspace.limit`, `workspace.unreadable`."""
        found = _Folder()
        for name, below in names.items():
            entries, size_bytes = self.entries, self.size_bytes
            self._entry(found, at, name, below or {}, path, depth)
            if self.entries > self._bounds.entries or self.size_bytes > self._most_bytes or depth > MAX_DEPTH:
                raise self._too_big(f"{path}{name}".split("/")[0])
            if not path:
                self._tops[name] = self.entries - entries, self.size_bytes - size_bytes
        return found

    def _too_big(self, last: str) -> RunError:
        bounds, which_one, raised = self._bounds, 0, "raise `files`"
        if self.entries > bounds.entries:
            limit = f"{bounds.entries} files and folders"
        elif self.size_bytes > self._most_bytes:
            limit, which_one = f"{self._most_bytes >> 20} MiB", 1
            raised = "raise `size_mib`" if self._most_bytes == bounds.size_bytes else "raise `store_mib`"
        else:
            limit, raised = f"{MAX_DEPTH} folders in one another", "remove it"
        counted = tuple(map(sum, zip((0, 0), *self._tops.values(), strict=True)))
        self._tops[last] = self.entries - counted[0], self.size_bytes - counted[1]
        most = max(self._tops, key=lambda name: self._tops[name][which_one])
        return RunError(
            "workspace.limit",
            f"the folder is too big to be copied: it has more than {limit}, most of them so far in {most!r}",
            f"leave that out by .gitignore, bring a part with `only` in [workspace], {raised} there, or name "
            "a smaller folder with --workspace",
        )

    def _entry(self, into: _Folder, at: int, name: str, below: Names, path: str, depth: int) -> None:
        try:
            found = os.stat(name, dir_fd=at, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return  # git tracks it, and somebody removed it
        self.entries += 1
        if stat.S_ISREG(found.st_mode):
            self.files += 1
            self.size_bytes += found.st_size
            known = None
            if found.st_size < CHUNK:
                self.small += 1
                known = self._earlier.known(path + name, found)
                self.known += known is not None
            into.files.append((name, known and (known, found)))
        elif stat.S_ISLNK(found.st_mode):
            self.files += 1
            into.links.append(name)
        elif stat.S_ISDIR(found.st_mode) and (found.st_dev, found.st_ino) not in self._never:
            inner = _open_folder(name, at)
            try:
                mode = stat.S_IMODE(found.st_mode)
                into.folders[name] = mode, self.folder(inner, below, f"{path}{name}/", depth + 1)
            finally:
                os.close(inner)


class _Copying:
    """One copy."""

    def __init__(self, disk: Disk, earlier: Earlier) -> None:
        self._disk, self._earlier = disk, earlier
        self.written: Written = []
        self._clones = True
        """Whether the file systems may share blocks; the first file shows it."""

    def folder(self, source: int, into: int, found: _Folder, path: str = "") -> None:
        for name, again in found.files:
            if again is None or self._clones or not self._again(f"{path}{name}", name, into, *again):
                self._file(f"{path}{name}", name, source, into)
        for name in found.links:
            self._disk.symlink(os.readlink(name, dir_fd=source), name, into)
        for name, (mode, below) in found.folders.items():
            self._disk.mkdir(name, into)
            inner = _open_folder(name, source)
            try:
                with self._disk.folder(name, into) as made:
                    self.folder(inner, made, below, f"{path}{name}/")
                    self._disk.own(made, mode)
            finally:
                os.close(inner)

    def _again(self, path: str, name: str, into: int, known: Known, found: os.stat_result) -> bool:
        """Make a file of what an earlier copy has read; False where that is not there."""
        data = self._earlier.content(path, known)
        if data is None:
            return False
        new = self._disk.create(name, into, stat.S_IMODE(found.st_mode) & ~TAKES_RIGHTS)
        try:
            self._disk.write(new, data)
            self.written.append((self._as(new, found), known.digest, known.secret))
        finally:
            os.close(new)
        return True

    def _file(self, path: str, name: str, source: int, into: int) -> None:
        """Raises: RunError `workspace.changing`."""
        old = _open(name, source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            seen = os.fstat(old)
            new = self._disk.create(name, into, stat.S_IMODE(seen.st_mode) & ~TAKES_RIGHTS)
            try:
                for _ in range(_TRIES):
                    data = self._contents(old, new, seen.st_size)
                    after = os.fstat(old)
                    if state(after) == state(seen) and stat.S_ISREG(seen.st_mode):
                        break
                    seen = after
                    os.lseek(new, 0, os.SEEK_SET)
                    os.ftruncate(new, 0)
                else:
                    raise _changing(name)
                copied = self._as(new, seen)
                if data is not None:
                    digest = canon.digest(data)
                    held = which.may_hold(name) and which.finds(name, data[: contents.MAX_BYTES])
                    self._earlier.put(path, seen, digest, data, bool(held))
                    self.written.append((copied, digest, bool(held)))
            finally:
                os.close(new)
        finally:
            os.close(old)

    def _as(self, new: int, old: os.stat_result) -> os.stat_result:
        """Give a new file the mode and the times of the old one; gives what it then is."""
        os.utime(new, ns=(old.st_atime_ns, old.st_mtime_ns))
        found, mode = os.fstat(new), stat.S_IMODE(old.st_mode) & ~TAKES_RIGHTS
        owner = self._disk.owner
        if stat.S_IMODE(found.st_mode) == mode and owner in (None, (found.st_uid, found.st_gid)):
            return found
        self._disk.own(new, mode)
        return os.fstat(new)

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


def _changing(name: str) -> RunError:
    return RunError(
        "workspace.changing",
        f"a file or folder changes while it is copied: {name!r}",
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
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise _changing(name) from error
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
