"""The lease of a run: at most one writer, by an advisory lock that dies with its holder.

Takes the path of a lock file and a time to wait; gives the held lease. The lock belongs to the open file, so
that a second open in the same process is refused too; it is close-on-exec, so that no child keeps it. The
file holds its holder's process id for the message only and is never removed, since whoever waits for it
would then hold a lock on nothing.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from spak.errors import LedgerError
from spak.ledger.faults import typed
from spak.ledger.private import FILE

_POLL_S = 0.02


class Lease:
    """A held lock file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, path: Path, run: str, wait_s: float = 0.0) -> Lease:
        """The lease of `run`, waited for at most `wait_s` seconds.

        Raises: LedgerError `ledger.busy` when another holds it until then, `ledger.readonly`, `ledger.full`.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE)
        except OSError as error:
            raise typed(error, "taking the lease", path) from error
        try:
            _wait(fd, path, run, time.monotonic() + wait_s)
        except BaseException:
            os.close(fd)
            raise
        _sign(fd)
        return cls(fd)

    def release(self) -> None:
        """Give it back; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _wait(fd: int, path: Path, run: str, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            left = deadline - time.monotonic()
        except OSError as error:
            raise typed(error, "taking the lease", path) from error
        if left <= 0:
            raise LedgerError(
                "ledger.busy",
                f"run {run} is held by {_holder(fd)}",
                "wait until it ends or stops, or end that process; its lease goes with it",
            )
        time.sleep(min(_POLL_S, left))


def _holder(fd: int) -> str:
    text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    return f"process {text}" if text.isdigit() else "another process"


def _sign(fd: int) -> None:
    """Leave our process id for whoever is refused; a full disk must not cost us the lease."""
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        pass
