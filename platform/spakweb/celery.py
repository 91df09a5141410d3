"""The Celery application: the same tasks embedded (messages as files) and distributed (Redis).

`Pulse` asks Redis now and then whether it is there. A worker that has as many messages in hand as it may does
not read, so it would never see that the connection they came by is gone; and as it can acknowledge none of
them, it would never read again.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, bootsteps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")

PULSE_S = 3.0


def make_folders() -> None:
    """Embedded, messages are files in the data folder."""
    from django.conf import settings

    if not settings.REDIS_URL:
        (settings.QUEUE_DIR / "control").mkdir(parents=True, exist_ok=True, mode=0o700)


class Pulse(bootsteps.StartStopStep):
    """An error of the connection in a timer makes the consumer connect again."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    entry: Any = None

    def include_if(self, consumer: Any) -> bool:
        return str(consumer.app.conf.broker_url).startswith(("redis://", "rediss://"))

    def start(self, consumer: Any) -> None:
        ping = consumer.connection.default_channel.client.ping
        self.entry = consumer.timer.call_repeatedly(PULSE_S, ping)

    def stop(self, consumer: Any) -> None:
        if self.entry is not None:
            self.entry.cancel()


app = Celery("spakweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["spakweb.runs"])
app.steps["consumer"].add(Pulse)
