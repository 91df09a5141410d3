"""A worker that `celery worker` started sends heartbeats while it takes messages."""

import contextlib
import threading
from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.db import DatabaseError

from spakweb.store.ledger.store import leases
from spakweb.work.fleet import actions

over = threading.Event()
"""Set when the worker of this process ends."""


@worker_ready.connect(dispatch_uid="spak_fleet")
def beat(sender: Any, **kwargs: Any) -> None:
    """Start the heartbeats of this worker."""
    controller = sender.controller
    actions.beat_here(over, [queue.name for queue in sender.task_consumer.queues], controller.concurrency)


@worker_shutdown.connect(dispatch_uid="spak_fleet")
def leave(**ignored: Any) -> None:
    """Take this worker off the list, and end its heartbeats."""
    over.set()
    with contextlib.suppress(DatabaseError):
        actions.leave(leases.process)
