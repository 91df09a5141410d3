"""What a folder holds, seen by an eye other than the workspace's; and trees to begin with."""

from __future__ import annotations

import os
import stat
from pathlib import Path

Print = dict[bytes, tuple[object, ...]]


def fingerprint(folder: Path) -> Print:
    """Every path below the folder with kind, permission bits and bytes."""
    return {path: seen[:3] for path, seen in identities(folder).items()}


def identities(folder: Path) -> Print:
    """As `fingerprint`, with inode and mtime."""
    found: Print = {}
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(place, name)
            seen = path.lstat()
            content: object = b""
            if stat.S_ISLNK(seen.st_mode):
                content = os.fsencode(path.readlink())
            elif stat.S_ISREG(seen.st_mode):
                content = path.read_bytes()
            kind, mode = stat.S_IFMT(seen.st_mode), stat.S_IMODE(seen.st_mode)
            within = os.fsencode(path.relative_to(folder))
            found[within] = (kind, mode, content, seen.st_ino, seen.st_mtime_ns)
    return found


def changed(before: Print, after: Print) -> set[bytes]:
    """Paths that are not the same in both."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def plant(folder: Path) -> None:
    """A small tree with one of everything that a workspace keeps."""
    (folder / "src" / "deep" / "er").mkdir(parents=True)
    (folder / "src" / "a.c").write_bytes(b"int a;\n")
    (folder / "src" / "b.c").write_bytes(b"int b;\n")
    (folder / "src" / "deep" / "er" / "c.c").write_bytes(b"int c;\n")
    (folder / "empty").mkdir()
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "private").write_bytes(b"secret")
    (folder / "private").chmod(0o600)
    (folder / "link").symlink_to("src/a.c")
    (folder / "dangling").symlink_to("nowhere/at/all")
    (folder / "outward").symlink_to("../outside")
    (folder / "big").write_bytes(bytes(range(256)) * 8192)
    Path(os.fsdecode(os.fsencode(folder) + b"/new\nline \xff")).write_bytes(b"odd name")


def vandalise(folder: Path) -> None:
    """Change one of everything; leave src/b.c, private, big, outward and src/deep alone."""
    (folder / "src" / "a.c").write_bytes(b"spoiled, and longer")
    (folder / "run.sh").chmod(0o600)
    (folder / "link").unlink()
    (folder / "link").mkdir()
    (folder / "link" / "inner").write_bytes(b"was a link")
    (folder / "dangling").unlink()
    (folder / "dangling").write_bytes(b"was a link")
    (folder / "empty").rmdir()
    (folder / "empty").symlink_to("../outside")
    (folder / "made" / "more").mkdir(parents=True)
    (folder / "made" / "more" / "file").write_bytes(b"new")
    (folder / "made").chmod(0o555)
    odd = next(path for path in folder.iterdir() if "\n" in path.name)
    odd.rename(folder / "renamed")


def remove(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove(path)
        else:
            path.unlink()
    folder.rmdir()
