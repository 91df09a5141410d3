"""What workers are asked to do with merge queues: advance one, and after each sweep all that wait; and repeat
checks that are lost.

The task carries a key and nothing else, may be repeated and may be lost: the sweep sends it again.
"""

from __future__ import annotations

import logging

from celery import shared_task
from django.core.cache import cache
from django.db import OperationalError, connection
from django.dispatch import receiver

from spakweb.reviews import checks, merge_queue, queue_steps
from spakweb.reviews.models import Queued
from spakweb.worker import held_run
from spakweb.worker.tasks import after_sweep

STEPS = 20
"""Steps of one message; then another one is sent, so that others have their turn."""
REPEAT_S = 10
"""How often the sweep asks for a queue that waits, and looks for checks that are lost."""

log = logging.getLogger(__name__)


@shared_task(name="reviews.queue", acks_late=True, ignore_result=True)
def go_on(spec: int) -> None:
    """Advance the merge queue of a spec until it is empty or waits for checks."""
    for _ in range(STEPS):
        if held_run.stopping.is_set():
            return
        try:
            if not queue_steps.step(spec):
                return
        except OperationalError as error:  # a lock that did not come: the sweep asks again
            log.warning("the merge queue of spec %s did not go on: %s", spec, error)
            connection.close()
            return
    merge_queue.ask(spec)


@receiver(after_sweep, dispatch_uid="reviews.sweep")
def put_back(**ignored: object) -> None:
    """Ask for the queues in which a patch waits, and for checks that are lost."""
    if cache.add("reviews.checks", 1, REPEAT_S):
        checks.send_lost()
    rows = Queued.objects.filter(state=Queued.State.WAITING).order_by("patch__spec")
    for spec in rows.values_list("patch__spec", flat=True).distinct():
        if cache.add(f"reviews.queue.{spec}", 1, REPEAT_S):
            merge_queue.ask(spec)
