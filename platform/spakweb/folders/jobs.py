"""What workers are asked to do with folders: sync one, and after each sweep those that are wanted."""

from __future__ import annotations

from celery import shared_task
from django.dispatch import receiver

from spakweb.folders import steps
from spakweb.folders.queue import AT_A_TIME, free, send
from spakweb.worker.tasks import after_sweep


@shared_task(name="folders.sync", acks_late=True, ignore_result=True)
def sync(pk: int) -> None:
    """Sync a folder, unless another worker does."""
    steps.sync(pk)


@receiver(after_sweep, dispatch_uid="folders.sweep")
def send_due(**ignored: object) -> None:
    """Send the folders that are to be synced and that nobody holds."""
    for pk in free().order_by("wanted_at").values_list("pk", flat=True)[:AT_A_TIME]:
        send(pk)
