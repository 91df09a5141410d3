"""What is in a folder, to compare: kinds, rights, contents and targets of links, by path.

Takes a folder that others write; gives a mapping. It follows no link, opens nothing but plain files, and
reads no more than a test could have made.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

MOST = 5_000
MOST_BYTES = 8 << 20
MOST_DEPTH = 200
"""Entries, bytes in all files together, and folders in each other, that are looked at."""
OWN = ".git"
"""A folder at the top that a runtime may have for itself."""
Tree = Mapping[str, tuple[str, int, bytes]]
"""By path: `d`, `f`, `l` or `?`, the rights, the content or the target of the link."""


class TooLarge(Exception):
    """More than a test could have made."""


def read(top: Path) -> Tree:
    """The tree of a folder; of one that does not exist an empty one. Raises: TooLarge, OSError."""
    found: dict[str, tuple[str, int, bytes]] = {}
    size = 0
    for folder, names, files in os.walk(top):
        if len(Path(folder).parts) - len(top.parts) > MOST_DEPTH:
            raise TooLarge(f"folders more than {MOST_DEPTH} deep")
        if Path(folder) == top and OWN in names:
            names.remove(OWN)
        for name in (*names, *files):
            path = Path(folder, name)
            if len(found) >= MOST:
                raise TooLarge(f"more than {MOST} files")
            found[str(path.relative_to(top))] = entry = _entry(path)
            size += len(entry[2])
            if size > MOST_BYTES:
                raise TooLarge(f"more than {MOST_BYTES} bytes")
    return found


def texts(tree: Tree) -> dict[str, str]:
    """The plain files of a tree, as texts."""
    return {path: data.decode("utf-8", "replace") for path, (kind, _, data) in tree.items() if kind == "f"}


def difference(before: Tree, after: Tree) -> str:
    """The first path that differs, and how; empty where none does."""
    for path in sorted({*before, *after}):
        if path not in after:
            return f"{path} is gone"
        if path not in before:
            return f"{path} is new"
        if before[path] != after[path]:
            part = next(i for i in range(3) if before[path][i] != after[path][i])
            return f"{path} has {('another kind', 'other rights', 'another content')[part]}"
    return ""


def _entry(path: Path) -> tuple[str, int, bytes]:
    found = path.lstat()
    rights = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return "l", 0, os.fsencode(path.readlink())
    if stat.S_ISDIR(found.st_mode):
        return "d", rights, b""
    if not stat.S_ISREG(found.st_mode):
        return "?", rights, b""
    if found.st_size > MOST_BYTES:
        raise TooLarge(f"{path.name} has more than {MOST_BYTES} bytes")
    return "f", rights, path.read_bytes()
