"""Folders that are to be synced, and the message that says so.

A version that is saved makes its folder wanted, unless a sync saved it: it has that text already.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.dispatch import receiver
from kombu.exceptions import KombuError

from spakweb import clock
from spakweb.folders.models import Folder
from spakweb.specs.actions import saved
from spakweb.specs.models import SpecVersion

LOST = timedelta(seconds=60)
"""After the time for a sync and so long a worker that took it up counts as gone."""
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
    """Folders that are to be synced and that no worker has in hand."""
    now = clock.now()
    gone = now - timedelta(seconds=settings.SOURCE_S) - LOST
    rows = Folder.objects.filter(active=True, wanted_at__isnull=False)
    rows = rows.filter(Q(not_before=None) | Q(not_before__lte=now))
    return rows.filter(Q(claimed_at=None) | Q(claimed_at__lt=gone) | Q(claimed_at__gt=now + LOST))


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
