"""The ledger that keeps nothing: for tests, dry runs and replays into a scratch run.

Same contract as `spak.ledger.files`, same errors; it is durable until the process ends and takes no fsync.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType

from spak import canon
from spak.errors import LedgerError
from spak.kernel.snapshot import Snapshot
from spak.ledger.blobs import collision, no_lease
from spak.ledger.chain import check_run_id, follow
from spak.ledger.snapshots import discarded
from spak.ports import Blobs
from spak.records import Record, decode, place


@dataclass(slots=True)
class _Kept:
    lines: list[bytes] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    lease: Lock = field(default_factory=Lock)
    snapshot: Snapshot | None = None


class MemoryBlobs:
    """Blobs in a dictionary."""

    def __init__(
        self,
        kept: dict[str, bytes],
        *,
        writable: bool = True,
        digest: Callable[[bytes], str] = canon.digest,
    ) -> None:
        self.fsyncs = 0
        self._digest = digest
        self._kept = kept
        self._writable = writable

    def put(self, data: bytes) -> str:
        if not self._writable:
            raise no_lease()
        digest = self._digest(data)
        known = self._kept.get(digest, data)
        if known != data and self._digest(known) == digest:
            raise collision(digest)
        self._kept[digest] = bytes(data)
        return digest

    def get(self, digest: str) -> bytes:
        data = self._kept.get(digest)
        if data is None or self._digest(data) != digest:
            raise LedgerError("ledger.blob", f"blob {digest} is missing or damaged", "put it again")
        return data

    def has(self, digest: str) -> bool:
        return digest in self._kept

    def flush(self) -> None:
        """Nothing to do: memory is as durable as it gets."""

    def names(self) -> Iterator[str]:
        """The hashes of all blobs, sorted."""
        yield from sorted(self._kept)


class MemoryLedger:
    """A ledger in memory, for tests and what-if runs; nothing of it is durable."""

    keeps_ended = False

    def __init__(self, run: str, kept: _Kept, head: str, *, writable: bool) -> None:
        self.run = run
        self.fence = 0
        self.count = len(kept.lines)
        self.head = head
        self.healed = 0
        self.fsyncs = 0
        self.blobs: Blobs = MemoryBlobs(kept.blobs, writable=writable)
        self._kept = kept
        self._writable = writable

    def read(self, start: int = 0) -> Iterator[tuple[Record, bytes]]:
        for seq in range(max(start, 0), self.count):
            line = self._kept.lines[seq]
            yield decode(line), line

    def append(self, records: Sequence[Record]) -> list[Record]:
        if not self._writable:
            raise no_lease()
        head, lines = self.head, []
        for seq, record in enumerate(records, self.count):
            placed, line = place(record, seq, head)
            head = placed.hash
            lines.append(line)
        self._kept.lines += lines
        self.count += len(lines)
        self.head = head
        return [decode(line) for line in lines]

    def flush(self) -> None:
        if not self._writable:
            raise no_lease()

    def confirm(self) -> None:
        """Leases of this process are not lost."""

    def kept(self) -> Snapshot | None:
        """Raises: LedgerError `ledger.snapshot_discarded`."""
        found = self._kept.snapshot
        if found is not None and _hash_at(self._kept.lines, found.count) != found.head:
            raise discarded(self.run, "it is of other records")
        return found

    def keep(self, snapshot: Snapshot | None) -> None:
        if not self._writable:
            raise no_lease()
        self._kept.snapshot = snapshot

    def conclude(self) -> None:
        """Nothing: the statement is derived where it is asked for."""

    def close(self) -> None:
        if self._writable:
            self._writable = False
            self._kept.lease.release()

    def __enter__(self) -> MemoryLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class MemoryIntake:
    """A ledger put together before it becomes a run."""

    def __init__(self, runs: dict[str, _Kept]) -> None:
        self._runs = runs
        self._new = _Kept()

    def line(self, line: bytes) -> None:
        """Take the next line of the ledger."""
        self._new.lines.append(line)

    def blob(self, data: bytes) -> None:
        """Take a blob."""
        self._new.blobs[canon.digest(data)] = data

    def keep(self, run: str, count: int, head: str) -> None:
        there = self._runs.setdefault(check_run_id(run), self._new)
        if there.lines != self._new.lines:
            raise LedgerError(
                "ledger.exists", f"run {run} already exists with different content", "import it elsewhere"
            )

    def drop(self) -> None:
        """Forget all that was taken."""
        self._new = _Kept()


class MemoryLedgers:
    """Runs that live as long as this object."""

    def __init__(self, wait_s: float = 0.0) -> None:
        self.wait_s = wait_s
        self._runs: dict[str, _Kept] = {}

    def create(self, run: str, genesis: Record) -> MemoryLedger:
        if check_run_id(run) in self._runs:
            raise LedgerError("ledger.exists", f"run {run} exists already", "choose another id")
        kept = _Kept()
        kept.lease.acquire()
        ledger = MemoryLedger(run, kept, canon.ZERO, writable=True)
        ledger.append([genesis])
        self._runs[run] = kept
        return ledger

    def open(self, run: str, wait_s: float | None = None) -> MemoryLedger:
        kept = self._known(run)
        if not _take(kept.lease, self.wait_s if wait_s is None else wait_s):
            raise LedgerError("ledger.busy", f"run {run} is held by this process", "close its ledger first")
        try:
            return MemoryLedger(run, kept, _head(run, kept), writable=True)
        except BaseException:
            kept.lease.release()
            raise

    def reader(self, run: str) -> MemoryLedger:
        kept = self._known(run)
        return MemoryLedger(run, kept, _head(run, kept), writable=False)

    def runs(self) -> list[str]:
        return sorted(self._runs)

    def intake(self) -> MemoryIntake:
        """A place for a run that is coming in."""
        return MemoryIntake(self._runs)

    def _known(self, run: str) -> _Kept:
        try:
            return self._runs[check_run_id(run)]
        except KeyError as error:
            raise LedgerError("ledger.unknown_run", f"no run {run} here", "`spak runs` lists them") from error


def _hash_at(lines: list[bytes], count: int) -> str:
    """The hash of the last of so many records; empty when there are fewer."""
    return decode(lines[count - 1]).hash if 0 < count <= len(lines) else ""


def _head(run: str, kept: _Kept) -> str:
    head = canon.ZERO
    for record, _ in follow(iter(kept.lines), run):
        head = record.hash
    return head


def _take(lease: Lock, wait_s: float) -> bool:
    return lease.acquire(timeout=wait_s) if wait_s > 0 else lease.acquire(blocking=False)
