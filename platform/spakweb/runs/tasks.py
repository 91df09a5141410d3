"""What workers are asked to do: advance one run, and sweep up runs that nobody advances.

Tasks carry a key and nothing else, are acknowledged late, may be repeated and may be lost.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.db.models import Q
from django.utils import timezone

from spakweb.runs import execute
from spakweb.runs.models import Run, State
from spakweb.runs.queue import send

SWEEP_AFTER = timedelta(seconds=5)
"""A run that should go on and has neither a holder nor a fresh message is put into its queue again."""

log = logging.getLogger(__name__)


@shared_task(name="runs.advance", acks_late=True, ignore_result=True)
def advance(key: str) -> None:
    row = Run.objects.filter(key=key).values("queue").first()
    if row is None or execute.stopping.is_set():
        return
    if execute.advance(key) and not execute.stopping.is_set():
        Run.objects.filter(key=key).update(enqueued_at=timezone.now())
        send(key, row["queue"])


@shared_task(name="runs.sweep", ignore_result=True)
def sweep() -> int:
    """Put back what was lost: dead leases, messages that never came. Gives how many."""
    now = timezone.now()
    stale = Q(enqueued_at=None) | Q(enqueued_at__lt=now - SWEEP_AFTER)
    free = Q(holder="") | Q(lease_until=None) | Q(lease_until__lt=now)
    asked = Q(commands__done_at=None, commands__isnull=False) | ~Q(wanted="")
    due = Q(state__in=(State.QUEUED, State.RUNNING)) | Q(state__in=(State.WAITING, State.PAUSED)) & asked
    found = list(Run.objects.filter(stale & free & due).distinct().values_list("pk", "key", "queue")[:200])
    for pk, key, queue in found:
        Run.objects.filter(pk=pk).update(enqueued_at=now)
        send(key, queue)
    if found:
        log.info("swept up %d runs", len(found))
    return len(found)
