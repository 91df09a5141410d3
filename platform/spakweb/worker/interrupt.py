"""Breaking off a thread of this process that advances a run. It knows no run."""

from __future__ import annotations

import ctypes
import threading
import time

from spak.runner.perform import Interrupted

START_S = 0.5
"""How long a thread may take to come up."""


def interrupt(thread: int) -> None:
    """Raise Interrupted in that thread, wherever it is.

    A thread that is just being started bears the number of the one that starts it, and would be hit in its
    place (it would never come up, and its starter wait for it for ever): not while there is such a one.
    """
    ends = time.monotonic() + START_S
    while True:
        with threading._active_limbo_lock:  # type: ignore[attr-defined]
            if not threading._limbo or time.monotonic() > ends:  # type: ignore[attr-defined]
                hit = ctypes.c_ulong(thread), ctypes.py_object(Interrupted)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(*hit)
                return
        time.sleep(0.001)
