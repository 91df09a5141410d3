"""Doing a job: `do(kind, key)` takes it, calls the action of its kind, and writes what came of it.

A message may come twice, late or never: the lease admits one worker, and a job that is not wanted is left. A
worker that dies leaves a lease that ends by itself; one that froze finds another fence and writes nothing.
What goes wrong:

    a fault of the host, a lock         tried again after HOST_PAUSE, for as long as it takes
    `Again`                             tried again after the kind's next pause; after the last it has failed
    an error that nobody expected       the same
    a worker that died with it          the same, at once
    any other UserError                 it has failed
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Case, F, Value, When

from spak.errors import UserError, of_host
from spakweb.ground import clock
from spakweb.ground.host_faults import is_fault
from spakweb.ground.unsafe_text import storable
from spakweb.store.jobs.leases import renewing, until
from spakweb.store.jobs.models import Job
from spakweb.store.jobs.pauses import pause
from spakweb.work.jobs.hold import Hold, Lost
from spakweb.work.jobs.kinds import Again, Kind, kinds
from spakweb.work.jobs.queue import ready, send

HOST_PAUSE = timedelta(seconds=3)

log = logging.getLogger(__name__)

stopping = threading.Event()
"""Set when this process is to end: it begins nothing more."""
in_hand: dict[int, Hold] = {}
"""Jobs that this process does, by their rows."""


def do(name: str, key: str) -> None:
    """Do a job that is wanted and that nobody holds."""
    kind = kinds().get(name)
    if kind is None:
        return
    if stopping.is_set():  # the message is used up: the next sweep sends another
        Job.objects.filter(kind=name, key=key, holder="").update(enqueued_at=None)
        return
    hold = take(kind, key)
    if hold is not None:
        in_hand[hold.row.pk] = hold
        try:
            with suppress(Lost):
                _try(kind, hold)
        finally:
            in_hand.pop(hold.row.pk, None)


def let_go() -> int:
    """This process ends: give what it has not finished to others, who take it at once and count no try. What
    its threads still write is lost. Gives how many. Raises: DatabaseError."""
    freed = {"holder": "", "lease_until": None, "enqueued_at": None, "fence": F("fence") + 1}
    return sum(hold.mine.update(**freed) for hold in list(in_hand.values()))


def take(kind: Kind, key: str) -> Hold | None:
    """The lease of a job that is to be done; None where there is none to take."""
    now = clock.now()
    rows = Job.objects.filter(ready(now), kind=kind.name, key=key)
    row = rows.select_related("team").first()
    if row is None:
        return None
    died = int(row.holder != "")
    holder = f"{os.uname().nodename[:40]}:{os.getpid()}"
    taken = {"holder": holder, "lease_until": until(now), "enqueued_at": now, "fence": F("fence") + 1}
    if not rows.filter(fence=row.fence).update(**taken, due=None, tries=F("tries") + died):
        return None
    row.fence, row.tries = row.fence + 1, row.tries + died
    if died:
        log.warning("%s: the worker that had it died, for the %d. time in a row", row, row.tries)
    return Hold(row, kind.longest)


def _try(kind: Kind, hold: Hold) -> None:
    if hold.tries > len(kind.waits):
        _fail(kind, hold, f"web.worker: {hold.tries} workers in a row died with it")
        return
    try:
        with renewing(hold.keep, str(hold.row)):
            result = kind.act(hold)
    except Lost:
        raise
    except Again as why:
        _again(kind, hold, why)
    except Exception as error:
        _went_wrong(kind, hold, error)
    else:
        if result is None:
            hold.mine.delete()
            return
        result = storable(result)
        done = {
            "error": str(result.get("error", ""))[:300],
            "result": result,
            "done_at": clock.now(),
            "tries": 0,
        }
        _put_down(hold, **done, wanted_at=None, due=None)


def _went_wrong(kind: Kind, hold: Hold, error: Exception) -> None:
    words = (
        f"{error.code}: {error.message}"
        if isinstance(error, UserError)
        else f"{type(error).__name__}: {error}"
    )
    if isinstance(error, DatabaseError):
        connection.close_if_unusable_or_obsolete()
    if isinstance(error, DatabaseError) or is_fault(error) or of_host(error):
        log.warning("%s: %s", hold.row, error)
        _again(kind, hold, Again(words, HOST_PAUSE.total_seconds(), counts=False))
    elif isinstance(error, UserError):
        _fail(kind, hold, words)
    else:
        log.exception("%s: its worker failed", hold.row)
        _again(kind, hold, Again(f"web.worker: the worker that had it failed: {words}"))


def _again(kind: Kind, hold: Hold, why: Again) -> None:
    if why.counts and hold.tries >= len(kind.waits):
        _fail(kind, hold, why.error)
        return
    wait = pause(kind.waits, hold.tries + 1) if why.wait_s is None else timedelta(seconds=why.wait_s)
    due = clock.now() + wait if wait else None
    tries = hold.tries + 1 if why.counts else hold.tries if why.error else 0
    _put_down(hold, error=storable(why.error)[:300], tries=tries, due=due)


def _fail(kind: Kind, hold: Hold, error: str) -> None:
    error = storable(error)
    with hold.writing():
        kind.failed(hold.key, error)
        _put_down(hold, error=error[:300], done_at=clock.now(), wanted_at=None, due=None)
    log.warning("%s failed: %s", hold.row, error)


def _put_down(hold: Hold, **columns: Any) -> None:
    """Write what came of it and let it go; where somebody asked again meanwhile, it is done again at once."""
    fresh = {"wanted_at": F("wanted_at"), "due": F("due"), "tries": F("tries")}  # as `want` wrote them
    for name in fresh.keys() & columns.keys():
        same = When(wanted_at=hold.row.wanted_at, then=Value(columns[name], Job._meta.get_field(name)))
        columns[name] = Case(same, default=fresh[name])
    freed = {"holder": "", "lease_until": None, "enqueued_at": clock.now()}
    if not hold.mine.update(**columns, **freed):
        raise Lost
    row = Job.objects.filter(pk=hold.row.pk, due=None, wanted_at__isnull=False).first()
    if row is not None:
        transaction.on_commit(lambda: send(row.kind, row.key, row.queue))
