"""Putting a run into its queue: a Celery task that carries nothing but the run's key, after the commit.

A task may come twice, late or never: `advance` is idempotent, and the sweep puts back what was lost.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from spakweb.runs.models import Run


def enqueue(run: Run) -> None:
    """Inside a transaction: sent when it commits."""
    Run.objects.filter(pk=run.pk).update(enqueued_at=timezone.now())
    key, queue = run.key, run.queue
    transaction.on_commit(lambda: send(key, queue))


def send(key: str, queue: str = "default") -> None:
    from spakweb.runs.tasks import advance

    advance.apply_async((key,), queue=queue)
