"""The ledger of a guarded session: a run that another machine advances, and that grows here as it reports.

Takes the exact lines that come, with their blobs, for the row of the session; keeps them when they follow
from the records that are here, and writes the projection. Lines that are here already are compared and left.
Nobody has a lease of such a run, and no worker looks at it: the lock on its row is what keeps two reports
apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.core.files.storage import default_storage

from spak import canon
from spak.errors import LedgerError, UserError
from spak.kernel.state import State as KernelState
from spak.ledger.chain import follow
from spak.records import decode
from spak.runner.resume import snapshot_of, take_up
from spak.runner.views.as_recorded import Reading
from spakweb.store.ledger import projection
from spakweb.store.ledger.blobs import name_of, store
from spakweb.store.ledger.intake import PAGE, row_of
from spakweb.store.ledger.projection import Projection
from spakweb.store.ledger.store import DatabaseLedger
from spakweb.store.ledger.writer_sql import PROJECTED
from spakweb.store.runs.models import Run, RunBlob, RunRecord, RunSnapshot


def keep_blobs(blobs: Iterable[bytes]) -> dict[str, int]:
    """Put bytes into the storage; gives their digests with their sizes. Raises: LedgerError."""
    found: dict[str, int] = {}
    for data in blobs:
        digest = canon.digest(data)
        store(digest, data)
        found[digest] = len(data)
    return found


def append(row: Run, name: str, lines: Sequence[bytes], blobs: Mapping[str, int]) -> int:
    """Add what is new to the run `row`, which is locked; gives how many records were. `name` is the session's
    own id. Raises: LedgerError `ledger.tampered` for a line that does not follow from what is here, or that
    is not the one that is; `ledger.import` for one that pages could not read."""
    known = _new(row, name, lines)
    new = list(follow(iter(known), name, row.count, row.head or canon.ZERO))
    for at in range(0, len(new), PAGE):
        RunRecord.objects.bulk_create(row_of(row.pk, line) for _, line in new[at : at + PAGE])
    RunBlob.objects.bulk_create(
        (RunBlob(run=row, digest=digest, size=size) for digest, size in blobs.items()),
        ignore_conflicts=True,
    )
    if not all(default_storage.exists(name_of(digest)) for digest in blobs):
        raise LedgerError("ledger.import", "a blob was deleted meanwhile", "send it once more")
    if new:
        row.count, row.head = row.count + len(new), new[-1][0].hash
        row.save(update_fields=["count", "head"])
        project(row)
    return len(new)


def _new(row: Run, name: str, lines: Sequence[bytes]) -> Sequence[bytes]:
    """Those of the lines that are not here yet. Raises: LedgerError `ledger.tampered`."""
    if not lines:
        return ()
    first = decode(lines[0]).seq
    here = RunRecord.objects.filter(run=row, seq__gte=first, seq__lt=min(first + len(lines), row.count))
    kept = [bytes(line) for line in here.order_by("seq").values_list("line", flat=True)]
    for place, line in enumerate(kept):
        if line != lines[place]:
            raise LedgerError(
                "ledger.tampered",
                f"record {first + place} of session {name} is not the one that was sent before",
                "its folder was changed since; spak ledger verify looks at what is there",
            )
    return lines[len(kept) :]


def project(row: Run) -> None:
    """Write the projected columns from the records, on from the snapshot where there is one."""
    seen = Projection(row.summary if row.projected else None)
    ledger = DatabaseLedger(row, writable=False)
    for record, _ in ledger.read(row.projected):
        seen.feed(record)
    state, reason = _state(row, ledger)
    projection.put(row, seen, state, projection.guarded_stop(state))
    row.reason = reason or row.reason
    row.save(update_fields=PROJECTED)


def state_of(row: Run) -> KernelState:
    """The kernel's state after the records that are here."""
    return _state(row, DatabaseLedger(row, writable=False))[0]


def _state(row: Run, ledger: DatabaseLedger) -> tuple[KernelState, str]:
    """The state, and what is to be said of the records if they do not lead to it."""
    try:
        found = take_up(ledger)
    except UserError as error:
        if RunSnapshot.objects.filter(run=row).delete()[0]:  # it may be the snapshot that is wrong
            return _state(row, DatabaseLedger(row, writable=False))
        return _as_recorded(ledger), f"{error.code}: {error.message}"[:200]
    rules = found.replay.rules
    if rules is not None and not found.replay.missing and found.start < ledger.count:
        made = snapshot_of(ledger, rules, found.replay.state, found.history)
        fields = {"count": made.count, "head": made.head, "data": made.data}
        RunSnapshot.objects.update_or_create(run=row, defaults=fields)
    return found.replay.state, ""


def _as_recorded(ledger: DatabaseLedger) -> KernelState:
    """What the records say of themselves, where they cannot be derived again."""
    found = Reading()
    for record, _ in ledger.read():
        try:
            found.feed(record)
        except UserError:
            break
    return found.state
