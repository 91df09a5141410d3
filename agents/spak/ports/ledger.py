"""The ports of stores: blobs, the ledger of a run, and where runs live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from spak.kernel.snapshot import Snapshot
from spak.records import Record


class Blobs(Protocol):
    """Bytes under their hash."""

    def put(self, data: bytes) -> str:
        """Keep the bytes under their SHA-256 (base64url) and return it; idempotent."""

    def get(self, digest: str) -> bytes:
        """Raises: LedgerError `ledger.blob` when it is missing or does not match its name."""

    def has(self, digest: str) -> bool:
        """Whether it was put, for this run; what is durable by then only `flush` says."""

    def flush(self) -> None:
        """Make everything put so far durable."""


class Ledger(Protocol):
    """An append-only chain of records, held by one writer at a time."""

    run: str
    count: int
    head: str
    blobs: Blobs
    fence: int
    """Grows with every lease of the run; 0 where a lease cannot be lost while its holder lives."""
    keeps_ended: bool
    """Whether a snapshot of a run that ended is of use to somebody."""

    def read(self, start: int = 0) -> Iterator[tuple[Record, bytes]]:
        """Records with their exact lines, from a sequence number on."""

    def kept(self) -> Snapshot | None:
        """The one kept last. Raises: LedgerError `ledger.snapshot_discarded`: it is not of these records."""

    def keep(self, snapshot: Snapshot | None) -> None:
        """Keep one of the records so far, which are durable, or none. It may be lost: that is no error."""

    def conclude(self) -> None:
        """The run has ended: write its statement (spak.ledger.pack) where the store keeps one. It may be
        lost: that is no error, since it follows from the records."""

    def append(self, records: Sequence[Record]) -> list[Record]:
        """Write the records in one go and return them with seq and hash; durable only after `flush`."""

    def flush(self) -> None:
        """Make everything appended so far durable."""

    def confirm(self) -> None:
        """Ask whoever grants leases whether this one is held. Raises: LedgerError `ledger.lost_lease`."""

    def close(self) -> None:
        """Flush and give the lease back; idempotent."""


class Ledgers(Protocol):
    """Where runs live."""

    def create(self, run: str, genesis: Record) -> Ledger:
        """A new run, which exists with its genesis or not at all; the lease is held."""

    def open(self, run: str) -> Ledger:
        """Take the lease of a run.

        Raises: LedgerError `ledger.busy`, `ledger.unknown_run`, `ledger.tampered`.
        """

    def reader(self, run: str) -> Ledger:
        """Read without a lease; append is refused."""

    def runs(self) -> list[str]:
        """Run ids, oldest first."""
