"""Files of a run are their owner's alone: folders 0700, files 0600, whatever the umask allows.

Takes paths; gives folders and open files. The workspace in a run's folder keeps the modes that tools give.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

FOLDER, FILE = 0o700, 0o600


def make_folder(path: Path, *, parents: bool = False) -> None:
    """Raises: OSError, FileExistsError when it exists. Parents that are made keep the usual mode."""
    path.mkdir(mode=FOLDER, parents=parents)


def open_file(path: Path, mode: str, **more: Any) -> IO[Any]:
    """`open` for writing. Raises: OSError."""
    return open(path, mode, opener=_opener, **more)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, FILE)
