"""A file's new bytes in the place of its old ones: all or nothing, and never over somebody else's change.

`rewrite(file, old, new)` writes aside, flushes and renames, while the file is locked against another `spak`
that does the same. Mode, owner, attributes and a link that leads to the file stay; the time is new.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from spak.errors import UsageError


def rewrite(file: Path, old: bytes, new: bytes) -> None:
    """Put `new` where `old` was read. Raises: UsageError `usage.file`, `usage.changed`; OSError."""
    whole = file.resolve()
    if not os.access(whole, os.W_OK):
        raise UsageError("usage.file", f"{file}: read-only", "make it writable: chmod u+w")
    if whole.stat().st_nlink > 1:
        hint = f"cp {file} aside and back parts them; without writing, the text goes to standard output"
        raise UsageError(
            "usage.file", f"{file} has other names (hard links) that would keep the old text", hint
        )
    handle, aside = tempfile.mkstemp(dir=whole.parent, prefix=".spak-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(new)
            out.flush()
            os.fsync(out.fileno())
        with whole.open("rb") as now:
            _lock(now.fileno(), file)
            found = os.fstat(now.fileno())
            if now.read(len(old) + 1) != old or not os.path.samestat(found, whole.stat()):
                raise _changed(f"{file} was changed meanwhile: it is left as it is now", file)
            made = Path(aside).stat()
            if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
                os.chown(aside, found.st_uid, found.st_gid)
            shutil.copystat(whole, aside)
            os.utime(aside)
            Path(aside).replace(whole)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _lock(handle: int, file: Path) -> None:
    """Without waiting: whoever holds it writes something else."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _changed(f"{file} is being written by somebody else", file) from error


def _changed(message: str, file: Path) -> UsageError:
    return UsageError("usage.changed", message, "run the command again")
