"""A campaign's ledger in the database, and the lease of the worker that advances it.

The job of a campaign has the lease. Every write of a `Held` fails with `ledger.lost_lease` once another
worker has the job, or a person paused or stopped the campaign. `read(row)` checks the chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction
from django.db.models import Q

from spak import canon
from spak.errors import LedgerError
from spak.evolve.campaigns import Campaign as Recorded
from spak.ledger.chain import follow
from spak.records import Record, place
from spakweb.store.campaigns.models import Campaign, CampaignRecord, State
from spakweb.work.jobs.hold import Hold, Lost

RUNNING = Q(state=State.RUNNING)
"""Nobody paused it."""


def read(row: Campaign) -> Recorded:
    """The campaign as its records describe it.

    Raises: LedgerError `ledger.tampered`, OuterError `outer.campaign`.
    """
    lines = row.records.order_by("seq").values_list("line", flat=True)
    placed = follow((bytes(line) for line in lines.iterator(500)), f"campaign-{row.number}")
    return Recorded.of(str(row), (record for record, _ in placed))


def write(row: Campaign, records: Sequence[Record], found: Q, **columns: object) -> None:
    """Append to the ledger of a row if `found` holds for it. Raises: LedgerError `ledger.lost_lease`."""
    head, made = row.head, []
    for seq, given in enumerate(records, row.count):
        record, line = place(given, seq, head or canon.ZERO)
        head = record.hash
        made.append(CampaignRecord(campaign=row, seq=seq, line=line))
    count = row.count + len(made)
    with transaction.atomic():
        mine = Campaign.objects.filter(found, pk=row.pk, count=row.count)
        if not mine.update(count=count, head=head, **columns):
            raise lost(row)
        CampaignRecord.objects.bulk_create(made)
    row.count, row.head = count, head


def lost(row: Campaign) -> LedgerError:
    """The error for a worker that no longer holds the campaign."""
    return LedgerError("ledger.lost_lease", f"{row} has another worker, or was paused", "")


class Held:
    """The ledger while this worker has the campaign; what `spak.evolve.campaigns.Writer` writes to."""

    def __init__(self, row: Campaign, hold: Hold | None = None) -> None:
        self.row, self.hold = row, hold
        self.head = row.head
        self._new: list[Record] = []

    def append(self, records: Sequence[Record]) -> Sequence[Record]:
        """Keep records for the next `flush`."""
        self._new += records
        return records

    def flush(self) -> None:
        """Write them. Raises: LedgerError `ledger.lost_lease`."""
        new, self._new = self._new, []
        with self.writing():
            write(self.row, new, RUNNING)
        self.head = self.row.head

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that is kept if this worker has the campaign. Raises: LedgerError
        `ledger.lost_lease`."""
        with transaction.atomic():
            yield
            self.check()

    def check(self) -> None:
        """Raises: LedgerError `ledger.lost_lease`. Inside a transaction it holds until its end."""
        assert self.hold is not None
        with transaction.atomic():  # PostgreSQL locks no row outside of one
            rows = Campaign.objects.select_for_update(no_key=True).filter(RUNNING, pk=self.row.pk)
            if not rows.values_list("pk").first():
                raise lost(self.row)
            try:
                self.hold.confirm()
            except Lost as error:
                raise lost(self.row) from error
