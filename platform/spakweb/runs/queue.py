"""Putting a run into its queue, and choosing which run a worker goes on with.

A message carries a run's key, but what it gives is a slot: `pick` chooses, among the runs of that queue that
should go on, one of the team that has the fewest in hand, the longest waiting first, and none of a team that
has as many as it may. As there is a message for every such run, all of them come to their turn. A message may
come twice, late or never: advancing is idempotent, and the sweep puts back what was lost.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, Min, OuterRef, Q
from kombu.exceptions import KombuError

from spakweb import clock
from spakweb.runs import news
from spakweb.runs.models import Command, Run, State

log = logging.getLogger(__name__)


def enqueue(run: Run) -> None:
    """Inside a transaction: sent when it commits."""
    Run.objects.filter(pk=run.pk).update(enqueued_at=clock.now())
    key, queue, count = run.key, run.queue, run.count
    transaction.on_commit(lambda: send(key, queue))
    transaction.on_commit(lambda: news.tell(key, count))


def send(key: str, queue: str = "default") -> None:
    """A message for one slot. A broker that is away is told of and no error: the sweep tries again."""
    from spakweb.celery import app, make_folders

    make_folders()
    try:
        app.send_task("runs.advance", (key,), queue=queue, retry=False)
    except (OSError, KombuError) as error:
        log.warning("run %s was not put into queue %s: %s", key, queue, type(error).__name__)
        Run.objects.filter(key=key).update(enqueued_at=None)


def due() -> Q:
    """Runs that should go on: begun or to begin, or stopped and asked something."""
    asked = Exists(Command.objects.filter(run=OuterRef("pk"), done_at=None)) | ~Q(wanted="")
    on = Q(state__in=(State.QUEUED, State.RUNNING)) | Q(state__in=(State.WAITING, State.PAUSED)) & asked
    return Q(only_shown="") & on


def free(now: datetime) -> Q:
    """Runs that nobody holds."""
    return Q(holder="") | Q(lease_until=None) | Q(lease_until__lt=now)


def pick(queue: str, key: str = "") -> str | None:
    """The run that the next slot of the queue goes to; `key` itself when somebody wants it to stop."""
    now = clock.now()
    waiting = Run.objects.filter(due(), free(now), queue=queue).order_by()
    if key and waiting.filter(key=key).exclude(wanted="").exists():
        return key
    in_hand = Run.objects.exclude(holder="").filter(lease_until__gte=now).order_by()
    having = dict(in_hand.values_list("team").annotate(Count("pk")))
    teams = [
        (having.get(team, 0), oldest or now, team)
        for team, oldest in waiting.values_list("team").annotate(Min("enqueued_at"))
        if having.get(team, 0) < settings.TEAM_RUNS
    ]
    if not teams:
        return None
    _, _, team = min(teams)
    found: str | None = (
        waiting.filter(team=team).order_by("enqueued_at", "pk").values_list("key", flat=True).first()
    )
    return found
