"""The app `fleet`; a worker that `celery worker` started sends heartbeats while it takes messages."""

import contextlib
import threading
from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.apps import AppConfig
from django.db import DatabaseError

over = threading.Event()
"""Set when the worker of this process ends."""


class FleetConfig(AppConfig):
    """The app of runners."""

    name = "spakweb.fleet"
    label = "fleet"

    def ready(self) -> None:
        worker_ready.connect(beat, dispatch_uid="spak_fleet")
        worker_shutdown.connect(leave, dispatch_uid="spak_fleet")


def beat(sender: Any, **kwargs: Any) -> None:
    """Start the heartbeats of this worker."""
    from spakweb.fleet.actions import beat_here

    controller = sender.controller
    beat_here(over, [queue.name for queue in sender.task_consumer.queues], controller.concurrency)


def leave(**ignored: Any) -> None:
    """Take this worker off the list, and end its heartbeats."""
    from spakweb.fleet import actions
    from spakweb.ledger.store import leases

    over.set()
    with contextlib.suppress(DatabaseError):
        actions.leave(leases.process)
