"""Reaping what bwrap leaves: the first process of a sandbox outlives its parent by a moment.

bwrap's monitor ends when the job does, before the process that it watches; the kernel then gives that one to
init. Not every container's init reaps, and one that is slow leaves dead processes that still count against
the process limit of their user. So while a sandbox lives, this process adopts its orphaned descendants, and
reaps the one that it knows by id. Others' orphans are left alone.
"""

from __future__ import annotations

import os
import resource
import threading

_PR_SET_CHILD_SUBREAPER = 36

_guard = threading.Lock()
_users = 0


def adopt() -> None:
    """Adopt from now on, until as many calls of `release`."""
    _change(1)


def release() -> None:
    """Adopt orphans no longer, once for each `adopt`."""
    _change(-1)


def reap(pid: int) -> resource.struct_rusage | None:
    """Wait for an orphan that has ended; what it and its children used, None when its parent reaped it."""
    try:
        return os.wait4(pid, 0)[2]
    except ChildProcessError:
        return None


def _change(step: int) -> None:
    import ctypes

    global _users
    with _guard:
        before, _users = _users, _users + step
        if (before == 0) != (_users == 0):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(_users > 0), 0, 0, 0)
