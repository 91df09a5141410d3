"""Objects of a workspace: file contents, link targets and folder lists under their SHA-256.

    <store>/<digest>      whole and durable, or not there
    <store>/aside/        written in this session and not yet synced
    <store>/pending       the write-ahead file (`spak.workspace.wal`)
    <store>/lock          the workspace lock

Takes bytes or an open file; gives them back, verified. An object gets its name in `sync`, after its fsync, so
that a loss of power cannot leave a name without its content; until then it is read from `aside`. The folder
is flat: one fsync of it makes all new names durable.
"""

from __future__ import annotations

import hashlib
import os
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from spak import canon
from spak.errors import RunError
from spak.workspace.disk import Disk

CHUNK = 1 << 20


class Store:
    def __init__(self, folder: Path, disk: Disk) -> None:
        self.folder = folder
        self._aside = folder / "aside"
        self._disk = disk
        self.sources: tuple[Path, ...] = ()
        """Other stores to read from: those of a run that this one was forked from."""
        self._new: dict[str, None] = {}
        self._known: set[str] = set()

    def prepare(self) -> None:
        """Make the folders."""
        self._aside.mkdir(parents=True, exist_ok=True)

    def has(self, digest: str) -> bool:
        if digest in self._known or digest in self._new:
            return True
        if not (self.folder / digest).exists():
            return False
        self._known.add(digest)
        return True

    def put(self, digest: str, data: bytes) -> None:
        """Keep bytes whose digest is known already."""
        if not self.has(digest):
            self._write(digest, iter((data,)))

    def put_file(self, digest: str, fd: int) -> bool:
        """Keep the content of an open file; False when it is not what `digest` says (any more)."""
        if self.has(digest):
            return True
        hashing = hashlib.sha256()

        def chunks() -> Iterator[bytes]:
            os.lseek(fd, 0, os.SEEK_SET)
            while chunk := os.read(fd, CHUNK):
                hashing.update(chunk)
                yield chunk

        self._write(digest, chunks())
        if name(hashing) == digest:
            return True
        self._forget(digest)
        return False

    def read(self, digest: str) -> bytes:
        """A small object. Raises: RunError `workspace.object`."""
        with self._open(digest) as file:
            data = file.read()
        if canon.digest(data) != digest:
            raise _damaged(digest)
        return data

    def copy_to(self, digest: str, fd: int) -> None:
        """Write an object to an open file. Raises: RunError `workspace.object`; it may be half written."""
        hashing = hashlib.sha256()
        with self._open(digest) as file:
            while chunk := file.read(CHUNK):
                hashing.update(chunk)
                self._disk.write(fd, chunk)
        if name(hashing) != digest:
            raise _damaged(digest)

    def sync(self, at: int) -> None:
        """Give all new objects their durable names; `at` is the store's open folder, synced by the caller."""
        if not self._new:
            return
        new = list(self._new)
        self._disk.sync_all(self._opened(new), len(new), at)
        for digest in new:
            self._disk.rename(f"aside/{digest}", digest, at)
            self._known.add(digest)
            del self._new[digest]

    def retain(self, digests: set[str]) -> None:
        """Remember only these as known; the rest costs one look again."""
        self._known &= digests

    def sweep(self) -> None:
        """Drop what an earlier session left aside."""
        for path in self._aside.iterdir():
            if path.name not in self._new:
                path.unlink()

    def _write(self, digest: str, chunks: Iterator[bytes]) -> None:
        with (self._aside / digest).open("wb", buffering=0) as file:
            for chunk in chunks:
                self._disk.write(file.fileno(), chunk)
        self._new[digest] = None

    def _forget(self, digest: str) -> None:
        (self._aside / digest).unlink(missing_ok=True)
        self._new.pop(digest, None)

    def _opened(self, digests: list[str]) -> Iterator[int]:
        for digest in digests:
            with (self._aside / digest).open("rb", buffering=0) as file:
                yield file.fileno()

    def _open(self, digest: str) -> FileIO:
        for folder in (self.folder, self._aside, *self.sources):
            try:
                return FileIO(folder / digest)
            except FileNotFoundError:
                continue
        raise RunError(
            "workspace.object",
            f"the stored files lack {digest}",
            "put the run's store folder back from a copy, or name that of the run it was forked from",
        )


def name(hashing: hashlib._Hash) -> str:
    return urlsafe_b64encode(hashing.digest())[:43].decode()


def _damaged(digest: str) -> RunError:
    return RunError(
        "workspace.object",
        f"the stored file {digest} is not what its name says",
        "restore the run's store folder from a copy; the file in the workspace was left as it is",
    )
