"""Folders that are to be synced, and the message that says so.

A version that is saved makes its folder wanted, unless a sync saved it: it has that text already.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.dispatch import receiver
from kombu.exceptions import KombuError

from spak.errors import RunError
from spakweb import clock
from spakweb.folders.models import Folder
from spakweb.runs.leases import is_due, lapsed, until
from spakweb.sources.freeze import TRIES, waits
from spakweb.specs.actions import saved
from spakweb.specs.models import SpecVersion

LONGEST = timedelta(minutes=15)
"""A sync that takes longer stops; the next one goes on."""
AT_A_TIME = 10

log = logging.getLogger(__name__)


def want(rows: QuerySet[Folder]) -> int:
    """Ask for a sync of these folders, now; gives of how many. Those that are off are left."""
    found = list(rows.filter(active=True).values_list("pk", flat=True))
    Folder.objects.filter(pk__in=found).update(wanted_at=clock.now(), not_before=None, tries=0)
    for pk in found:
        transaction.on_commit(partial(send, pk))
    return len(found)


def free() -> QuerySet[Folder]:
    """Folders that are to be synced and that no worker holds."""
    now = clock.now()
    rows = Folder.objects.filter(active=True, wanted_at__isnull=False)
    rows = rows.filter(is_due("not_before", now, waits(TRIES)))
    return rows.filter(Q(claimed_at=None) | lapsed(now))


class Lost(Exception):
    """This worker no longer holds the folder: another took it, or it was removed or turned off."""


class Hold:
    """A folder that this worker holds since `at`, under a lease that ends by itself where it dies."""

    def __init__(self, pk: int, at: datetime) -> None:
        self.pk, self.at = pk, at

    def confirm(self) -> None:
        """At the end of a transaction: until it commits no other worker can take the folder up. At its end,
        since whoever saves a spec takes the spec first and then the folder. Raises: Lost."""
        mine = Folder.objects.select_for_update(no_key=True)
        mine = mine.filter(pk=self.pk, claimed_at=self.at, active=True)
        if mine.values_list("pk").first() is None:
            raise Lost

    def keep(self) -> bool:
        """Renew the lease; False when this worker no longer holds it."""
        mine = Folder.objects.filter(pk=self.pk, claimed_at=self.at, active=True)
        return bool(mine.update(lease_until=until(clock.now())))

    def renew(self) -> None:
        """Hold it for longer. Raises: Lost, RunError `folder.late`."""
        if not self.keep():
            raise Lost
        if clock.now() - self.at > LONGEST:
            minutes = LONGEST // timedelta(minutes=1)
            hint = "what it has done stays, and the next sync goes on"
            raise RunError("folder.late", f"the sync took longer than {minutes} minutes", hint)


def send(pk: int) -> None:
    """A message for a worker; without one the next sweep sends it."""
    from spakweb.celery import app

    try:
        app.send_task("folders.sync", (pk,), retry=False)
    except (OSError, KombuError) as error:
        log.warning("folder %s was not queued: %s", pk, type(error).__name__)


@receiver(saved, dispatch_uid="folders.saved")
def _saved(version: SpecVersion, **ignored: Any) -> None:
    rows = Folder.objects.filter(files__spec=version.spec_id).exclude(out=Folder.Out.NONE)
    if (origin := version.provenance.get("origin")) and not version.provenance.get("patch"):
        rows = rows.exclude(source__name=origin.get("source"))
    want(rows)
