"""Opening a file that somebody named: never a named pipe, a device or a socket, which could block for ever.

Takes a path; gives it open for reading. A descriptor of this process (`/dev/fd/63` of a shell's `<(...)`,
`/dev/stdin`) may be a pipe: its other end is open already. What the system refuses stays an OSError.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = ((stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISDIR, "a folder"))


def open_input(path: Path) -> BufferedReader:
    """The file, open for reading bytes. Raises: OSError, of what is no regular file EINVAL or EISDIR."""
    if _is_descriptor(path):
        fd = os.open(path, _FLAGS)
    else:
        _must_be_regular(path.stat(), path)  # not even opened: that alone can set off a device
        fd = os.open(path, _FLAGS | os.O_NONBLOCK)
    try:
        found = os.fstat(fd)
        if not _is_descriptor(path) or stat.S_ISDIR(found.st_mode):
            _must_be_regular(found, path)
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def read_at_most(path: Path, limit: int) -> bytes | None:
    """The bytes of the file, None where it has more than `limit`. Raises: OSError."""
    with open_input(path) as file:
        data = file.read(limit + 1)
    return data if len(data) <= limit else None


def read_text(path: Path, errors: str = "strict") -> str:
    """The whole file as UTF-8, with plain line ends. Raises: OSError, UnicodeDecodeError."""
    with open_input(path) as file:
        text = file.read().decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_descriptor(path: Path) -> bool:
    """Whether the path names an open descriptor of this process."""
    own = Path(f"/proc/{os.getpid()}/fd")
    for _ in range(4):  # /dev/stdin is a link to /proc/self/fd/0
        if path.parent.resolve() == own:
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return False


def _must_be_regular(found: os.stat_result, path: Path) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "a device")
    code = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
    raise OSError(code, f"{kind}, not a file", str(path))
