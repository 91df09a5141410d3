"""Putting a run into its queue, and choosing which run a worker goes on with.

A message carries a run's key, but what it gives is a slot: `pick` chooses, among the runs of that queue that
should go on, one of the team that has the fewest in hand, the longest waiting first, and none of a team that
has as many as it may. As there is a message for every such run, all of them come to their turn. A message may
come twice, late or never: advancing is idempotent, and the sweep puts back what was lost.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, Min, OuterRef, Q
from kombu.exceptions import KombuError

from spakweb import clock
from spakweb.runs import ledger, news
from spakweb.runs.ledger import LEASE_S
from spakweb.runs.models import Command, Run, State
from spakweb.teams.models import Team

APART = timedelta(seconds=3)
"""By so much two processes may differ in what time it is for the database."""
CANDIDATES = 4
"""Runs that are tried where others take them at the same moment without asking."""

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


def ready(now: datetime) -> Q:
    """Runs that a slot may go to: due, and held by nobody; one that could not go on not before its time."""
    return due() & free(now) & ~Q(enqueued_at__gt=now + APART)


def next_up(queue: str) -> list[int]:
    """The teams that the next slot of the queue may go to, in order."""
    now = clock.now()
    waiting = Run.objects.filter(ready(now), queue=queue).order_by()
    in_hand = Run.objects.exclude(holder="").filter(lease_until__gte=now).order_by()
    having = dict(in_hand.values_list("team").annotate(Count("pk")))
    teams = [
        (having.get(team, 0), oldest or now, team)
        for team, oldest in waiting.values_list("team").annotate(Min("enqueued_at"))
        if having.get(team, 0) < settings.TEAM_RUNS
    ]
    return [team for *_, team in sorted(teams)]


def next_of(queue: str) -> str | None:
    """The run that a slot would go to now; it is not chosen."""
    for team in next_up(queue):
        waiting = Run.objects.filter(ready(clock.now()), queue=queue, team=team)
        return waiting.order_by("enqueued_at", "pk").values_list("key", flat=True).first()
    return None


def pick(queue: str, key: str = "") -> str | None:
    """The run that the next slot of the queue goes to, chosen for this process so that nobody else's slot
    takes it, until `let_go`; `key` itself when somebody wants it to stop."""
    waiting = Run.objects.filter(due(), free(clock.now()), queue=queue)
    if key and waiting.filter(key=key).exclude(wanted="").exists():
        return key
    for team in next_up(queue):
        if found := _chosen(queue, team):
            return found
    return None


def _chosen(queue: str, team: int) -> str | None:
    """The longest waiting of a team, if it may have one more: one slot after the other asks for a team."""
    with transaction.atomic():
        list(Team.objects.select_for_update(no_key=True).filter(pk=team).values_list("pk"))
        now = clock.now()
        mine = Run.objects.filter(team=team)
        if mine.exclude(holder="").filter(lease_until__gte=now).count() >= settings.TEAM_RUNS:
            return None
        waiting = mine.filter(ready(now), queue=queue).order_by("enqueued_at", "pk")
        for pk, key in waiting.values_list("pk", "key")[:CANDIDATES]:
            until = now + timedelta(seconds=LEASE_S)
            if mine.filter(free(now), pk=pk).update(holder=ledger.leases.choosing, lease_until=until):
                return str(key)
    return None


def let_go(key: str) -> None:
    """The slot is over, or did not get the run's lease."""
    Run.objects.filter(key=key, holder=ledger.leases.choosing).update(holder="", lease_until=None)
