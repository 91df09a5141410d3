"""Asking for jobs, and the sweep that sends what was lost.

A message carries a kind and a key, and may be lost, doubled or late: the row decides. `want` writes the row
and sends a message when the transaction commits. `sweep` adds what kinds find in their own tables, and sends
a message for each job that should be done and for which none is under way, one team after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, transaction
from django.db.models import CharField, F, Q, QuerySet, Window
from django.db.models.functions import Cast, RowNumber
from kombu.exceptions import KombuError

from spakweb.ground import clock
from spakweb.ground.celery_app import app
from spakweb.store.jobs.leases import APART, free
from spakweb.store.jobs.models import Due, Job
from spakweb.work.jobs.kinds import Kind, kinds

RESEND_AFTER = timedelta(seconds=30)
"""After so long a message counts as lost."""
AT_A_TIME = 40
"""Jobs that one sweep sends, and that it adds of a kind."""
KEPT, PRUNE_S, PRUNED = timedelta(days=7), 600, 400
"""For so long a job that was done or failed is shown; how often older ones are removed, and how many."""
FAILED_REST = timedelta(minutes=10)
"""What failed and is found again is tried again after so long."""
TASK = "jobs.do"

log = logging.getLogger(__name__)


def want(kind: str, key: object, team: int) -> None:
    """Ask for a job, now. Inside a transaction: a message is sent when it commits."""
    now, queue = clock.now(), settings.JOB_QUEUE
    row = Job(kind=kind, key=str(key), team_id=team, queue=queue, wanted_at=now, enqueued_at=now)
    fresh = ("wanted_at", "due", "tries", "error", "enqueued_at", "queue")
    Job.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["kind", "key"], update_fields=[*fresh]
    )
    transaction.on_commit(partial(send, kind, str(key), queue))


def drop(kind: str, key: object) -> None:
    """What the key names is removed: a worker that holds the job loses it."""
    Job.objects.filter(kind=kind, key=str(key)).delete()


def call_off(kind: str, key: object) -> None:
    """The job is wanted no more: a worker that holds it loses it."""
    freed = {"wanted_at": None, "due": None, "holder": "", "lease_until": None, "fence": F("fence") + 1}
    Job.objects.filter(kind=kind, key=str(key)).update(**freed)


def is_wanted(kind: str, key: object) -> bool:
    """Whether the job is to be done, or is under way."""
    return Job.objects.filter(kind=kind, key=str(key), wanted_at__isnull=False).exists()


def send(kind: str, key: str, queue: str) -> None:
    """Send a message. A broker that is away is logged and no error: the sweep sends another."""
    try:
        app.send_task(TASK, (kind, key), queue=queue, retry=False)
    except (OSError, KombuError) as error:
        log.warning("%s %s was not put into queue %s: %s", kind, key, queue, type(error).__name__)
        Job.objects.filter(kind=kind, key=key, holder="").update(enqueued_at=None)


def rested(now: datetime) -> Q:
    """Jobs whose time has come: also where the clock was set back since it was written."""
    return Q(due=None) | Q(due__lte=now) | Q(enqueued_at__gt=now + APART)


def ready(now: datetime) -> Q:
    """Jobs that a worker may take."""
    return Q(wanted_at__isnull=False) & rested(now) & free(now)


@dataclass(frozen=True)
class Table:
    """A table of work that sweeps look through; `Job` is one, that of runs another."""

    model: type[Due]
    ready: Callable[[datetime], Q]
    """Rows that a worker may take."""
    died: Q
    """Of these, rows that a worker had and has no more."""
    send: Callable[[dict[str, Any]], None]
    """Sends a message for a row: the values of its columns."""
    columns: tuple[str, ...] = ()
    """What `send` and `freed` are given beside pk, key, team, queue and fence."""
    freed: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: {}
    """What is written to a row that is put back, beside that a message is sent."""


def put_back(table: Table, rows: QuerySet[Any], *, most: int, at_once: bool = False) -> int:
    """Send messages for rows that are to be done and for which none is under way: one team after the other,
    and for no row that a stopped worker has locked. `at_once`: also where a message may be under way. Gives
    how many."""
    now = clock.now()
    rows = rows.filter(table.ready(now))
    if not at_once:
        unsent = Q(enqueued_at=None) | Q(enqueued_at__lt=now - RESEND_AFTER) | Q(enqueued_at__gt=now + APART)
        rows = rows.filter(unsent | Q(due__isnull=False) | table.died)
    columns = ("pk", "key", "team", "queue", "fence", *table.columns)
    longest_waiting = in_turn(rows, "team", F("enqueued_at").asc(nulls_first=True), F("pk").asc())
    sent = 0
    for row in list(longest_waiting.values(*columns)[:most]):
        freed = table.freed(row)
        with transaction.atomic():
            now = clock.now()  # the one before may be old by now: a lease renewed since looks too far ahead
            mine = table.model._default_manager.filter(table.ready(now), pk=row["pk"], fence=row["fence"])
            locked = mine.select_for_update(skip_locked=True, no_key=True)
            if locked.values_list("pk").first() is None:
                continue
            mine.update(enqueued_at=now, due=None, **freed)
        sent += 1
        table.send(row | freed)
    return sent


JOBS = Table(
    Job,
    ready,
    ~Q(holder="") & Q(enqueued_at__lt=F("lease_until")),
    lambda row: send(row["kind"], row["key"], row["queue"]),
    ("kind",),
    lambda row: {"queue": settings.JOB_QUEUE},
)


def sweep(only: Collection[str] = ()) -> int:
    """Add the jobs that kinds find, and put back those that are to be done; gives how many. `only`: of these
    kinds."""
    for kind in kinds().values():
        if not only or kind.name in only:
            try:
                _find(kind)
            except DatabaseError:
                raise
            except Exception:  # the others go on
                log.exception("work of kind %s was not looked for", kind.name)
    sent = put_back(JOBS, Job.objects.filter(kind__in=only or list(kinds())), most=AT_A_TIME)
    if not only and cache.add("jobs.pruned", 1, PRUNE_S):
        done = Job.objects.filter(wanted_at=None, done_at__lt=clock.now() - KEPT)
        Job.objects.filter(pk__in=list(done.values_list("pk", flat=True)[:PRUNED])).delete()
    return sent


def prompt() -> int:
    """The same of kinds that are looked for twice a second."""
    return sweep([kind.name for kind in kinds().values() if kind.prompt])


def in_turn(rows: QuerySet[Any], team: str, *order: Any) -> QuerySet[Any]:
    """The rows so that each team has its turn, those of a team in this order."""
    turn = Window(RowNumber(), partition_by=F(team), order_by=order)
    return rows.annotate(turn=turn).order_by("turn", *order)


def to_do(kind: str, rows: QuerySet[Any], key: str = "pk", team: str = "team") -> list[tuple[str, int]]:
    """What a kind's `find` gives: keys of rows, each with its team. Only of those that nobody asked for yet,
    so that some that rest hold up no others; teams take turns."""
    asked = Job.objects.filter(kind=kind, wanted_at__isnull=False).values("key")
    unasked = rows.annotate(job_key=Cast(key, CharField())).exclude(job_key__in=asked)
    return list(in_turn(unasked, team, F(key).asc()).values_list("job_key", team)[:AT_A_TIME])


def _find(kind: Kind) -> None:
    """Want what the kind finds and nobody wants yet, but what was done or failed a moment ago."""
    found = {str(key): team for key, team in kind.find()}
    if not found:
        return
    known = Job.objects.filter(kind=kind.name, key__in=found)
    now = clock.now()
    over = Q(done_at=None) | Q(done_at__gt=now + APART)
    over |= Q(error="", done_at__lte=now - kind.every) | Q(done_at__lte=now - FAILED_REST)
    known.filter(over, wanted_at=None).update(wanted_at=now, due=None, tries=0, enqueued_at=None)
    new = found.keys() - set(known.values_list("key", flat=True))
    rows = [Job(kind=kind.name, key=key, team_id=found[key], wanted_at=now) for key in sorted(new)]
    Job.objects.bulk_create(rows, ignore_conflicts=True)
