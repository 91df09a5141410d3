"""Which folders are to be synced: the jobs of them.

A version that is saved makes its folder wanted, unless a sync saved it: it has that text already.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.db.models.signals import post_delete
from django.dispatch import receiver

from spak.errors import RunError
from spakweb.ground import clock
from spakweb.store.folders.models import Folder
from spakweb.store.specs.models import SpecVersion
from spakweb.work.jobs import queue as jobs
from spakweb.work.jobs.hold import Hold, Lost
from spakweb.work.specs.actions import saved

SYNC = "folders.sync"
"""The kind of job that syncs one."""
LONGEST = timedelta(minutes=15)
"""A sync that takes longer stops; the next one goes on."""


def want(rows: QuerySet[Folder]) -> int:
    """Ask for a sync of these folders, now; gives of how many. Those that are off are left."""
    found = list(rows.filter(active=True).values_list("pk", "source__team"))
    for pk, team in found:
        jobs.want(SYNC, pk, team)
    return len(found)


def renew(hold: Hold) -> None:
    """Hold a folder for longer. Raises: Lost, RunError `folder.late`."""
    if not hold.keep():
        raise Lost
    if clock.now() - hold.at > LONGEST:
        minutes = LONGEST // timedelta(minutes=1)
        hint = "what it has done stays, and the next sync goes on"
        raise RunError("folder.late", f"the sync took longer than {minutes} minutes", hint)


@receiver(post_delete, sender=Folder, dispatch_uid="folders.deleted")
def _deleted(instance: Folder, **ignored: Any) -> None:
    jobs.drop(SYNC, instance.pk)


@receiver(saved, dispatch_uid="folders.saved")
def _saved(version: SpecVersion, **ignored: Any) -> None:
    rows = Folder.objects.filter(files__spec=version.spec_id).exclude(out=Folder.Out.NONE)
    if (origin := version.provenance.get("origin")) and not version.provenance.get("patch"):
        rows = rows.exclude(source__name=origin.get("source"))
    want(rows)
