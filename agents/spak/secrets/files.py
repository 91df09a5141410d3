"""Whether a file of a workspace holds a secret by what is in it (spak.secrets.contents), read once for as
long as it stays the same.

Takes where a file lies and its path from the workspace, whose name has to be one of text or data
(spak.secrets.which); gives True or False, False too for what cannot be read. No link is followed.
"""

from __future__ import annotations

import os
import stat
import time

from spak.secrets import contents, which

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SETTLED_NS = 100_000_000
_MOST = 100_000
"""Files that are remembered."""
_known: dict[tuple[int, ...], bool] = {}


def holds(path: str, filename: str, at: int | None = None) -> bool:
    """Whether the file does; `filename` is opened, relative to the folder `at`."""
    if not which.may_hold_at(path):
        return False
    try:
        info = os.stat(filename, dir_fd=at, follow_symlinks=False)
        mark = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        found = _known.get(mark)
        if found is None:
            found = stat.S_ISREG(info.st_mode) and _reads_secret(path, filename, at)
            if max(info.st_mtime_ns, info.st_ctime_ns) < time.time_ns() - _SETTLED_NS:
                if len(_known) >= _MOST:
                    _known.clear()
                _known[mark] = found
    except OSError:
        return False
    return found


def _reads_secret(path: str, filename: str, at: int | None) -> bool:
    fd = os.open(filename, _FLAGS, dir_fd=at)
    try:
        return bool(which.finds(path, os.read(fd, contents.MAX_BYTES)))
    finally:
        os.close(fd)
