"""Which contents were found in files of secrets: a list in the workspace's store, so that whoever works there
later knows them again, wherever they lie by then.

    <store>/secrets   one line of JSON for each content: [path, SHA-256, bytes], the earliest first

Takes the path of that file; gives its lines and adds to them. The path is where the content was first seen.
It takes no lock: whoever adds holds that of the workspace, which also compares leases. A last line that a
loss of power cut is left out; any other line that does not read is damage.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from spak.errors import RunError
from spak.files.disk import Disk

NAME = "secrets"
MOST = 5_000
"""Contents that are followed: the newest, where there were more."""


class Content(NamedTuple):
    """What a file of secrets held."""

    path: str
    digest: str
    size: int


class SecretList:
    """The list of one workspace."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self._path = folder / NAME
        self._disk = disk

    def read(self) -> tuple[Content, ...] | None:
        """What is in it; None where there is no list yet. Raises: RunError `workspace.object`, OSError."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        lines = data.split(b"\n")[:-1]
        return tuple(self._line(line) for line in lines if line)[-MOST:]

    def add(self, contents: Iterable[Content]) -> None:
        """Write them down, and have them on the disk. Raises: OSError; then they may be there or not."""
        lines = b"".join(json.dumps(item).encode() + b"\n" for item in contents)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self._path, flags, 0o600)
        try:
            end = os.fstat(fd).st_size
            if end and os.pread(fd, 1, end - 1) != b"\n":
                os.ftruncate(fd, os.pread(fd, end, 0).rfind(b"\n") + 1)  # it was never finished
            if lines:
                self._disk.write(fd, lines)
                self._disk.fsync(fd)
        finally:
            os.close(fd)

    def _line(self, line: bytes) -> Content:
        try:
            match json.loads(line):
                case [str(path), str(digest), int(size)]:
                    return Content(path, digest, size)
        except ValueError:
            pass
        raise RunError(
            "workspace.object",
            f"{self._path} is damaged: it lists what was in files of secrets",
            "restore the run's store folder from a copy; nothing was changed",
        )
