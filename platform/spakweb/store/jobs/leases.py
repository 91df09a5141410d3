"""The lease of a run: how long it lasts (LEASE_S), and whether a run's row says that somebody holds it.

The holder renews it after a fraction of LEASE_S (store/ledger/store.py, work/campaigns/ledger.py). Every time
is written at most so far ahead: a lease LEASE_S, the next try of a run MOST_PAUSE. One that is much further
ahead was written before the clock was set back, and counts as over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import DatabaseError, connection
from django.db.models import Q

LEASE_S = 15.0
"""Seconds after which a run whose holder no longer renews its lease may be taken by another."""
MOST_LEASE = timedelta(seconds=4 * LEASE_S)
"""Further ahead no lease ends, though the clocks of two hosts differ by seconds."""
MOST_PAUSE = timedelta(minutes=10)
"""The longest pause before a run is tried again."""
SILENT = timedelta(minutes=2)
"""After so long without a word from its guard a guarded session is shown as not heard of."""
APART = timedelta(seconds=3)
"""By so much two processes may differ in what time it is for the database."""

log = logging.getLogger(__name__)


def until(now: datetime) -> datetime:
    """When a lease ends that is taken or renewed now."""
    return now + timedelta(seconds=LEASE_S)


def held(now: datetime) -> Q:
    """Runs that somebody holds."""
    return ~Q(holder="") & Q(lease_until__gte=now, lease_until__lte=now + MOST_LEASE)


def free(now: datetime) -> Q:
    """Runs that nobody holds."""
    return Q(holder="") | lapsed(now)


def lapsed(now: datetime) -> Q:
    """Runs whose lease is over, or was never taken."""
    return Q(lease_until=None) | Q(lease_until__lt=now) | Q(lease_until__gt=now + MOST_LEASE)


def is_held(holder: str, lease_until: datetime | None, now: datetime) -> bool:
    """The same of one row."""
    return bool(holder) and lease_until is not None and now <= lease_until <= now + MOST_LEASE


def silent_since(now: datetime) -> datetime:
    """A guarded session that was heard of last before this moment is shown as not heard of."""
    return now - SILENT


@contextmanager
def renewing(renew: Callable[[], bool], what: str) -> Iterator[None]:
    """Renews a lease meanwhile, until `renew` says that it is lost."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(LEASE_S / 3):
            try:
                if not renew():
                    break
            except DatabaseError as error:  # the next time may do it; a lease outlives three
                log.warning("the lease of %s was not renewed: %s", what, type(error).__name__)
        connection.close()

    thread = threading.Thread(target=work, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def resting(now: datetime) -> Q:
    """Runs that could not go on and are to be tried again later."""
    return Q(due__gt=now, due__lte=now + MOST_PAUSE + APART)
