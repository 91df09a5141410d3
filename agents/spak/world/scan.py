"""The source files below a folder, and what can be said of each before it is parsed.

Takes a folder; gives each source file with its stamp (size, times, inode), and on request its bytes or the
reason why it is known by its name alone. No link is followed; what is hidden, made by programs, or an
environment of installed packages is not entered.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spak.cancel import Cancel, check
from spak.errors import UsageError
from spak.files import beneath
from spak.files.walk import walk
from spak.world.languages import indexed_as

MAX_FILES = 50_000
MAX_FILE_BYTES = 2 << 20
MAX_LINE = 50_000
MAX_DEPTH = 64
UNREAD = frozenset({"large", "binary", "encoding", "minified", "denied", "gone"})
"""Reasons of a file that may be code of the tree like any other, and whose facts are not known."""
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
_VENDORED = frozenset({"vendor", "vendored", "_vendor", "third_party", "third-party"})
_GENERATED = re.compile(rb"@generated\b|code generated .{0,100}do not edit", re.I)

Stamp = tuple[int, int, int, int]
"""Size, modification and change time in nanoseconds, inode."""


@dataclass(frozen=True, slots=True)
class Found:
    """One source file of the tree."""

    path: str
    language: str
    stamp: Stamp


def files(root: Path, cancel: Cancel | None = None) -> Iterator[Found]:
    """The source files below the folder, in order. Raises: UsageError `world.too_large`,
    `world.unreadable`; Cancelled."""
    count = 0
    try:
        for entry in walk(root, ".", MAX_DEPTH + 1, lambda folder: skipped(root, folder)):
            if entry.kind != "file":
                if entry.trouble:
                    raise unreadable(entry.trouble)
                if (
                    entry.kind == "folder"
                    and entry.path.count("/") >= MAX_DEPTH
                    and not skipped(root, entry.path)
                ):
                    raise _too_large(f"folders {MAX_DEPTH} deep")
                continue
            language = indexed_as(entry.name)
            if not language:
                continue
            count += 1
            if count > MAX_FILES:
                raise _too_large(f"more than {MAX_FILES} source files")
            if not count % 256:
                check(cancel)
            status = os.stat(entry.name, dir_fd=entry.fd, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                path = entry.path.encode("utf-8", "backslashreplace").decode()
                if path == entry.path:
                    yield Found(
                        path,
                        language,
                        (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino),
                    )
    except OSError as error:
        raise unreadable(str(error.strerror)) from error


def read(root: Path, found: Found) -> tuple[bytes, str]:
    """The bytes of a file, and why it is not parsed, if it is not; `gone` where it is no longer there."""
    if found.stamp[0] > MAX_FILE_BYTES:
        return b"", "large"
    try:
        data = beneath.read_beneath(root, found.path, MAX_FILE_BYTES)
    except UsageError as error:
        return b"", {"path.too_large": "large", "path.denied": "denied"}.get(error.code, "gone")
    return data, _reason(found.path, data)


def _reason(path: str, data: bytes) -> str:
    if not _VENDORED.isdisjoint(path.split("/")[:-1]):
        return "vendored"
    if b"\0" in data:
        return "binary"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "encoding"
    if _GENERATED.search(data[:1500]):
        return "generated"
    if len(data) > MAX_LINE and max(map(len, data.split(b"\n"))) > MAX_LINE:
        return "minified"
    return ""


def is_test(path: str) -> bool:
    """Whether a file is one of tests, by its name or a folder's."""
    *folders, name = path.split("/")
    stem, _, rest = name.partition(".")
    return (
        not {"test", "tests", "__tests__"}.isdisjoint(folders)
        or stem.startswith("test_")
        or stem.endswith("_test")
        or name == "conftest.py"
        or rest.startswith(("test.", "spec."))
    )


def unreadable(why: str) -> UsageError:
    """The error for a workspace that cannot be read whole."""
    return UsageError(
        "world.unreadable", f"a part of the folder cannot be read: {why}", "fix its permissions"
    )


def skipped(root: Path, folder: str) -> bool:
    """Whether a folder is not entered: hidden, made by programs, or packages that are installed."""
    name = folder.rpartition("/")[2]
    return name.startswith(".") or name in _SKIPPED or (root / folder / "pyvenv.cfg").exists()


def _too_large(what: str) -> UsageError:
    return UsageError("world.too_large", f"the folder has {what}", "index a smaller folder")
