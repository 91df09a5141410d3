"""What workers are asked to do with campaigns: a step of one, and after each sweep those that should
continue.

The task carries a key and nothing else, may be repeated and may be lost: the sweep sends it again.
"""

from __future__ import annotations

from celery import shared_task
from django.dispatch import receiver

from spakweb.campaigns import steps
from spakweb.campaigns.queue import due, send
from spakweb.worker import held_run
from spakweb.worker.tasks import after_sweep


@shared_task(name="campaigns.step", acks_late=True, ignore_result=True)
def step(pk: int) -> None:
    """Advance a campaign, unless this worker is shutting down."""
    if not held_run.stopping.is_set():
        steps.advance(pk)


@receiver(after_sweep, dispatch_uid="campaigns.sweep")
def put_back(**ignored: object) -> None:
    """Queue the campaigns that should continue."""
    for pk in due():
        send(pk)
