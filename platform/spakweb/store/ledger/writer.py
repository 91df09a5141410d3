"""Group commit: one thread per process writes what all runs of the process hand in, in one transaction.

Takes Batches (new records of one run under its fence, the row of one that is new, blobs it has, how it is
shown, its snapshot, its lease renewed or given back) and gives a Future for each, which is resolved after the
commit. A run whose fence or count is no longer what its batch says fails alone, with `ledger.lost_lease`; so
does, with `ledger.io`, what the database refuses. When the connection is cut, the transaction is made again
once, and what was committed although its answer was lost counts as written. When the database fails again,
everything of that transaction fails with `ledger.io`. A database without room is asked again until it has
some: the runs wait meanwhile. After a commit `listeners` hear `[(run key, count)]`:
watchers do (hints/news.py). It judges no record.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any, Literal

from django.db import DatabaseError, connection, transaction

from spak.errors import LedgerError
from spakweb.ground import clock, worker_health
from spakweb.ground.database.lock_wait import passing
from spakweb.store.hints import news
from spakweb.store.ledger import writer_sql as sql
from spakweb.store.ledger.storage import is_full
from spakweb.store.runs.models import Run

MOST = 500
"""Batches of one transaction."""
ROOM_S = 0.5
"""How often a database that had no room is asked again."""

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Batch:
    """What one ledger has to write in one transaction, under its lease."""

    run: int
    key: str
    fence: int
    before: int
    count: int
    head: str
    records: list[sql.RecordRow] = field(default_factory=list)
    blobs: list[sql.BlobRow] = field(default_factory=list)
    shown: tuple[Any, ...] | None = None
    """The projection, if it is to be written; left out of a run that was lost, or whose records so far the
    database did not take."""
    free: bool = False
    """The lease is given back, if it is still held."""
    renew: tuple[str, float] | None = None
    """The lease is renewed, if it is still held: for whom, and for how many seconds from the commit on."""
    confirm: bool = False
    """Fails when the lease is not held any more."""
    kept: sql.SnapshotRow | Literal["none"] | None = None
    """A snapshot to be kept, or that none is; of a run that was lost it is left out."""
    take: sql.Taking | None = None
    """The lease of a run without records is taken first, under this fence, if it is free; else the run is
    lost."""
    taken: bool = False
    """The writer took it, in a transaction that may have been cut off."""
    wanted: str = ""
    """What people wanted of the run when its lease was taken so."""
    make: Run | None = None
    """The row of the run, which is not there yet and is made first, with the lease."""
    done: Future[None] = field(default_factory=Future)

    @property
    def more(self) -> bool:
        """Whether it changes the row of its run in more than its records' count and head."""
        return bool(self.shown or self.free or self.renew or self.kept or self.take)


class Writer:
    """Started with the first batch; `close` ends it after everything handed in is written."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[list[tuple[str, int]]], None]] = [news.committed]
        self.transactions = 0
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._impatient = threading.Event()

    def submit(self, batch: Batch) -> Future[None]:
        """Queue a batch; the future is done when it is durable, or raises why not."""
        if self._thread is None or not self._thread.is_alive():
            with self._starting:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(target=self._work, name="ledger-writer", daemon=True)
                    self._thread.start()
        self._queue.put(batch)
        return batch.done

    def close(self) -> None:
        thread = self._thread
        if thread is not None and thread.is_alive():
            self.hurry()
            self._queue.put(None)
            thread.join()
        self._thread = None
        self._impatient.clear()

    def hurry(self) -> None:
        """The process ends: wait for room no longer."""
        self._impatient.set()

    def _work(self) -> None:
        going = True
        while going:
            taken = [self._queue.get()]
            try:
                while len(taken) < MOST:
                    taken.append(self._queue.get_nowait())
            except Empty:
                pass
            if None in taken:
                going = False
            self._write([batch for batch in taken if batch is not None])
        connection.close()

    def _write(self, batches: list[Batch]) -> None:
        if not batches:
            return
        try:
            lost, fences = self._committed_with_room(batches)
        except Exception as error:  # the thread must live on, and every caller must hear of it
            if not isinstance(error, DatabaseError):
                log.exception("writing records failed")
            elif len(batches) > 1 and not passing(error):
                for batch in batches:  # something in one of them is refused: the others are not to blame
                    self._write([batch])
                return
            for batch in batches:
                batch.done.set_exception(
                    LedgerError(
                        "ledger.io",
                        f"the database did not take the records: {type(error).__name__}",
                        "see that the database runs and has space; the run goes on where its ledger ends",
                    )
                )
            return
        self.transactions += 1
        heads: dict[str, int] = {}
        for batch in batches:
            stale = batch.confirm and batch.fence != fences.get(batch.run)
            if stale or batch in lost:
                batch.done.set_exception(lost_lease(batch.key))
            else:
                batch.done.set_result(None)
                if batch.records or batch.shown:
                    heads[batch.key] = batch.count
        if heads:
            self._call_listeners(list(heads.items()))

    def _committed_with_room(self, batches: list[Batch]) -> tuple[set[Batch], dict[int, int]]:
        while True:
            try:
                with worker_health.short("writing records"):
                    return self._committed(batches)
            except DatabaseError as error:
                if not is_full(error) or self._impatient.is_set():
                    raise
                log.warning("the database has no room; %d writes wait for it", len(batches))
                self._impatient.wait(ROOM_S)

    def _committed(self, batches: list[Batch]) -> tuple[set[Batch], dict[int, int]]:
        """One transaction; the connection stays open, and one that has gone meanwhile is made again once.
        On PostgreSQL new records alone are one statement, which is the transaction."""
        alone = not any(batch.blobs or batch.confirm or batch.more for batch in batches)
        for last in (False, True):
            try:
                one = alone and connection.vendor == "postgresql"
                with nullcontext() if one else transaction.atomic():
                    return self._store(batches)
            except DatabaseError as error:
                connection.close()
                if last or not passing(error):
                    raise
        raise AssertionError("not reached")

    def _store(self, batches: list[Batch]) -> tuple[set[Batch], dict[int, int]]:
        """Write what may be written; gives the batches that may not, and the fences asked for. Of runs that
        were taken twice the newer fence is written."""
        with sql.writing() as cursor:
            made = [batch for batch in batches if batch.make is not None and _make(cursor, batch, batch.make)]
            there = [batch for batch in batches if batch.make is None]
            changed = sorted({batch.run for batch in there if batch.records or batch.more})
            asked = {batch.run for batch in batches if batch.confirm}
            fences = sql.fences(cursor, sorted(asked)) if asked else {}
            taking = [batch for batch in there if batch.take is not None]
            lost = self._take(cursor, changed, taking) if taking else set()
            chains: dict[tuple[int, int], list[Batch]] = {}
            for batch in there:
                if batch.records and batch not in lost:
                    chains.setdefault((batch.run, batch.fence), []).append(batch)
            newest = [chains[key] for key in dict(sorted(chains)).items()]
            heads = [
                sql.Head(of[0].run, of[0].fence, of[0].before, of[-1].count, of[-1].head) for of in newest
            ]
            rows = [row for chain in newest for batch in chain for row in batch.records]
            held, written = sql.append(cursor, changed, heads, rows)
            gone = chains.keys() - written
            lost.update(b for b in batches if (b.run, b.fence) in gone and (b.records or b.blobs))
            kept = [b for b in batches if (b.run, b.fence) not in gone and b not in lost]
            if firsts := [row for batch in made for row in batch.records]:
                sql.add_records(cursor, firsts)
            if blobs := [blob for batch in kept for blob in batch.blobs]:
                sql.add_blobs(cursor, blobs)
            self._keep(
                cursor, [batch for batch in kept if batch.kept and held[batch.run].fence == batch.fence]
            )
            if shown := {(batch.run, batch.fence): batch.shown for batch in batches if batch.shown}:
                sql.show(cursor, shown.values())
            if renewed := [(batch.run, batch.fence, *batch.renew) for batch in batches if batch.renew]:
                sql.renew(cursor, clock.now(), renewed)
            if freed := [(batch.run, batch.fence) for batch in batches if batch.free]:
                sql.free(cursor, freed)
        return lost, fences

    @staticmethod
    def _take(cursor: Any, changed: Sequence[int], batches: list[Batch]) -> set[Batch]:
        """Take leases; gives the batches whose lease was not free. All rows that are changed are locked
        first, so that they are in order."""
        held, refused = sql.held(cursor, changed), set()
        for batch in batches:
            assert batch.take is not None
            if batch.taken and _begun(cursor, batch):
                continue
            now = clock.now()
            batch.taken = batch.run in held and sql.take(cursor, now, batch.run, batch.fence, batch.take)
            if batch.taken:
                batch.wanted = held[batch.run].wanted
            else:
                refused.add(batch)
        return refused

    @staticmethod
    def _keep(cursor: Any, batches: list[Batch]) -> None:
        newest = {batch.run: batch.kept for batch in batches}
        if rows := [row for row in newest.values() if row is not None and row != "none"]:
            sql.keep(cursor, rows)
        if none := [run for run, row in newest.items() if row == "none"]:
            sql.drop(cursor, none)

    def _call_listeners(self, heads: list[tuple[str, int]]) -> None:
        for listener in self.listeners:
            try:
                listener(heads)
            except Exception:
                log.exception("a listener of the ledger failed")


def _make(cursor: Any, batch: Batch, row: Run) -> bool:
    """Insert the row with its lease and its head, unless it is there."""
    assert batch.take is not None
    if batch.taken and _begun(cursor, batch):
        return False
    row.pk = None
    row.count, row.head, row.fence = batch.count, batch.head, batch.fence
    row.holder, row.left_at = batch.take.holder, 0
    row.lease_until = clock.now() + timedelta(seconds=batch.take.seconds)
    row.save(force_insert=True)
    batch.run, batch.taken = row.pk, True
    batch.records = [(row.pk, *record[1:]) for record in batch.records]
    return True


def _begun(cursor: Any, batch: Batch) -> bool:
    """Whether the transaction that took the lease for this batch was committed though it was cut off."""
    assert batch.take is not None
    return sql.begun(cursor, batch.run, batch.fence, batch.count, batch.head, batch.take.holder)


def lost_lease(key: str) -> LedgerError:
    """The error of a run that another runner holds."""
    return LedgerError(
        "ledger.lost_lease",
        f"run {key} is held by another runner now",
        "nothing of this runner was written since; the other process continues the run",
    )


writer = Writer()


def _after_fork() -> None:
    global writer
    writer = Writer()


os.register_at_fork(after_in_child=_after_fork)
