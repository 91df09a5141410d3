"""How much a job writes, watched while it runs: bytes and files of its workspace.

Takes the workspace and its quota; `over` says why the job has to end. A look costs one system call: as long
as the file system has not lost what the quota still allows, nothing else is looked at. Then everything in the
workspace is counted, and what the job's processes hold open without a name; others may have written instead.
Others may also have removed something meanwhile: so it is counted every few seconds too.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from spak.ports import Quota

_BLOCK = 512
_REST = 10
"""Counting takes at most one part in so many of the time, and where nothing points to it a third of that."""
_EVERY_S = 2.0


class DiskWatch:
    """The watch over one job; `pids` gives its processes."""

    def __init__(self, workspace: Path, quota: Quota, pids: Callable[[], Iterable[int]] = tuple) -> None:
        self._workspace, self._quota, self._pids = str(workspace), quota, pids
        self._room = quota.size_bytes - quota.held_bytes, quota.entries - quota.held_entries
        self._free = self._left()
        self._rests, self._due = 0.0, time.monotonic() + _EVERY_S
        """Until when nothing is counted, and from when on it is counted in any case."""

    def over(self) -> str:
        """Why the job has to end; empty as long as it keeps its quota."""
        free = self._left()
        gone = [before - now for before, now in zip(self._free, free, strict=True)]
        calm = all(lost < room for lost, room in zip(gone, self._room, strict=True))
        began = time.monotonic()
        if began < (self._due if calm else self._rests):
            return ""
        size_bytes, entries = self._held()
        if size_bytes > self._quota.size_bytes:
            return f"more than {self._quota.size_bytes >> 20} MiB in the workspace"
        if entries > self._quota.entries:
            return f"more than {self._quota.entries} files and folders in the workspace"
        self._room = self._quota.size_bytes - size_bytes, self._quota.entries - entries
        self._free = free
        now = time.monotonic()
        self._rests = now + _REST * (now - began)
        self._due = now + max(_EVERY_S, 3 * _REST * (now - began))
        return ""

    def _left(self) -> tuple[int, int]:
        found = os.statvfs(self._workspace)
        return found.f_bfree * found.f_frsize, found.f_ffree

    def _held(self) -> tuple[int, int]:
        """Bytes on disk and files of the workspace, and of what is open and has no name any more."""
        size_bytes = entries = 0
        todo = [self._workspace]
        while todo:
            with suppress(OSError), os.scandir(todo.pop()) as found:  # it went away, or the job closed it
                for entry in found:
                    with suppress(OSError):
                        seen = entry.stat(follow_symlinks=False)
                        entries += 1
                        size_bytes += seen.st_blocks * _BLOCK
                        if stat.S_ISDIR(seen.st_mode):
                            todo.append(entry.path)
        unnamed = dict(self._unnamed())
        return size_bytes + sum(unnamed.values()), entries + len(unnamed)

    def _unnamed(self) -> Iterator[tuple[int, int]]:
        """Inode and bytes of files that processes of the job hold open and that have no name any more."""
        device = Path(self._workspace).stat().st_dev
        for pid in self._pids():
            with suppress(OSError):
                for held in Path(f"/proc/{pid}/fd").iterdir():
                    with suppress(OSError):
                        seen = held.stat()
                        if stat.S_ISREG(seen.st_mode) and not seen.st_nlink and seen.st_dev == device:
                            yield seen.st_ino, seen.st_blocks * _BLOCK
