"""The calls that change a disk, in one place, with a count of fsyncs and a hook before each.

Takes descriptors of folders and names within them, never a path through folders that somebody else may swap:
no symbolic link is followed. The hook sees the name of each call before it is made; tests stop the world
there. What root makes here belongs to `owner`. It decides nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType

from spak.errors import RunError, UnavailableError, UserError
from spak.files import faults
from spak.files.syncing import sync_file_system

BATCH = 10_000
"""Names that are looked at in one go while a folder is emptied."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DENIED = (errno.EACCES, errno.EPERM)
SYNC_EACH = 32
"""How many files are synced one by one; more are synced with their whole file system."""

ROOM = 64 << 20
"""With fewer free bytes a disk counts as full, a small one with less than a PART of it: as large a file may a
tool write (ports.Limits), and one that fails may have removed it by the time that somebody looks."""
INODES = 1024
"""The same for inodes: other steps that are rolled back meanwhile free some."""
PART = 16


def has_room(folder: Path) -> bool:
    """Whether the disk of the folder has free bytes and free inodes; True where that cannot be known."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return True
    wanted = min(ROOM, found.f_blocks * found.f_frsize // PART)
    inodes = max(1, min(INODES, found.f_files // PART)) if found.f_files else 0
    return found.f_bavail * found.f_frsize >= wanted and found.f_favail >= inodes


def unwritable(folder: Path) -> str:
    """Why nothing can be written in the folder now, found by writing a small file; empty when it can."""
    file = folder / f".spak-try-{os.getpid()}-{threading.get_ident()}"
    try:
        try:
            with file.open("wb", buffering=0) as opened:
                opened.write(b"\n")
                os.fsync(opened.fileno())
        finally:
            file.unlink(missing_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def nothing(call: str) -> None:
    """The hook that does nothing."""


class Disk:
    """Changes to the disk; `fsyncs` counts what waited for the disk. Where not `durable` nothing waits: of
    what is made anew after the machine stopped."""

    def __init__(self, before: Callable[[str], None] = nothing, *, durable: bool = True) -> None:
        self.fsyncs = 0
        self._durable = durable
        self.owner: tuple[int, int] | None = None
        self._before = before

    # ---- opening -----------------------------------------------------------------------------------

    def open_folder(self, name: str, at: int | None = None) -> int:
        """The folder, open for reading."""
        return os.open(name, _FOLDER, dir_fd=at)

    @contextmanager
    def folder(self, name: str, at: int | None = None, *, force: bool = False) -> Iterator[int]:
        """The folder, open for reading; `force` gives its owner back the rights that a tool took away."""
        if force and at is not None:
            self._open_up(name, at)
        fd = self.open_folder(name, at)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def visit(self, name: str, at: int, mode: int) -> Iterator[int]:
        """The folder, open for a look even if that takes rights which its `mode` does not give."""
        with self.folder(name, at, force=True) as fd:
            try:
                yield fd
            finally:
                if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
                    self.chmod(fd, mode)

    def open_file(self, name: str, at: int) -> int:
        """A file, open for reading. What is not a regular file by now fails with ELOOP or EINVAL."""
        try:
            fd = os.open(name, _FILE, dir_fd=at)
        except PermissionError:
            fd = self._open_denied(name, at)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a regular file any more", name)
        return fd

    # ---- changing ----------------------------------------------------------------------------------

    def create(self, name: str, at: int, mode: int = 0o600) -> int:
        """A new file, open for writing. Raises: FileExistsError."""
        self._before("create")
        return os.open(name, _NEW, mode, dir_fd=at)

    def write(self, fd: int, data: bytes | memoryview) -> None:
        """Write all of the bytes."""
        self._before("write")
        view, done = memoryview(data), 0
        while done < len(view):
            done += os.write(fd, view[done:])

    def write_at(self, fd: int, data: bytes, at: int) -> None:
        """Write all of the bytes from an offset on."""
        self._before("write")
        done = os.pwrite(fd, data, at)
        while done < len(data):
            done += os.pwrite(fd, memoryview(data)[done:], at + done)

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file to so many bytes."""
        self._before("truncate")
        os.ftruncate(fd, size)

    def rename(self, old: str, new: str, at: int, to: int | None = None) -> None:
        """Rename within a folder, or into another one."""
        self._before("rename")
        os.rename(old, new, src_dir_fd=at, dst_dir_fd=at if to is None else to)

    def unlink(self, name: str, at: int) -> None:
        """Remove a file."""
        self._before("unlink")
        os.unlink(name, dir_fd=at)

    def mkdir(self, name: str, at: int) -> None:
        """Make a folder that only its owner reads."""
        self._before("mkdir")
        os.mkdir(name, 0o700, dir_fd=at)

    def rmdir(self, name: str, at: int) -> None:
        """Remove an empty folder."""
        self._before("rmdir")
        os.rmdir(name, dir_fd=at)

    def symlink(self, target: str, name: str, at: int) -> None:
        """Make a link, of the workspace's owner."""
        self._before("symlink")
        os.symlink(target, name, dir_fd=at)
        if self.owner is not None:
            os.chown(name, *self.owner, dir_fd=at, follow_symlinks=False)

    def own(self, fd: int, mode: int) -> None:
        """Give the open file or folder its owner and its rights."""
        self._before("chmod")
        if self.owner is not None:
            os.fchown(fd, *self.owner)
        os.fchmod(fd, mode)

    def chmod(self, fd: int, mode: int) -> None:
        """Change a file's mode."""
        self._before("chmod")
        os.fchmod(fd, mode)

    def fsync(self, fd: int) -> None:
        """Make a file or folder durable; counted."""
        self._before("fsync")
        if self._durable:
            os.fsync(fd)
            self.fsyncs += 1

    def fdatasync(self, fd: int) -> None:
        """As fsync, for an open file whose name, owner and rights are on disk already."""
        self._before("fsync")
        if self._durable:
            os.fdatasync(fd)
            self.fsyncs += 1

    def sync_all(self, anywhere: int) -> None:
        """Sync the file system of an open folder: cheaper than many files one by one."""
        self._before("syncfs")
        if self._durable:
            sync_file_system(anywhere)
            self.fsyncs += 1

    def remove(self, name: str, at: int) -> None:
        """Remove whatever stands there, however deep, without following a link.

        Folders inside folders are moved up before they are emptied: any depth takes two open folders.
        """
        try:
            self.unlink(name, at)
            return
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.EPERM):
                raise
            if not stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                raise
        with self.folder(name, at, force=True) as top:
            self._empty(top)
        self.rmdir(name, at)

    # ---- private -----------------------------------------------------------------------------------

    def _empty(self, top: int) -> None:
        moved = 0
        while names := _some(top):
            for name, is_folder in names:
                if not is_folder:
                    self.unlink(name, top)
                    continue
                with self.folder(name, top, force=True) as inner:
                    while below := _some(inner):
                        for child, child_is_folder in below:
                            if child_is_folder:
                                moved = self._move_up(child, inner, top, moved)
                            else:
                                self.unlink(child, inner)
                self.rmdir(name, top)

    def _move_up(self, name: str, at: int, top: int, number: int) -> int:
        self._open_up(name, at)
        while True:
            number += 1
            try:
                self.rename(name, f".spak-gone-{number}", at, top)
                return number
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise

    def _open_up(self, name: str, at: int) -> None:
        """Let the owner read, write and enter a folder again; root never needs it."""
        if os.geteuid() == 0:
            return
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o700 != 0o700:
            self._chmod_name(name, at, stat.S_IMODE(found.st_mode) | 0o700)

    def _open_denied(self, name: str, at: int) -> int:
        """A file of ours that we may not read: give the right, open, take it back."""
        mode = stat.S_IMODE(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
        try:
            self._chmod_name(name, at, mode | 0o400)
        except OSError as error:
            raise RunError(
                "workspace.unreadable",
                f"a file in the workspace may not be read: {name!r}",
                "give the user who runs SPAK the right to read it, or leave it out of the workspace",
            ) from error
        fd = os.open(name, _FILE, dir_fd=at)
        self.chmod(fd, mode)
        return fd

    def _chmod_name(self, name: str, at: int, mode: int) -> None:
        """chmod without following a link: Linux has it only by way of a path-only descriptor."""
        self._before("chmod")
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        try:
            if stat.S_ISLNK(os.fstat(fd).st_mode):
                raise OSError(errno.ELOOP, "a link by now", name)
            Path(f"/proc/self/fd/{fd}").chmod(mode)
        finally:
            os.close(fd)


def _some(fd: int) -> list[tuple[str, bool]]:
    with os.scandir(fd) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, BATCH)]


class typed:
    """What the operating system refuses inside, as an error that says what to do."""

    __slots__ = ("_doing", "_hint")

    def __init__(self, doing: str, hint: str = "") -> None:
        self._doing, self._hint = doing, hint

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            raise refusal(error, self._doing, self._hint) from error


def refusal(error: OSError, doing: str, hint: str = "") -> UserError:
    """What the operating system refused while `doing` that, as an error that says what to do; `hint` where
    that is not to go on with a run."""
    why = f"{error.strerror or error}" + (f": {error.filename!r}" if error.filename else "")
    if error.errno in faults.SHORT:
        return short_of(f"the host is short of something while {doing} ({why})")
    if error.errno in (*faults.FULL, errno.EFBIG):
        return RunError(
            "workspace.full",
            f"no space while {doing} ({why})",
            hint or "free some space and continue with `spak resume`; the files before the step are kept",
        )
    if error.errno in (errno.EROFS, *_DENIED):
        return RunError(
            "workspace.readonly",
            f"not allowed while {doing} ({why})",
            hint or "make the run folder and its workspace writable for the user who runs SPAK",
        )
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.EISDIR):
        return RunError(
            "workspace.changing",
            f"files changed while {doing} ({why})",
            hint or "end whatever else writes into the workspace, then continue with `spak resume`",
        )
    return RunError(
        "workspace.io",
        f"the disk failed while {doing} ({why})",
        hint or "check the disk, then continue with `spak resume`",
    )


def short_of(message: str) -> UnavailableError:
    """The error of a host that has too little of something."""
    return UnavailableError(
        "unavailable.host",
        message,
        "raise the limits of descriptors, processes or memory, or end what uses them; then go on",
    )
