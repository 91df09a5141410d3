"""The ledger in the database: the second adapter of `ports.Ledger` (the first is `spak.ledger.files`).

Takes records, gives them back with their exact lines. `DatabaseLedgers` opens runs whose rows are there:
`create` writes the genesis of a run that has none, `open` takes its lease. One runner at a time: each lease
has a fence, every write carries it, and writer.py refuses what carries an old one. `append` hands records to
the writer and goes on; `flush` waits until they are committed. Leases of this process are renewed by one
thread. It judges no record and knows no workspace.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from types import TracebackType

from django.db import transaction
from django.db.models import F, Q

from spak import canon
from spak.errors import LedgerError
from spak.kernel.snapshot import Snapshot
from spak.ledger.blobs import no_lease
from spak.ledger.chain import check_run_id, follow, next_previous
from spak.ledger.snapshots import discarded
from spak.ports import Blobs
from spak.records import Record, decode, place
from spakweb.ground import clock, worker_health
from spakweb.store.jobs.leases import LEASE_S, lapsed
from spakweb.store.ledger import writer as writing
from spakweb.store.ledger.blobs import StoredBlobs
from spakweb.store.ledger.intake import DatabaseIntake, exists
from spakweb.store.ledger.writer import Batch, lost_lease
from spakweb.store.ledger.writer_sql import BlobRow, Taking, shown
from spakweb.store.runs.models import ENDED, Run, RunRecord, RunSnapshot

RENEW_S = LEASE_S / 5
PAGE = 500
CHOOSING = "+"
"""After the name of a process: it has chosen the run for a slot, and is about to take its lease."""

log = logging.getLogger(__name__)


class DatabaseLedger:
    """One run's ledger; made by `DatabaseLedgers`."""

    keeps_ended = False

    def __init__(self, row: Run, *, writable: bool) -> None:
        self.run = row.key
        self.row = row
        self.count = row.count
        self.head = row.head or canon.ZERO
        self.fence = row.fence
        self.fsyncs = 0
        self.stored = StoredBlobs(row.pk, self._hand_in_blobs if writable else None)
        self.blobs: Blobs = self.stored
        self._writable = writable
        self._under_way: Future[None] | None = None
        self._shown: Future[None] | None = None
        self._failed: LedgerError | None = None
        self._known = (0, canon.ZERO)
        """The records of the snapshot, and their head."""

    def read(self, start: int = 0) -> Iterator[tuple[Record, bytes]]:
        """Records with their exact lines from `start` up to the count of now; from 0 and from the snapshot on
        the chain is checked.

        Raises: LedgerError `ledger.tampered`.
        """
        self._settle()
        lines = _lines(self.row.pk, max(start, 0), self.count)
        if start <= 0:
            yield from follow(lines, self.run)
        elif start == self._known[0]:
            yield from follow(lines, self.run, *self._known)
        else:
            for line in lines:
                yield decode(line), line

    def append(self, records: Sequence[Record]) -> list[Record]:
        """Hand the records in; they come back with seq and hash and are durable after `flush`.

        Raises: LedgerError `ledger.no_lease`; `ledger.lost_lease`, `ledger.io` of what was handed in before;
        UserError `canon.value` for a body that is not JSON.
        """
        self._must_hold()
        batch, placed = self._next(records)
        if placed:
            batch.blobs = self.stored.rows(batch.done)
            self._under_way = writing.writer.submit(batch)
        return placed

    def begin(self, genesis: Record) -> bool:
        """Take the lease and write the first record in one transaction, which makes the row too if there is
        none; False where the lease is not free, or was taken since the row was read.

        Raises: LedgerError `ledger.io`; UserError `canon.value` for a body that is not JSON.
        """
        self.fence += 1
        batch, _ = self._next([genesis])
        batch.take = Taking(leases.process, leases.choosing, LEASE_S, self.row.mode, self.row.takes_in)
        batch.make = self.row if self.row.pk is None else None
        try:
            writing.writer.submit(batch).result()
        except LedgerError as error:
            if error.code != "ledger.lost_lease":
                raise
            return False
        self.fsyncs += 1
        if batch.make is not None:
            self.blobs = self.stored = StoredBlobs(self.row.pk, self._hand_in_blobs)
        self.row.fence, self.row.holder, self.row.left_at = self.fence, leases.process, 0
        self.row.wanted = batch.wanted
        return True

    def _next(self, records: Sequence[Record]) -> tuple[Batch, list[Record]]:
        """The batch that appends the records, and the records at their places."""
        head, placed, rows = self.head, [], []
        run = self.row.pk  # looked up once: a model's `pk` is a property that costs as much as a hash
        for seq, given in enumerate(records, self.count):
            record, line = place(given, seq, head)
            head = record.hash
            placed.append(record)
            rows.append(
                (run, seq, record.kind, record.authority, record.task[:120],
                 record.step[:120], record.at, line)
            )  # fmt: skip
        before, self.count, self.head = self.count, self.count + len(rows), head
        return Batch(run, self.run, self.fence, before, self.count, head, records=rows), placed

    def flush(self) -> None:
        """Wait until all of it is committed. Raises: LedgerError `ledger.lost_lease`, `ledger.io`."""
        self._must_hold()
        self.blobs.flush()
        self._settle()

    def confirm(self) -> None:
        """Ask the database whether this lease is still the newest one.

        Raises: LedgerError `ledger.lost_lease`, `ledger.io`.
        """
        self._must_hold()
        batch = self._batch()
        batch.confirm = True
        try:
            writing.writer.submit(batch).result()
        except LedgerError as error:
            self._failed = error
            raise

    def kept(self) -> Snapshot | None:
        """The snapshot, if the last record that it has seen is the one that is there.

        Raises: LedgerError `ledger.snapshot_discarded`.
        """
        row = RunSnapshot.objects.filter(run=self.row.pk).first()
        if row is None:
            return None
        last = RunRecord.objects.filter(run=self.row.pk, seq=row.count - 1).values_list("line", flat=True)
        found = last.first()
        if found is None or next_previous(bytes(found), "") != row.head:
            raise discarded(self.run, "it is of other records")
        self._known = (row.count, row.head)
        return Snapshot(row.count, row.head, bytes(row.data))

    def conclude(self) -> None:
        """Nothing: the statement is derived where somebody downloads it."""

    def keep(self, snapshot: Snapshot | None) -> None:
        """Hand a snapshot in, or that there is none; nobody waits for it."""
        self._must_hold()
        batch = self._batch()
        batch.kept = "none"
        if snapshot is not None:
            batch.kept = (self.row.pk, snapshot.count, snapshot.head, snapshot.data)
        writing.writer.submit(batch)

    def show(self, row: Run, done: str = "") -> None:
        """Hand the row's projected columns in: written with the records so far or after them, if the lease is
        still held then. `done` is the request of people that is fulfilled. `close` waits for it."""
        batch = self._batch()
        batch.count, batch.shown = row.count, shown(row, self.fence, done)
        self._shown = writing.writer.submit(batch)

    def close(self) -> None:
        """Flush and give the lease back, also when the flush fails; idempotent."""
        if not self._writable:
            return
        try:
            self.blobs.flush()
            self._settle()
        finally:
            self._writable = False
            batch = self._batch()
            batch.free = True
            freed = leases.drop(self, batch)
            if self._shown is not None:
                self._shown.result()
            if freed is not None:
                freed.result()

    def __enter__(self) -> DatabaseLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _batch(self) -> Batch:
        return Batch(self.row.pk, self.run, self.fence, 0, 0, "")

    def renewal(self) -> Batch:
        """What the writer has to do to renew the lease."""
        batch = self._batch()
        batch.renew = leases.process, LEASE_S
        return batch

    def _hand_in_blobs(self, rows: list[BlobRow]) -> Future[None]:
        batch = self._batch()
        batch.blobs = rows
        batch.done.add_done_callback(self._blobs_written)
        return writing.writer.submit(batch)

    def _blobs_written(self, done: Future[None]) -> None:
        error = done.exception()
        if isinstance(error, LedgerError):
            self._failed = error  # a record that names one of them may come: this ledger writes no more

    def _settle(self) -> None:
        if self._under_way is not None:
            waiting, self._under_way = self._under_way, None
            self._await(waiting)
        if self._failed is not None:
            raise self._failed

    def _await(self, waiting: Future[None]) -> None:
        try:
            waiting.result()
        except LedgerError as error:
            self._failed = error  # what came after it hangs on it: this ledger writes no more
        else:
            self.fsyncs += 1

    def _must_hold(self) -> None:
        if not self._writable:
            raise no_lease()
        if self._under_way is not None and self._under_way.done():
            self._settle()
        if self._failed is not None:
            raise self._failed


class DatabaseLedgers:
    """Runs whose rows are in the database. `row` makes the row of a run that comes without one, `known` is
    one that its caller has just read, and `local` the key that an imported run gets here, from its own id;
    the default keeps the id."""

    def __init__(
        self,
        row: Callable[[str], Run] | None = None,
        wait_s: float = 0.0,
        local: Callable[[str], str] = str,
        known: Run | None = None,
    ) -> None:
        self.wait_s = wait_s
        self._row = row
        self._given = known
        self._local = local

    def create(self, run: str, genesis: Record) -> DatabaseLedger:
        """The ledger of a run that has none yet, with its genesis and its lease.

        Raises: LedgerError `ledger.exists`, `ledger.busy`, `ledger.run_id`, `ledger.io`.
        """
        check_run_id(run)
        begun = self._begun(run, genesis)
        if begun is not None:
            leases.add(begun)
            return begun
        ledger = _take(run, self.wait_s)
        if ledger.count:
            ledger.close()
            raise exists(run)
        try:
            ledger.append([genesis])
            ledger.flush()
        except BaseException:
            ledger.close()
            raise
        return ledger

    def open(self, run: str, wait_s: float | None = None) -> DatabaseLedger:
        """Take the lease. Raises: LedgerError `ledger.busy`, `ledger.unknown_run`, `ledger.run_id`."""
        self._known(run)
        return _take(run, self.wait_s if wait_s is None else wait_s)

    def reader(self, run: str) -> DatabaseLedger:
        self._known(run)
        held = leases.settle(run)
        reader = DatabaseLedger(self._known(run), writable=False)
        for ledger in held:
            reader.stored.know(ledger.stored)
        return reader

    def runs(self) -> list[str]:
        here = Run.objects.filter(count__gt=0, deleted_at=None)
        return list(here.order_by("key").values_list("key", flat=True))

    def intake(self) -> DatabaseIntake:
        """A place for a run that is coming in. Raises: LedgerError `ledger.import` without a row for it."""
        if self._row is None:
            raise LedgerError("ledger.import", "this store takes no imports", "import for a team")
        return DatabaseIntake(self._row, self._local)

    def _begun(self, run: str, genesis: Record) -> DatabaseLedger | None:
        """The ledger of a run whose lease was free, its row made where there was none; None where it was not.

        Raises: LedgerError `ledger.exists`, `ledger.io`.
        """
        known = self._given if self._given is not None and self._given.key == run else None
        if known is None and self._row is not None:
            made = DatabaseLedger(self._row(run), writable=True)
            try:
                return made if made.begin(genesis) else None
            except LedgerError:
                if not Run.objects.filter(key=run).exists():
                    raise
        known = known or Run.objects.filter(key=run).first()
        if known is None:
            raise _unknown(run)
        if known.count:
            raise exists(run)
        begun = DatabaseLedger(known, writable=True)
        return begun if leases.fence(run) != known.fence and begun.begin(genesis) else None

    def _known(self, run: str) -> Run:
        row = Run.objects.filter(key=check_run_id(run), count__gt=0).first()
        if row is None:
            raise _unknown(run)
        if row.deleted_at is not None:
            raise LedgerError(
                "ledger.unknown_run", f"run {run} was deleted", "its page says when and by whom"
            )
        return row


class Leases:
    """The leases of this process, renewed by one thread while there are any."""

    def __init__(self) -> None:
        self.process = f"{os.uname().nodename[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self.choosing = self.process + CHOOSING
        self._held: dict[int, DatabaseLedger] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._none_left = threading.Event()
        self._renewed: list[Future[None]] = []

    def add(self, ledger: DatabaseLedger) -> None:
        """Renew a ledger's lease from now on."""
        with self._lock:
            self._none_left.clear()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._renew, name="ledger-leases", daemon=True)
                self._thread.start()  # first: it fails where the host has no thread left
            self._held[ledger.row.pk] = ledger

    def drop(self, ledger: DatabaseLedger, last: Batch | None = None) -> Future[None] | None:
        """It is not renewed any more; `last` is handed in behind all of its renewals."""
        with self._lock:
            if self._held.get(ledger.row.pk) is ledger:  # else it was lost, and taken again here
                del self._held[ledger.row.pk]
            if not self._held:
                self._none_left.set()
            return None if last is None else writing.writer.submit(last)

    def close(self) -> None:
        """Wait for the thread, which ends when no lease is left."""
        thread = self._thread
        if thread is not None and not self.held():
            thread.join()

    def held(self) -> list[str]:
        """The runs whose leases this process holds."""
        with self._lock:
            return [ledger.run for ledger in self._held.values()]

    def fence(self, run: str) -> int:
        """That of the lease of the run in this process; -1 when there is none."""
        with self._lock:
            return max((ledger.fence for ledger in self._held.values() if ledger.run == run), default=-1)

    def settle(self, run: str) -> list[DatabaseLedger]:
        """See that a reader of this process finds the records that a ledger of this process has handed in;
        gives these ledgers, since rows of their blobs may be under way still."""
        with self._lock:
            found = [ledger for ledger in self._held.values() if ledger.run == run]
        for ledger in found:
            waiting = ledger._under_way
            if waiting is not None:
                waiting.exception()
        return found

    def _renew(self) -> None:
        """By the writer, which would else keep the database from it; while that waits, nothing is added."""
        while True:
            self._none_left.wait(RENEW_S)
            if self._held and not all(done.done() for done in self._renewed):
                continue
            if any(done.exception() for done in self._renewed):
                log.warning("leases were not renewed")  # the next round may do it; a lease outlives four
            with self._lock:
                if not self._held:
                    self._thread, self._renewed = None, []
                    return
                mine = [self._held[pk] for pk in sorted(self._held)]
                self._renewed = [writing.writer.submit(ledger.renewal()) for ledger in mine]


leases = Leases()


def release(process: str) -> int:
    """Free the leases of a process that is dead, for the next sweep; gives how many there were."""
    if not process:
        return 0
    mine = Run.objects.filter(holder__in=(process, process + CHOOSING))
    return mine.update(holder="", lease_until=None, enqueued_at=None)


def _after_fork() -> None:
    global leases
    leases = Leases()


os.register_at_fork(after_in_child=_after_fork)


def _take(run: str, wait_s: float) -> DatabaseLedger:
    """The lease of a run whose row is there. Raises: LedgerError `ledger.busy`."""
    until = time.monotonic() + wait_s
    pause = 0.01
    while True:
        with worker_health.short("taking a lease"):
            fence = _taken(run)
        if fence is not None:
            ledger = DatabaseLedger(Run.objects.get(key=run), writable=True)
            if ledger.row.holder != leases.process or ledger.row.fence != fence:
                raise lost_lease(run)  # if only the fence differs, it is another slot of this process
            leases.add(ledger)
            return ledger
        left = until - time.monotonic()
        if left <= 0:
            raise LedgerError(
                "ledger.busy",
                f"run {run} is held by another runner",
                "wait until it stops; a runner that died loses the run after a few seconds",
            )
        time.sleep(min(pause, left))
        pause = min(pause * 2, 0.25)


def _taken(run: str) -> int | None:
    """The fence of the lease, None if it is not free. The time is that of the write, which may have waited.
    A lease that ended because it could not be renewed is held here until somebody else takes it."""
    mine = leases.fence(run)
    with transaction.atomic():
        row = Run.objects.select_for_update(no_key=True).filter(key=run)
        before = row.values_list("fence", flat=True).first()
        if before is None:
            return None
        now = clock.now()
        free = Q(holder__in=("", leases.choosing)) | lapsed(now)
        until = now + timedelta(seconds=LEASE_S)
        rows = Run.objects.filter(free, key=run, fence=before).exclude(fence=mine).exclude(state__in=ENDED)
        taken = {"fence": before + 1, "holder": leases.process, "lease_until": until}
        return before + 1 if rows.update(**taken, left_at=F("count")) else None


def _lines(run: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        rows = RunRecord.objects.filter(run=run, seq__gte=start, seq__lt=end).order_by("seq")
        page = list(rows.values_list("seq", "line")[:PAGE])
        if not page:
            return
        for _, line in page:
            yield bytes(line)
        start = page[-1][0] + 1


def _unknown(run: str) -> LedgerError:
    return LedgerError("ledger.unknown_run", f"no run {run} here", "the list of runs has them all")
