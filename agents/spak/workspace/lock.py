"""The workspace lock: held by whoever may write in it, a sandboxed tool included.

A tool can outlive its runner. The lock's descriptor is therefore handed on to the tool on purpose, and the
lock is free only when the last process that holds it has ended; whoever comes next waits for that, up to a
deadline. It is given back by closing the descriptor, never by unlocking: that would free it for all holders.
The file is opened for reading only, so that a tool can do nothing to it.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from spak.errors import RunError

_POLL_S = 0.01


class WorkspaceLock:
    """The lock of one workspace, taken as often as you like by its owner: `with lock as fd`."""

    def __init__(self, path: Path, wait_s: float) -> None:
        self._path = path
        self._wait_s = wait_s
        self._fd = -1
        self._depth = 0

    def __enter__(self) -> int:
        """The inheritable descriptor. Raises: RunError `workspace.busy` after the deadline."""
        if self._depth == 0:
            self._fd = self._take()
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
        fd = os.open(self._path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._wait(fd)
            os.set_inheritable(fd, True)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _wait(self, fd: int) -> None:
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                left = deadline - time.monotonic()
            if left <= 0:
                raise RunError(
                    "workspace.busy",
                    f"something still works in this workspace ({self._path} is held)",
                    "a tool of an earlier run or another runner is still alive: wait for it, or end it",
                )
            time.sleep(min(_POLL_S, left))
