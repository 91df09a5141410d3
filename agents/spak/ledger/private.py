"""Files of a run are their owner's alone: folders 0700, files 0600, whatever the umask allows.

Takes paths; gives folders and open files. The workspace in a run's folder keeps the modes that tools give. A
folder called `.spak`, where runs and the platform's data are kept unless somebody names another place, is
its owner's alone too; a folder that somebody named keeps its mode.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

FOLDER, FILE = 0o700, 0o600
STATE = ".spak"


def make_folder(path: Path) -> None:
    """Its parents too where they are missing. Raises: OSError, FileExistsError when it exists."""
    keep_folder(path.parent)
    path.mkdir(mode=FOLDER)


def keep_folder(path: Path) -> None:
    """Make it and its parents where they are missing, and close what an older version left open (`close`).

    Raises: OSError.
    """
    close(path)
    for folder in reversed((path, *path.parents)):
        if not folder.exists():
            with suppress(FileExistsError):
                folder.mkdir(mode=FOLDER)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def close(path: Path) -> None:
    """Take from others what they may do in the `.spak` that the path is in, and in the folders on the way.
    What is somebody else's, or a link, stays as it is."""
    if STATE not in path.parts:
        return
    for folder in (path, *path.parents):
        with suppress(OSError):
            found = folder.lstat().st_mode
            if stat.S_ISDIR(found) and found & 0o077:
                folder.chmod(stat.S_IMODE(found) & FOLDER)
        if folder.name == STATE:
            return


def open_file(path: Path, mode: str, **more: Any) -> IO[Any]:
    """`open` for writing. Raises: OSError."""
    return open(path, mode, opener=_opener, **more)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, FILE)
