"""One thread at a time: the lock of what runs of one process share.

The pure core keeps values between decisions (sessions of the engine, proofs), and a worker decides for many
runs in threads of its own. Whoever changes such a value holds a lock of its own made here, so that what a
decision says depends on its facts alone. Takes and gives no data; it waits for other threads, and for nothing
outside the process.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from threading import RLock


def lock() -> AbstractContextManager[bool]:
    """A lock for a `with`; the thread that holds it may take it again."""
    return RLock()
