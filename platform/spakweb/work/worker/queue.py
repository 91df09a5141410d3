"""Putting a run into its queue, and choosing which run a worker goes on with.

A message carries a run's key, but what it gives is a slot: `pick` chooses, among the runs of that queue that
should go on, one of the team that has the fewest in hand, the longest waiting first, and none of a team that
has as many as it may. As there is a message for every such run, all of them come to their turn. A message may
come twice, late or never: advancing is idempotent, and the sweep puts back what was lost.
"""

from __future__ import annotations

import contextlib
import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Exists, Min, OuterRef, Q
from kombu.exceptions import KombuError

from spak.kernel.state import Effect
from spak.runner import Run as Runner
from spakweb.ground import clock
from spakweb.ground.celery_app import app
from spakweb.ground.teams.models import Team
from spakweb.store.hints import news
from spakweb.store.jobs.leases import LEASE_S, free, held, resting
from spakweb.store.ledger import store
from spakweb.store.runs.models import TRIES, Command, Run, State

DEFAULT, GPU = "default", "gpu"
CANDIDATES = 4
"""Runs that are tried where others take them at the same moment without asking."""

log = logging.getLogger(__name__)


def queue_of(effect: Effect | None, runner: Runner) -> str:
    """The queue of an effect: that of a GPU for a validator which measures on one, and for what a run whose
    SANDBOX is one does in it. A device is not held through questions."""
    if effect is None:
        return ""
    host, inside = runner.performer.host, runner.rules.program.sandbox.upper() == "GPU"
    if effect.act == "validate":
        return GPU if inside or host.validators[effect.name].entry.device else DEFAULT
    jobs = effect.act == "sealed" or (effect.act == "tool" and host.tools[effect.name].entry.sandboxed)
    return GPU if inside and jobs else DEFAULT


def enqueue(run: Run) -> None:
    """A person asks for it. Inside a transaction: sent when it commits."""
    Run.objects.filter(pk=run.pk).update(enqueued_at=clock.now(), due=None, tries=0)
    key, queue, count = run.key, run.queue, run.count
    transaction.on_commit(lambda: send(key, queue))
    transaction.on_commit(lambda: news.publish(key, count))


def send(key: str, queue: str = DEFAULT) -> None:
    """A message for one slot. A broker that is away is told of and no error: the sweep tries again."""
    try:
        app.send_task("runs.advance", (key,), queue=queue, retry=False)
    except (OSError, KombuError) as error:
        log.warning("run %s was not put into queue %s: %s", key, queue, type(error).__name__)
        Run.objects.filter(key=key).update(enqueued_at=None)


def due() -> Q:
    """Runs that should go on: begun or to begin, or stopped and asked something."""
    asked = Exists(Command.objects.filter(run=OuterRef("pk"), done_at=None)) | ~Q(wanted="")
    on = Q(state__in=(State.QUEUED, State.RUNNING)) | Q(state__in=(State.WAITING, State.PAUSED)) & asked
    return Q(only_shown="", tries__lt=TRIES) & on


def ready(now: datetime) -> Q:
    """Runs that a slot may go to: due, and held by nobody; one that could not go on not before its time."""
    return due() & free(now) & ~resting(now)


def not_mine() -> Q:
    """Runs that this process does not hold: the lease of one ends while its renewal hangs, and this process
    would choose it again and again, for it takes nothing from itself."""
    return ~Q(key__in=store.leases.held())


def next_up(queue: str) -> list[int]:
    """The teams that the next slot of the queue may go to, in order."""
    now = clock.now()
    waiting = _waiting(queue, now)
    if not waiting:
        return []
    in_hand = Run.objects.filter(held(now)).order_by()
    having = dict(in_hand.values_list("team").annotate(Count("pk")))
    teams = [
        (having.get(team, 0), oldest or now, team)
        for team, oldest in waiting
        if having.get(team, 0) < settings.TEAM_RUNS
    ]
    return [team for *_, team in sorted(teams)]


def _waiting(queue: str, now: datetime) -> list[tuple[int, datetime | None]]:
    """The teams with runs in the queue that a slot may go to, and since when the first of them waits."""
    runs = Run.objects.filter(ready(now), not_mine(), queue=queue).order_by()
    return list(runs.values_list("team").annotate(Min("enqueued_at")))


def next_of(queue: str) -> str | None:
    """The run that a slot would go to now; it is not chosen."""
    for team in next_up(queue):
        waiting = Run.objects.filter(ready(clock.now()), not_mine(), queue=queue, team=team)
        return waiting.order_by("enqueued_at", "pk").values_list("key", flat=True).first()
    return None


def pick(queue: str, key: str = "") -> str | None:
    """The run that the next slot of the queue goes to, chosen for this process so that nobody else's slot
    takes it, until `let_go`; `key` itself when somebody wants it to stop."""
    waiting = Run.objects.filter(due(), free(clock.now()), not_mine(), queue=queue)
    if key and waiting.filter(key=key).exclude(wanted="").exists():
        return key
    teams = [team for team, _ in _waiting(queue, clock.now())]
    for team in next_up(queue) if len(teams) > 1 else teams:
        if found := _chosen(queue, team):
            return found
    return None


def _chosen(queue: str, team: int) -> str | None:
    """The longest waiting of a team, if it may have one more: one slot after the other asks for a team."""
    with transaction.atomic():
        if connection.features.has_select_for_update:  # else all of the database is locked
            list(Team.objects.select_for_update(no_key=True).filter(pk=team).values_list("pk"))
        now = clock.now()
        mine = Run.objects.filter(team=team)
        if mine.filter(held(now)).count() >= settings.TEAM_RUNS:
            return None
        waiting = mine.filter(ready(now), not_mine(), queue=queue).order_by("enqueued_at", "pk")
        waiting = waiting.select_for_update(skip_locked=True, no_key=True)  # a stopped worker may hold one
        for pk, key in waiting.values_list("pk", "key")[:CANDIDATES]:
            until = now + timedelta(seconds=LEASE_S)
            if mine.filter(free(now), pk=pk).update(
                holder=store.leases.choosing, lease_until=until, due=None
            ):
                return str(key)
    return None


def let_go(key: str) -> None:
    """The slot is over, or did not get the run's lease. Where the database takes nothing now, `let_go_owed`
    does it later: else the run would wait until the lease ends."""
    try:
        Run.objects.filter(key=key, holder=store.leases.choosing).update(holder="", lease_until=None)
    except DatabaseError as error:
        log.warning("run %s is not given back yet: %s", key, type(error).__name__)
        _owed.add(key)


def give_back(key: str) -> None:
    """Let go of a run that the database failed with: no worker died, and the next sweep sends it again."""
    _owed.add(key)
    with contextlib.suppress(DatabaseError):
        let_go_owed()


def let_go_owed() -> None:
    """Raises: DatabaseError."""
    freed = {"holder": "", "lease_until": None, "left_at": None, "enqueued_at": None}
    for key in list(_owed):
        Run.objects.filter(key=key, holder=store.leases.choosing).update(**freed)
        _owed.discard(key)


_owed: set[str] = set()
