"""The app `fleet`; a worker that `celery worker` started sends heartbeats as soon as it takes messages."""

import threading
from typing import Any

from celery.signals import worker_ready
from django.apps import AppConfig


class FleetConfig(AppConfig):
    name = "spakweb.fleet"
    label = "fleet"

    def ready(self) -> None:
        worker_ready.connect(beat, dispatch_uid="spak_fleet")


def beat(sender: Any, **kwargs: Any) -> None:
    from spakweb.fleet.actions import beat_here

    controller = sender.controller
    beat_here(
        threading.Event(), [queue.name for queue in sender.task_consumer.queues], controller.concurrency
    )
