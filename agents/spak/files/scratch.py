"""Folders for temporary files that a killed process does not leave behind for good.

`Scratch` gives a folder of its own below the folder of temporary files and removes it when it is closed,
or with its owner. A process that is killed removes nothing, so each folder is locked by who made it, and the
first `Scratch` of a later process removes those that nobody holds any more. It touches nothing but folders of
its own name and of the same user.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spak.files.disk import Disk

HIDDEN = ("/dev", "/proc", "/sys", "/ws")
"""Folders of which a sandbox has its own: what the host has there cannot be shown to a job."""
PREFIX = "spak-scratch-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Scratch:
    """A private folder for `purpose`, a word that its name shows."""

    def __init__(self, purpose: str, top: Path | None = None) -> None:
        """Below `top` if it is given, where each one sweeps first."""
        if top is None:
            top = place()
            _sweep_once(top)
        else:
            sweep(top)
        self.path, lock = _locked(top, f"{PREFIX}{purpose}-")
        self.close = when_gone(self, _close, self.path, lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def when_gone(owner: object, close: Callable[..., None], *held: Any) -> weakref.finalize[Any, Any]:
    """Close what `owner` holds when it goes, once, and in the process that made it alone: a forked one has a
    copy of the owner, and what it would remove, end or wait for is its parent's."""
    made = os.getpid()

    def closing() -> None:
        if os.getpid() == made:
            close(*held)

    return weakref.finalize(owner, closing)


def place() -> Path:
    """The folder of temporary files, `/var/tmp` instead of a HIDDEN one."""
    found = Path(tempfile.gettempdir())
    return Path("/var/tmp") if any(found.is_relative_to(hidden) for hidden in HIDDEN) else found


def sweep(top: Path) -> None:
    """Remove the folders below `top` whose makers have ended."""
    try:
        left = [entry.path for entry in os.scandir(top) if entry.name.startswith(PREFIX)]
    except OSError:
        return
    for name in left:
        with contextlib.suppress(OSError):  # gone by now, another user's, or no folder
            lock = os.open(name, _FOLDER)
            try:
                if os.fstat(lock).st_uid == os.geteuid() and _taken(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    _remove(Path(name))
            finally:
                os.close(lock)


_sweep_once = functools.cache(sweep)


def _locked(top: Path, prefix: str) -> tuple[Path, int]:
    """A new folder and its lock. A sweep between the two steps removes the folder: then another one."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=top))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, _FOLDER)
            _taken(lock, fcntl.LOCK_EX)  # waits for a sweep at most
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), path.stat()):
                    return path, lock
            os.close(lock)


def _taken(lock: int, how: int) -> bool:
    """Whether the lock is ours now; on a file system without locks it never is, and nothing is swept."""
    try:
        fcntl.flock(lock, how)
    except OSError:
        return False
    return True


def _close(path: Path, lock: int) -> None:
    try:
        _remove(path)
    finally:
        os.close(lock)


def _remove(top: Path) -> None:
    """Remove a folder, however deep and whatever its modes; what cannot be removed stays."""
    disk = Disk()
    with contextlib.suppress(OSError), disk.folder(str(top.parent)) as at:
        disk.remove(top.name, at)
