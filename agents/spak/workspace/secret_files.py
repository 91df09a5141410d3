"""Files of secrets below a folder, by their names and contents: for callers without a scan of it.

Takes a folder; gives the paths of regular files that `spak.secrets.which` calls secret, or that hold one
(`spak.secrets.files`), relative to it. No link is followed; a folder that cannot be read holds none that
anybody could read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from spak.errors import UserError
from spak.files import beneath
from spak.secrets import which
from spak.secrets.files import holds
from spak.workspace.store import CHUNK, name

MOST = 400_000
"""Names that are looked at."""


def walk(root: Path, skip: Collection[str] = (), top: str = "") -> tuple[str, ...]:
    """The paths, in no order; `skip` are names at the top, `top` the only folder of the root to look in."""
    left = [MOST]
    return tuple(_below(str(root / top), f"{top}/" if top else "", False, False, skip, left))


def _below(
    folder: str, path: str, secret: bool, kept: bool, skip: Collection[str], left: list[int]
) -> Iterator[str]:
    """`secret`: all files are; `kept`: all but code (which.keeps_secrets)."""
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return
    left[0] -= len(found)
    if left[0] < 0:
        return
    here = path[:-1].rpartition("/")[2]
    for entry in found:
        name = entry.name
        if name in skip or entry.is_symlink():
            continue
        if entry.is_dir(follow_symlinks=False):
            if path or not which.of_git(name):  # one further down may be any folder that is called so
                inner = secret or which.secret_folder(name)
                held = kept or which.keeps_secrets(name)
                yield from _below(entry.path, f"{path}{name}/", inner, held, (), left)
        elif (
            secret
            or which.secret_name(name)
            or which.secret_below(here, name)
            or (kept and not which.is_code(name))
            or holds(path + name, entry.path)
        ) and entry.is_file(follow_symlinks=False):
            yield path + name


Mark = tuple[int, int, int]
"""Which file it is: device, inode, and when it was last written, so that another that gets its inode is none.
To rename a folder above it changes none of these."""


def mark(root: Path, path: str) -> Mark | None:
    """Which file lies there; None where none does."""
    try:
        info = (root / path).lstat()
    except OSError:
        return None
    return info.st_dev, info.st_ino, info.st_mtime_ns


def other_names(root: Path, paths: Collection[str]) -> tuple[str, ...]:
    """The further names below the folder of files that have several (hard links): one file, one secret."""
    wanted = set()
    for path in paths:
        try:
            info = (root / path).lstat()
        except OSError:
            continue
        if info.st_nlink > 1:
            wanted.add((info.st_dev, info.st_ino, info.st_mtime_ns))
    return tuple(sorted(set(called(root, wanted)) - set(paths)))


def called(root: Path, wanted: Collection[Mark]) -> dict[str, Mark]:
    """The paths below the folder at which these files lie."""
    found: dict[str, Mark] = {}
    for path in _files(root) if wanted else ():
        held = mark(root, path)
        if held is not None and held in wanted:
            found[path] = held
    return found


def content(root: Path, path: str) -> tuple[str, int] | None:
    """The digest of what a file holds, and how many bytes; None where it cannot be read."""
    hashing = hashlib.sha256()
    size = 0
    try:
        fd, _ = beneath.open_beneath(root, path)
        with os.fdopen(fd, "rb") as file:
            while chunk := file.read(CHUNK):
                hashing.update(chunk)
                size += len(chunk)
    except (UserError, OSError):
        return None
    return name(hashing), size


def lying(root: Path, wanted: Mapping[str, int], skip: Collection[str] = ()) -> tuple[str, ...]:
    """The paths at which one of these contents lies, by digest and bytes; `skip` are names at the top."""
    sizes = set(wanted.values())
    found = []
    for path in _files(root, skip) if wanted else ():
        try:
            info = (root / path).lstat()
        except OSError:
            continue
        if stat.S_ISREG(info.st_mode) and info.st_size in sizes:
            held = content(root, path)
            if held is not None and held[0] in wanted:
                found.append(path)
    return tuple(found)


def _files(root: Path, skip: Collection[str] = ()) -> Iterator[str]:
    """All paths below the folder that lead to no folder, but for git's at the top."""
    left = MOST
    for folder, folders, files in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name not in skip and not which.of_git(name)]
        left -= len(files)
        if left < 0:
            break
        for filename in files:
            yield os.path.relpath(os.path.join(folder, filename), root)  # noqa: PTH118 - many
