"""An import into the database: a run put together in memory, which becomes rows in one transaction.

Takes exact lines and blobs that its caller has checked (spak.ledger.export); refuses what pages could not
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction

from spak import canon
from spak.errors import LedgerError
from spak.ledger.chain import check_run_id
from spak.records import decode
from spakweb.ground.unsafe_text import without_nul
from spakweb.store.ledger.blobs import name_of, store
from spakweb.store.runs.models import Run, RunBlob, RunRecord

PAGE = 500
YEAR_10000 = 253_402_300_800_000
"""In Unix milliseconds: no page shows a later time."""


class DatabaseIntake:
    """A run put together in memory, which becomes rows in one transaction."""

    def __init__(self, row: Callable[[str], Run], local: Callable[[str], str]) -> None:
        self._row = row
        self._local = local
        self._lines: list[bytes] = []
        self._blobs: dict[str, int] = {}

    def line(self, line: bytes) -> None:
        """Take the next line of the ledger."""
        self._lines.append(line)

    def blob(self, data: bytes) -> None:
        """Store a blob."""
        digest = canon.digest(data)
        store(digest, data)
        self._blobs[digest] = len(data)

    def keep(self, run: str, count: int, head: str) -> None:
        """Raises: LedgerError `ledger.exists` when the id belongs to other content."""
        run = self._local(check_run_id(run))
        there = Run.objects.filter(key=run).first()
        if there is not None and there.deleted_at is not None:
            raise LedgerError("ledger.exists", f"run {run} was here and was deleted", "it stays deleted")
        if there is not None:
            if (there.count, there.head) != (count, head):
                raise LedgerError("ledger.exists", f"run {run} already exists with different content", "")
            return
        row = self._row(run)
        row.count, row.head = count, head
        try:
            with transaction.atomic():
                row.save(force_insert=True)
                for at in range(0, len(self._lines), PAGE):
                    RunRecord.objects.bulk_create(
                        row_of(row.pk, line) for line in self._lines[at : at + PAGE]
                    )
                RunBlob.objects.bulk_create(
                    RunBlob(run=row, digest=digest, size=size) for digest, size in self._blobs.items()
                )
                if not all(default_storage.exists(name_of(digest)) for digest in self._blobs):
                    raise LedgerError("ledger.import", "a blob was deleted meanwhile", "import it once more")
        except IntegrityError as error:
            raise exists(run) from error

    def drop(self) -> None:
        """Forget the lines; blobs are collected later."""
        self._lines.clear()


def row_of(run: int, line: bytes) -> RunRecord:
    """The row of a record. Raises: LedgerError `ledger.import` for one that pages could not read."""
    record = decode(line)
    if not 0 <= record.at < YEAR_10000:
        raise LedgerError("ledger.import", f"record {record.seq}: its time is none", "export the run again")
    if not record.seq and not _is_first(record.body):
        raise LedgerError("ledger.import", "record 0: no run begins like this", "export the run again")
    return RunRecord(
        run_id=run, seq=record.seq, kind=record.kind[:20], authority=record.authority,
        task=without_nul(record.task[:120]), step=without_nul(record.step[:120]), at=record.at, line=line,
    )  # fmt: skip


def _is_first(body: Mapping[str, Any]) -> bool:
    """Whether pages can read it: what is there is of its kind."""
    for part, kinds in _SHAPES.items():
        found = body.get(part, {})
        if not isinstance(found, dict):
            return False
        if not all(isinstance(found.get(name), kind | None) for name, kind in kinds.items()):
            return False
    return True


_SHAPES: Mapping[str, Mapping[str, type]] = {
    "rules": {"spec": str, "policy": dict, "catalog": dict, "inputs": dict, "keys": list, "r3": str},
    "host": {"run": str, "spec": str, "mode": str, "launcher": str, "toolchain": dict, "backend": str,
             "parent": dict, "source": dict},
}  # fmt: skip


def exists(run: str) -> LedgerError:
    """The error of an id that is in use."""
    return LedgerError("ledger.exists", f"run {run} exists already", "choose another id")
