"""A campaign's ledger in the database, and the lease of the worker that advances it.

`take(pk)` gives a `Held` for one worker at a time, under a new fence; every write of it carries the fence and
fails with `ledger.lost_lease` once another worker has the campaign, or a person paused or stopped it. A
worker that dies leaves a lease that ends by itself. `read(row)` checks the chain.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q

from spak import canon
from spak.errors import LedgerError
from spak.ledger.chain import follow
from spak.outer.campaigns import Campaign as Recorded
from spak.records import Record, place
from spakweb import clock
from spakweb.campaigns.models import Campaign, CampaignRecord, State
from spakweb.ledger import store
from spakweb.runs.leases import free, until

TRIES = 6
"""Workers in a row that may die with a campaign until it is paused."""

log = logging.getLogger(__name__)


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
    """The ledger while this worker has the campaign; what `spak.outer.campaigns.Writer` writes to."""

    def __init__(self, row: Campaign) -> None:
        self.row = row
        self.fence = row.fence
        self.head = row.head
        self._new: list[Record] = []

    @property
    def mine(self) -> Q:
        """The condition that this worker still holds it: no other has, and nobody paused it."""
        return Q(fence=self.fence, state=State.RUNNING)

    def append(self, records: Sequence[Record]) -> Sequence[Record]:
        """Keep records for the next `flush`."""
        self._new += records
        return records

    def flush(self) -> None:
        """Write them. Raises: LedgerError `ledger.lost_lease`."""
        new, self._new = self._new, []
        write(self.row, new, self.mine, lease_until=_until())
        self.head = self.row.head

    def check(self) -> None:
        """Raises: LedgerError `ledger.lost_lease`. Inside a transaction it holds until its end."""
        with transaction.atomic():  # PostgreSQL locks no row outside of one
            rows = Campaign.objects.select_for_update(no_key=True).filter(self.mine, pk=self.row.pk)
            if not rows.values_list("pk").first():
                raise lost(self.row)

    def renew(self) -> bool:
        """Renew the lease; False when this worker no longer holds it."""
        return bool(Campaign.objects.filter(self.mine, pk=self.row.pk).update(lease_until=_until()))

    def give_back(self, *, failed: bool = False, later: bool = False) -> None:
        """Release the lease; idempotent. `failed` counts as a fault; `later`: nothing is sent for a while."""
        mine = Campaign.objects.filter(pk=self.row.pk, fence=self.fence)
        sent, faults = clock.now() if later else None, self.row.faults if failed else 0
        mine.update(holder="", lease_until=None, enqueued_at=sent, faults=faults)


def take(pk: int) -> Held | None:
    """The lease of a running campaign that nobody holds; None where it cannot be taken."""
    now = clock.now()
    open_ones = Campaign.objects.filter(free(now), pk=pk, state=State.RUNNING)
    row = open_ones.select_related("team", "spec__team", "version", "suite", "made_by").first()
    if row is None:
        return None
    taken = {"fence": F("fence") + 1, "holder": store.leases.process, "lease_until": _until()}
    if not open_ones.filter(fence=row.fence).update(**taken, faults=F("faults") + 1):
        return None
    row.fence, row.faults = row.fence + 1, row.faults + 1
    return Held(row)


def _until() -> datetime:
    return until(clock.now())
