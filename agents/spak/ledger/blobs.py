"""Blobs in a folder: bytes under their SHA-256, fanned out by the first two characters.

Takes bytes; gives their digest, and the bytes back, verified. A blob is written aside and renamed at once, so
that it is whole or not there when a process dies; `flush` makes all put since the last one survive a loss of
power too, the first one also what a writer before has put and not synced. Opaque to the kernel; it deletes
nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from spak import canon
from spak.errors import LedgerError
from spak.files.syncing import sync_file_system
from spak.ledger.faults import typed
from spak.ledger.private import open_file

_DIGEST = re.compile(r"[A-Za-z0-9_-]{43}")


class FileBlobs:
    """The blobs of one run folder."""

    def __init__(
        self, folder: Path, *, writable: bool = True, digest: Callable[[bytes], str] = canon.digest
    ) -> None:
        self.folder = folder
        self._digest = digest
        self.fsyncs = 0
        self._writable = writable
        self._unsynced: dict[Path, None] = {}
        self._inherited = writable and folder.is_dir() and any(folder.iterdir())
        """There are blobs of a writer before, who may have died before it synced them."""
        self._failed = False

    def put(self, data: bytes) -> str:
        """Keep the bytes; the same bytes twice are kept once.

        Raises: LedgerError `ledger.full`, `ledger.io`, `ledger.readonly`, `ledger.no_lease`,
        `ledger.collision`.
        """
        if not self._writable:
            raise no_lease()
        digest = self._digest(data)
        path = self._path(digest)
        if not self._holds(path, data):
            self._must_differ(path, digest)
            self._write(path, data)
            self._unsynced[path] = None
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes. Raises: LedgerError `ledger.blob` when they are missing or do not match their name."""
        if not _DIGEST.fullmatch(digest):
            raise LedgerError("ledger.blob", f"not the name of a blob: {digest!r}", _MEND)
        try:
            data = self._path(digest).read_bytes()
        except FileNotFoundError as error:
            raise LedgerError("ledger.blob", f"blob {digest} is missing", _MEND) from error
        except OSError as error:
            raise typed(error, "reading a blob", self._path(digest)) from error
        if self._digest(data) != digest:
            raise LedgerError("ledger.blob", f"blob {digest} does not match its name", _MEND)
        return data

    def has(self, digest: str) -> bool:
        return _DIGEST.fullmatch(digest) is not None and self._path(digest).is_file()

    def flush(self) -> None:
        """Make everything put so far durable: each new file, then each folder that gained one."""
        try:
            if self._failed:
                self._write_again()
            if self._inherited:
                self._sync_inherited()
            if not self._unsynced:
                return
            for path in self._unsynced:
                self._sync(path)
            for folder in sorted({path.parent for path in self._unsynced}):
                self._sync(folder)
            self._sync(self.folder)
        except OSError as error:
            self._failed = True
            raise typed(error, "flushing blobs", self.folder) from error
        self._unsynced.clear()

    def names(self) -> Iterator[str]:
        """Digests of all blobs here, in order."""
        if not self.folder.is_dir():
            return
        for shelf in sorted(self.folder.iterdir()):
            if len(shelf.name) == 2 and shelf.is_dir():
                names = (path.name for path in shelf.iterdir())
                yield from sorted(name for name in names if _DIGEST.fullmatch(name))

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest

    @staticmethod
    def _holds(path: Path, data: bytes) -> bool:
        """True when the blob is there and whole: a loss of power may have left a name without its bytes."""
        try:
            return path.stat().st_size == len(data) and path.read_bytes() == data
        except OSError:
            return False

    def _must_differ(self, path: Path, digest: str) -> None:
        """What is there under a name and is not the bytes to be kept is damaged, and written again; or two
        contents have one name. Raises: LedgerError `ledger.collision`."""
        try:
            known = path.read_bytes()
        except OSError:
            return
        if self._digest(known) == digest:
            raise collision(digest)

    def _write(self, path: Path, data: bytes) -> None:
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open_file(aside, "wb") as file:
                    file.write(data)
                aside.rename(path)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise typed(error, "writing a blob", path) from error

    def _write_again(self) -> None:
        """After a failed sync the system may call pages clean that never reached the disk."""
        names = self.names() if self._inherited else (path.name for path in list(self._unsynced))
        for name in names:
            self._write(self._path(name), self._path(name).read_bytes())
        self._failed = False

    def _sync_inherited(self) -> None:
        fd = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync_file_system(fd)
            self.fsyncs += 1
        finally:
            os.close(fd)
        self._inherited = False
        self._unsynced.clear()

    def _sync(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
            self.fsyncs += 1
        finally:
            os.close(fd)


_MEND = "take the run from a copy or an export; `spak ledger verify` names every blob that is missing"


def no_lease() -> LedgerError:
    """The error of a ledger that was opened for reading."""
    return LedgerError(
        "ledger.no_lease",
        "opened for reading: nothing can be written",
        "open the run to take its lease first",
    )


def collision(digest: str) -> LedgerError:
    """For bytes whose name other bytes have already."""
    return LedgerError(
        "ledger.collision",
        f"two different contents have the name {digest}",
        "the blob that was there first is as it was; keep the run's folder, and report it",
    )
