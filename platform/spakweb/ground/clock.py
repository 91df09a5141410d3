"""The time by which hosts agree about leases: that of the database which they share.

`now()` gives it. With PostgreSQL it is asked now and then and counted on from there by the clock of this
machine that nobody sets: leases are right on a host whose date is wrong, or set while it works. With SQLite
all processes stand on one machine, and its date is the one. Not for coroutines.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.utils import timezone

ASK_S = 10.0
"""So long it is counted on."""


class _Asked:
    """When the database was asked last, by the clock of this machine, and what it said."""

    def __init__(self) -> None:
        self.known: tuple[float, datetime] | None = None

    def now(self) -> datetime:
        known, here = self.known, time.monotonic()
        if known is None or here - known[0] > ASK_S:
            with connection.cursor() as cursor:
                cursor.execute("SELECT clock_timestamp()")
                (at,) = cursor.fetchone()
            self.known = known = time.monotonic(), at.astimezone(UTC)
            return known[1]
        return known[1] + timedelta(seconds=here - known[0])


_asked = _Asked()


def now() -> datetime:
    """Raises: DatabaseError."""
    return _asked.now() if connection.vendor == "postgresql" else timezone.now()


def _after_fork() -> None:
    global _asked
    _asked = _Asked()


os.register_at_fork(after_in_child=_after_fork)
