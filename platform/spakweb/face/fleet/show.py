"""What the fleet does, for pages: runners with the runs that they hold, queues, and why one run waits.

A person sees the runs of their own teams; of others only that there are some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from spakweb.ground import clock
from spakweb.ground.teams.models import Team
from spakweb.store.fleet.models import Runner
from spakweb.store.jobs.leases import free
from spakweb.store.jobs.leases import held as are_held
from spakweb.store.ledger.store import CHOOSING
from spakweb.store.runs.models import Run, State
from spakweb.work.worker.queue import due

ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
SHOWN = 50
"""Runs that wait, of the team that looks; of more the count is told."""


@dataclass
class Busy:
    """A runner and what it does."""

    runner: Runner
    runs: list[Run] = field(default_factory=list)
    """Of the team that looks."""
    others: int = 0
    since: datetime | None = None

    @property
    def used(self) -> int:
        """Slots that a run has."""
        return len(self.runs) + self.others

    @property
    def full(self) -> bool:
        """Whether all its slots are in use."""
        return self.used >= self.runner.slots


@dataclass
class Queue:
    """A queue, how many wait in it and since when."""

    name: str
    depth: int = 0
    oldest: datetime | None = None
    runners: int = 0
    """Living ones that serve it."""


def held() -> QuerySet[Run]:
    """Runs that somebody advances just now."""
    return Run.objects.filter(are_held(clock.now()))


def waiting() -> QuerySet[Run]:
    """Runs that would go on and that nobody advances, longest waiting first."""
    return Run.objects.filter(due(), free(clock.now())).order_by("enqueued_at", "pk")


def runners(team: Team | None = None) -> list[Busy]:
    """All of them, living ones first, each with what it holds."""
    found = {runner.process or runner.name: Busy(runner) for runner in Runner.objects.all()}
    for run in held().only("key", "name", "task", "holder", "team_id", "started_at", "enqueued_at"):
        busy = found.get(run.holder.removesuffix(CHOOSING))
        if busy is None:
            continue
        begun = run.enqueued_at or run.started_at
        if begun is not None and (busy.since is None or begun < busy.since):
            busy.since = begun
        if team is not None and run.team_id == team.pk:
            busy.runs.append(run)
        else:
            busy.others += 1
    return sorted(found.values(), key=lambda busy: (not busy.runner.alive, busy.runner.name))


class Waiting(NamedTuple):
    """What a place in a queue depends on."""

    pk: int
    team: int
    queue: str
    since: datetime


def in_line() -> list[Waiting]:
    """All that wait, of every team and queue, longest waiting first."""
    rows = waiting().values_list("pk", "team", "queue", "enqueued_at", "made_at")
    return [Waiting(pk, team, queue, since or made) for pk, team, queue, since, made in rows.iterator()]


def queues(known: Sequence[Busy], line: Sequence[Waiting]) -> list[Queue]:
    """Those that a runner serves or a run waits in."""
    found: dict[str, Queue] = {}
    for busy in known:
        for name in busy.runner.queues:
            found.setdefault(name, Queue(name)).runners += int(busy.runner.alive)
    for one in line:
        queue = found.setdefault(one.queue, Queue(one.queue))
        queue.depth += 1
        queue.oldest = one.since if queue.oldest is None else min(queue.oldest, one.since)
    return sorted(found.values(), key=lambda queue: queue.name)


def why_waits(run: Run) -> str:
    """In words, as "third for gpu, runner x busy since 12:04"; empty when it does not wait for a runner."""
    return reasons(run.team, [run]).get(run.pk, "")


def reasons(
    team: Team,
    runs: Sequence[Run],
    known: Sequence[Busy] | None = None,
    queue: Sequence[Waiting] | None = None,
) -> dict[int, str]:
    """The same of many runs of a team, by their keys in the database; those that do not wait are left out."""
    if not runs:
        return {}
    places = _places(in_line() if queue is None else queue)
    placed = [run for run in runs if run.pk in places]
    known = runners(team) if placed and known is None else known or ()
    full = bool(placed) and held().filter(team=team).count() >= settings.TEAM_RUNS
    return {run.pk: _why(run, places[run.pk], known, full) for run in placed}


def _why(run: Run, place: int, known: Sequence[Busy], full: bool) -> str:
    """`full`: its team has as many runs in hand as it may."""
    queue = run.queue
    at = ORDINALS[place] if place < len(ORDINALS) else f"number {place:,}"
    at += " in the default queue" if queue == "default" else f" for {queue}"
    serving = [busy for busy in known if queue in busy.runner.queues]
    living = [busy for busy in serving if busy.runner.alive]
    if not serving:
        return f"{at}, which no runner serves"
    if not living:
        last = max(serving, key=lambda busy: busy.runner.seen_at or busy.runner.registered_at).runner
        heard = f"last reported {_clock(last.seen_at)}" if last.seen_at else "never reported"
        return f"{at}, runner {last.name} {heard}"
    if run.reason and run.state == State.QUEUED:
        return f"{at}, tried again within a minute: {run.reason}"
    if full:
        return f"{at}, the team already runs as many at once as it may: {settings.TEAM_RUNS}"
    if any(not busy.full for busy in living):
        if run.holder:
            return f"{at}; its runner is gone, and a free one continues it within seconds"
        return f"{at}; a runner is free to take it"
    longest = min(living, key=lambda busy: busy.since or timezone.now())
    return f"{at}, runner {longest.runner.name} busy since {_clock(longest.since)}"


def _places(line: Sequence[Waiting]) -> dict[int, int]:
    """The place of each in its queue, from 1, where teams take turns (worker.queue.pick)."""
    before: Counter[tuple[str, int]] = Counter()
    turns: dict[str, list[tuple[int, int, int]]] = {}
    for at, one in enumerate(line):
        turns.setdefault(one.queue, []).append((before[one.queue, one.team], at, one.pk))
        before[one.queue, one.team] += 1
    return {pk: place for queue in turns.values() for place, (*_, pk) in enumerate(sorted(queue), 1)}


def _clock(when: datetime | None) -> str:
    if when is None:
        return "just now"
    now, local = timezone.localtime(), timezone.localtime(when)
    return local.strftime("%H:%M %Z" if local.date() == now.date() else "%Y-%m-%d %H:%M %Z")


def page(team: Team) -> dict[str, Any]:
    """What the fleet's page shows the team."""
    known, line = runners(team), in_line()
    mine = [one.pk for one in line if one.team == team.pk]
    found = Run.objects.only("pk", "key", "name", "queue", "state", "reason", "holder").in_bulk(mine[:SHOWN])
    shown = [found[pk] for pk in mine if pk in found]
    why = reasons(team, shown, known, line)
    return {
        "runners": known,
        "queues": queues(known, line),
        "waiting": [(run, why[run.pk]) for run in shown],
        "waiting_count": len(mine),
        "living": sum(busy.runner.alive for busy in known),
    }
