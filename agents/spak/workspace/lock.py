"""The workspace lock: held by whoever may write in it, a sandboxed tool included.

A tool can outlive its runner. The lock's descriptor is therefore handed on to the tool on purpose, and the
lock is free only when the last process that holds it has ended; whoever comes next waits for that, up to a
deadline, after which the error names the processes that hold it. It is given back by closing the descriptor,
never by unlocking: that would free it for all holders. The file is empty and means nothing, since its
descriptor leaves this process.

A runner can also outlive its lease: it was stopped while another one took the run. A second file, of which
no descriptor is handed on, holds the highest fence (the number of a lease) that ever took the lock. Whoever
comes with a lower one is refused, whoever comes with a higher one writes it down: from then on the runner
before can do nothing here. That of the first lease is not synced: there is no runner before it.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from spak.cancel import Cancel, check
from spak.errors import LedgerError, RunError

FIRST = 1
"""The fence of the first lease of a run."""
_POLL_S = 0.01
NAMED = 3
"""Holders that an error names."""
_WIDTH = 20
"""Digits of a fence: each is written over the one before in one piece."""


class WorkspaceLock:
    """The lock of one workspace, taken as often as you like by its owner: `with lock as fd`. It lies in the
    folder given."""

    def __init__(self, folder: Path, wait_s: float) -> None:
        self._file, self._fence_file = str(folder / "lock"), str(folder / "fence")
        self._wait_s = wait_s
        self.fence = 0
        """That of the lease under which its owner works; 0 where there are none."""
        self._fd = self._fence_fd = -1
        """The lock while it is held, and the file of fences once it was read."""
        self._depth = 0
        self.cancel: Cancel | None = None
        """What breaks off the next wait for it."""

    def __enter__(self) -> int:
        """The inheritable descriptor.

        Raises: RunError `workspace.busy` after the deadline, LedgerError `ledger.lost_lease`; Cancelled.
        """
        if self._depth == 0:
            try:
                self._fd = self._take()
            finally:
                self.cancel = None
        self._depth += 1
        return self._fd

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self) -> int:
        fd = os.open(self._file, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o400)
        try:
            self._wait(fd)
            self._check()
            os.set_inheritable(fd, True)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _check(self) -> None:
        """Compare fences, and write ours down if it is the highest so far. The lock is held."""
        known = self._known()
        if known > self.fence:
            raise LedgerError(
                "ledger.lost_lease",
                f"another runner has taken over this workspace ({self._fence_file} has {known})",
                "nothing was written since; the other process continues the run",
            )
        if known < self.fence:
            own = os.open(self._fence_file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(own, b"%0*d\n" % (_WIDTH, self.fence), 0)
                if self.fence > FIRST:
                    os.fsync(own)
            finally:
                os.close(own)

    def _known(self) -> int:
        """The highest fence so far; 0 where there was no lease. The file is written in place, so that it is
        opened once."""
        if self._fence_fd < 0:
            try:
                self._fence_fd = os.open(self._fence_file, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return 0
        digits = os.pread(self._fence_fd, _WIDTH, 0)
        return int(digits) if digits.isdigit() else 0

    def __del__(self) -> None:
        if self._fence_fd >= 0:
            os.close(self._fence_fd)

    def _wait(self, fd: int) -> None:
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                left = deadline - time.monotonic()
            check(self.cancel)
            if left <= 0:
                raise _busy(self._file, fd, self._wait_s)
            time.sleep(min(_POLL_S, left))


def holders(file: str, own: int) -> list[str]:
    """The processes that have the lock's file open, `PID (name)`; `own` is the descriptor that asks.

    Those of other users are not seen, and on a system without /proc nobody is.
    """
    wanted, found = os.fstat(own), []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            open_here = [entry for entry in (process / "fd").iterdir() if _is(entry, wanted)]
            if process.name == str(os.getpid()):
                open_here = [entry for entry in open_here if entry.name != str(own)]
            if open_here:
                found.append(f"{process.name} ({(process / 'comm').read_text().strip()})")
    return sorted(found)


def _is(entry: Path, wanted: os.stat_result) -> bool:
    try:
        seen = entry.stat()
    except OSError:
        return False
    return (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino)


def _busy(file: str, fd: int, wait_s: float) -> RunError:
    found = holders(file, fd)
    by = f"process {', '.join(found[:NAMED])}" if found else "another process"
    return RunError(
        "workspace.busy",
        f"{by} still works in this workspace after {wait_s:g} s ({file} is held)",
        "a tool of an earlier run or another runner is still alive: wait for it, or end it; "
        "`wait_s` in [workspace] says how long a run waits",
    )
