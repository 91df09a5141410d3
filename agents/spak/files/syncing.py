"""Syncing a whole file system: for many files at once, and for files that nobody has a list of.

Takes an open descriptor of anything on it; comes back when all that was written there is on the disk. Where
the system has no such call every file system is synced.
"""

from __future__ import annotations

import os


def sync_file_system(fd: int) -> None:
    """Sync the file system that the descriptor is on. Raises: OSError."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):
        os.sync()
    elif libc.syncfs(fd) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
