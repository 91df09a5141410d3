"""Blobs of a run in Django's storage: bytes under their digest, shared by all runs that have the same ones.

Takes bytes, gives their digest, and the bytes back, verified. On a disk a blob is written aside, synced and
renamed, and its name synced, also by whoever finds it there; another storage (an object store) takes it
whole. Which run has which blob is a row, written before the first record that names it or in its transaction:
no record is there without it, whatever fails.

A blob that no run has any more is deleted (`drop`). Who stores one that exists already looks once more after
its row is committed, and stores it again if it was deleted in between: `drop` looks for rows and deletes
while no row can be added, so that one of the two always sees the other.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, default_storage
from django.db import connection, transaction

from spak import canon
from spak.errors import LedgerError
from spak.ledger.blobs import collision, no_lease
from spak.ledger.faults import typed
from spak.ledger.private import open_file
from spakweb.store.ledger.writer_sql import BlobRow
from spakweb.store.runs.models import RunBlob

REMEMBERED = 10_000
_DIGEST = re.compile(r"[A-Za-z0-9_-]{43}")
_MEND = "take the run from a backup or an export; `spak ledger verify` on an export names what is missing"


class StoredBlobs:
    """The blobs of a run in the platform's storage."""

    def __init__(
        self, run: int, hand_in: Callable[[list[BlobRow]], Future[None]] | None = None, at_once: bool = False
    ) -> None:
        self.fsyncs = 0
        self._run = run
        self._hand_in = hand_in
        self._at_once = at_once
        self._known: set[str] = set()
        """Those that were put here."""
        self._rows: set[str] = set()
        """Others of the run that were asked for."""
        self._existed: dict[str, bytes] = {}
        self._pending: deque[BlobRow] = deque()
        self._under_way: list[Future[None]] = []

    def put(self, data: bytes) -> str:
        """Raises: LedgerError `ledger.no_lease`, `ledger.full`, `ledger.io`."""
        if self._hand_in is None:
            raise no_lease()
        digest = canon.digest(data)
        if digest not in self._known:
            if not store(digest, data):
                self._existed[digest] = data
            self._pending.append((self._run, digest, len(data)))
            self._known.add(digest)
            if self._at_once:
                self.flush()
        return digest

    def get(self, digest: str) -> bytes:
        """Raises: LedgerError `ledger.blob` when this run does not have it, or it does not match its name."""
        if not _DIGEST.fullmatch(digest):
            raise LedgerError("ledger.blob", f"not the name of a blob: {digest!r}", _MEND)
        try:
            if not self.has(digest):  # that of another run is as one that nobody has
                raise FileNotFoundError(digest)
            with default_storage.open(name_of(digest)) as file:
                data: bytes = file.read()
        except FileNotFoundError as error:
            raise LedgerError("ledger.blob", f"blob {digest} is missing", _MEND) from error
        except OSError as error:
            raise typed(error, "reading a blob", Path(digest)) from error
        if canon.digest(data) != digest:
            raise LedgerError("ledger.blob", f"blob {digest} does not match its name", _MEND)
        return data

    def has(self, digest: str) -> bool:
        """Whether this run has it."""
        if digest in self._known or digest in self._rows:
            return True
        if RunBlob.objects.filter(run=self._run, digest=digest).exists():
            self._rows.add(digest)
        return digest in self._rows

    def know(self, other: StoredBlobs) -> None:
        """Of the same run: give what was put there, before its rows are committed."""
        self._rows |= other._known

    def rows(self, done: Future[None]) -> list[BlobRow]:
        """The rows that are not written yet; the caller writes them, and completes `done` then."""
        if found := self._drained():
            self._under_way.append(done)
        return found

    def _drained(self) -> list[BlobRow]:
        return [self._pending.popleft() for _ in range(len(self._pending))]

    def flush(self) -> None:
        """Wait until the rows of all blobs put so far are committed; their bytes are durable already."""
        if self._hand_in is not None and (rows := self._drained()):
            self._under_way.append(self._hand_in(rows))
        waiting, self._under_way = self._under_way, []
        for done in waiting:
            done.result()
        existed, self._existed = self._existed, {}
        for digest, data in existed.items():
            if not default_storage.exists(name_of(digest)):
                store(digest, data)

    def names(self) -> Iterator[str]:
        """The hashes of the run's blobs, sorted."""
        yield from RunBlob.objects.filter(run=self._run).order_by("digest").values_list("digest", flat=True)


def unleased(run: int) -> StoredBlobs:
    """The blobs of a run for whoever adds what anybody may add, the contents of its workspace."""

    def at_once(rows: list[BlobRow]) -> Future[None]:
        made = [RunBlob(run_id=run, digest=digest, size=size) for run, digest, size in rows]
        RunBlob.objects.bulk_create(made, ignore_conflicts=True)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    return StoredBlobs(run, at_once, at_once=True)


def name_of(digest: str) -> str:
    """The name of a blob in the storage."""
    return f"blobs/{digest[:2]}/{digest}"


def drop(run: int, most: int) -> int:
    """Take up to so many blobs from a run, and delete those that no other run has; gives how many it had."""
    with transaction.atomic():
        if connection.vendor == "postgresql":  # SQLite's transactions are alone from their beginning
            with connection.cursor() as cursor:
                cursor.execute(f"LOCK TABLE {RunBlob._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")
        mine = dict(RunBlob.objects.filter(run=run).order_by("pk").values_list("pk", "digest")[:most])
        others = RunBlob.objects.exclude(run=run).filter(digest__in=mine.values())
        for digest in set(mine.values()) - set(others.values_list("digest", flat=True)):
            default_storage.delete(name_of(digest))
        RunBlob.objects.filter(pk__in=mine).delete()
    return len(mine)


def store(digest: str, data: bytes, storage: Storage = default_storage) -> bool:
    """Keep the bytes under their digest, durably; False when they were there already.

    Raises: LedgerError `ledger.collision` where other bytes have it, `ledger.full`, `ledger.io`.
    """
    try:
        path = Path(storage.path(name_of(digest)))
    except NotImplementedError:  # so Django says that this storage has no disk
        return _store_apart(digest, data, storage)
    try:
        if (found := _found(path)) is not None:
            known = path.read_bytes()
            if known != data and canon.digest(known) == digest:
                raise collision(digest)
            if known == data and _durable.get(digest) == found:
                return False
            if known == data:
                _sync_name(path)  # whoever gave it that name may still be about to, or has died
                if len(_durable) >= REMEMBERED:
                    _durable.clear()
                _durable[digest] = found
                return False
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{digest}.{os.urandom(4).hex()}")
        try:
            with open_file(aside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            aside.rename(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        _sync_name(path)
    except OSError as error:
        raise typed(error, "writing a blob", path) from error
    return True


def _store_apart(digest: str, data: bytes, storage: Storage) -> bool:
    """The same where there is no disk: the storage takes a blob whole or not at all, and the sizes are
    compared."""
    if not storage.exists(name_of(digest)):
        storage.save(name_of(digest), ContentFile(data))
        return True
    if storage.size(name_of(digest)) != len(data):
        raise collision(digest)
    return False


_durable: dict[str, tuple[int, int, int]] = {}
"""Blobs whose bytes this process has seen and whose names it has made durable: inode, ctime and size of the
files. Runs of one spec have many of them in common."""


def _found(path: Path) -> tuple[int, int, int] | None:
    """Inode, ctime and size of a file; None where there is none."""
    try:
        seen = path.stat()
    except FileNotFoundError:
        return None
    return (seen.st_ino, seen.st_ctime_ns, seen.st_size) if stat.S_ISREG(seen.st_mode) else None


_shelves: set[Path] = set()
"""Folders of blobs whose own names this process has made durable; they are never removed."""


def _sync_name(path: Path) -> None:
    """Make the name of a blob durable, whose bytes are. Raises: OSError."""
    for folder in path.parents[: 1 if path.parent in _shelves else 3]:
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    _shelves.add(path.parent)
