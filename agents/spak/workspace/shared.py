"""Files by which a folder reaches beyond itself: what a job writes into them is written elsewhere too.

Takes a folder that a run is to work in itself; refuses one that holds a file with a further name outside (a
hard link), a socket or a pipe. A rollback cannot undo what went through them. git's own folder is left out,
since no job writes it.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from pathlib import Path

from spak.errors import UsageError
from spak.paths import OURS
from spak.workspace.brought import GIT


def refuse_shared(folder: Path) -> None:
    """Raises: UsageError `workspace.shared_files`."""
    names: dict[tuple[int, int], tuple[str, int]] = {}
    found: Counter[tuple[int, int]] = Counter()
    todo = [""]
    while todo:
        top = todo.pop()
        try:
            entries = list(os.scandir(folder / top))
        except OSError:
            continue  # what cannot be read, a job of the same user cannot write
        for entry in entries:
            path = f"{top}{entry.name}"
            if path in (GIT, OURS):
                continue
            seen = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(seen.st_mode):
                todo.append(f"{path}/")
            elif stat.S_ISREG(seen.st_mode):
                if seen.st_nlink > 1:
                    names[seen.st_dev, seen.st_ino] = path, seen.st_nlink
                    found[seen.st_dev, seen.st_ino] += 1
            elif not stat.S_ISLNK(seen.st_mode):
                raise _shared(path, "is no file, but a socket, a pipe or a device of the host")
    for key, (path, count) in names.items():
        if found[key] < count:
            raise _shared(path, "has another name outside of the folder (a hard link)")


def _shared(path: str, why: str) -> UsageError:
    return UsageError(
        "workspace.shared_files",
        f"{path!r} {why}: what a tool writes there is written outside, and cannot be undone",
        "leave out --in-place: a copy holds no such file; or remove it",
    )
