"""Reading what can be read of a damaged store: every run one by one, and which of its records are lost.

It changes nothing but for damaged snapshots, which are removed, and goes on after what the database cannot
read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import DatabaseError, connection
from django.db.models import Max

from spak.errors import UserError
from spak.kernel.replay import Replay
from spak.kernel.snapshot import Snapshot
from spak.ledger.verify import Walk
from spak.records import Record, decode
from spak.runner.resume import Comparison
from spak.runner.views.as_recorded import Reading
from spakweb.store.ledger.blobs import StoredBlobs
from spakweb.store.runs.models import Run, RunRecord, RunSnapshot

NAMED = 5
COLUMNS = ("kind", "authority", "task", "step", "at")
"""What lists read without the line; only the line is chained."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row of the list of runs that the database cannot read."""

    pk: int


def every_run() -> Iterator[Run | Unreadable]:
    """All runs with records, in order; of those that were deleted there is nothing to read."""
    for pk in _numbers():
        try:
            row = Run.objects.filter(pk=pk, count__gt=0, deleted_at=None).first()
        except DatabaseError:
            yield Unreadable(pk)
            continue
        if row is not None:
            yield row


def problems(row: Run) -> list[str]:
    """What is wrong with the ledger of a run: lost records, a broken chain, missing blobs, a snapshot that is
    not the state that its records lead to, which is removed."""
    walk = Walk(exported=False, blobs=StoredBlobs(row.pk))
    try:
        snapshot = Compared(row)
        copied: list[str] = []
        rows = RunRecord.objects.filter(run=row.pk).order_by("seq").values_list("line", *COLUMNS)
        for line, *columns in rows:
            walk.feed(bytes(line))
            snapshot.feed(bytes(line))
            if len(copied) < NAMED and (name := _differing(bytes(line), columns)):
                copied.append(f"record {walk.count - 1}: its column {name} is not what its line says")
        damaged = snapshot.removed()
    except DatabaseError:
        return [lost(row)]
    except UserError as error:
        return [error.message]
    report = walk.report()
    found = [f"record {item.seq}: {item.message}" for item in report.problems if item.code != "torn_tail"]
    found += [] if found else copied
    if not found and (report.records, report.head) != (row.count, row.head):
        found = [f"the list of runs has {row.count} records and another head, the ledger {report.records}"]
    return [*found, *([damaged] if damaged else [])]


class Compared:
    """The snapshot of a run beside the state that its records lead to. Feed it every line, or let it `see`
    every record after the `replay` of somebody else has."""

    def __init__(self, row: Run, replay: Replay | None = None) -> None:
        self._kept = RunSnapshot.objects.filter(run=row.pk).first()
        self._replay: Replay = Reading() if replay is None else replay
        kept = self._kept
        snapshot = None if kept is None else Snapshot(kept.count, kept.head, bytes(kept.data))
        self._comparison = Comparison(snapshot, self._replay)

    def feed(self, line: bytes) -> None:
        """Raises: UserError where the line is no record, or the first one no genesis."""
        if self._kept is not None and self._replay.records < self._kept.count:
            record = decode(line)
            self._replay.feed(record)
            self.see(record)

    def see(self, record: Record) -> None:
        """Take the next record."""
        self._comparison.feed(record)

    def removed(self) -> str:
        """Remove it when it is damaged, and say so."""
        problem = self._comparison.problem()
        if not problem or self._kept is None:
            return ""
        RunSnapshot.objects.filter(run=self._kept.run_id, count=self._kept.count).delete()
        return f"the snapshot was removed: {problem}"


def _differing(line: bytes, columns: list[str | int]) -> str:
    """The first column that differs from the record in its line; none where the line is no record."""
    try:
        record = decode(line)
    except UserError:
        return ""
    members = ((name, getattr(record, name)) for name in COLUMNS)
    return next((name for (name, value), column in zip(members, columns, strict=True) if value != column), "")


def lost(row: Run) -> str:
    """Which records of a run cannot be read, in words."""
    gone: list[int] = []
    for seq in range(row.count):
        try:
            line = RunRecord.objects.filter(run=row.pk, seq=seq).values_list("line", flat=True).first()
        except DatabaseError:
            line = None
        if line is None:
            gone.append(seq)
    if not gone:
        return "its records can be read one by one, not in order: an index is damaged"
    return f"{len(gone)} of {row.count} records cannot be read: {_ranges(gone)}"


def _numbers() -> list[int]:
    """The numbers of all runs; where the list cannot be read, all that there may be."""
    try:
        return list(Run.objects.order_by("pk").values_list("pk", flat=True))
    except DatabaseError:
        pass
    try:
        last = Run.objects.aggregate(last=Max("pk"))["last"]
    except DatabaseError:
        with connection.cursor() as cursor:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [Run._meta.db_table])
            found = cursor.fetchone()
        last = found[0] if found else 0
    return list(range(1, (last or 0) + 1))


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in parts[:NAMED]]
    return ", ".join(shown) + (f" and {len(parts) - NAMED} more ranges" if len(parts) > NAMED else "")
