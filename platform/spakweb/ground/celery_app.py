"""The Celery application: the same tasks embedded (messages as files) and distributed (Redis).

A sender of messages imports `app` from here. CELERY_IMPORTS of the settings names the modules of the tasks.

`Pulse` looks now and then whether Redis is there. A worker that has as many messages in hand as it may does
not read, so it would never see that the connection they came by is gone; and as it can acknowledge none of
them, it would never read again. It sends nothing over that connection: the answer to a ping would be taken
for a message, and a message for the answer.

`Refuse` lets no worker begin while a restore of the data folder is unfinished, and on newer tables.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps
from django.conf import settings
from django.db import DatabaseError

from spakweb.ground import broker
from spakweb.ground.database import restoring, tables
from spakweb.ground.errors import Refused

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "spakweb.settings")

PULSE_S = 3.0


class Pulse(bootsteps.StartStopStep):
    """An error of the connection in a timer makes the consumer connect again."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    entry: Any = None

    def include_if(self, consumer: Any) -> bool:
        """Whether the broker is Redis."""
        return str(consumer.app.conf.broker_url).startswith(("redis://", "rediss://"))

    def start(self, consumer: Any) -> None:
        """Look at the connection every PULSE_S seconds."""
        channel = consumer.connection.default_channel
        self.entry = consumer.timer.call_repeatedly(PULSE_S, look, (channel,))

    def stop(self, consumer: Any) -> None:
        """Look no longer."""
        if self.entry is not None:
            self.entry.cancel()


def look(channel: Any) -> None:
    """Raises: ConnectionError when the other end has hung up; the client's own when Redis gives no answer."""
    reading = channel.client.connection
    held = getattr(reading, "_sock", None)
    if held is not None:
        asked = select.poll()
        asked.register(held, select.POLLRDHUP)
        if asked.poll(0):
            raise ConnectionResetError("Redis has closed the connection that messages come by")
    with channel.conn_or_acquire() as other:
        other.ping()


class Refuse(bootsteps.Step):
    """A step of a worker's start that ends it where it may not begin."""

    def include_if(self, worker: Any) -> bool:
        """False: the step only checks. Exits where a restore is unfinished or the tables are newer; waits for
        no database that is away."""
        try:
            restoring.refuse(Path(settings.DATA_DIR))
            with suppress(DatabaseError):
                tables.refuse()
        except Refused as why:
            sys.exit(f"worker: {why.message} [{why.code}]\n  fix: {why.hint}")
        return False


broker.register()
app = Celery("spakweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.steps["consumer"].add(Pulse)
app.steps["worker"].add(Refuse)
