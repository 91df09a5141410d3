"""What the fleet does, for pages: runners with the runs that they hold, queues, and why one run waits.

A person sees the runs of their own teams; of others only that there are some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from spakweb.fleet.models import Runner
from spakweb.runs.models import Run
from spakweb.runs.queue import due, free
from spakweb.teams.models import Team

ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


@dataclass
class Busy:
    """A runner and what it does."""

    runner: Runner
    runs: list[Run] = field(default_factory=list)
    """Of the team that looks."""
    others: int = 0
    since: datetime | None = None

    @property
    def full(self) -> bool:
        return len(self.runs) + self.others >= self.runner.slots


@dataclass
class Queue:
    name: str
    depth: int = 0
    oldest: datetime | None = None
    runners: int = 0
    """Living ones that serve it."""


def held() -> QuerySet[Run]:
    """Runs that somebody advances just now."""
    return Run.objects.exclude(holder="").filter(lease_until__gte=timezone.now())


def waiting() -> QuerySet[Run]:
    """Runs that would go on and that nobody advances, longest waiting first."""
    return Run.objects.filter(due(), free(timezone.now())).order_by("enqueued_at", "pk")


def runners(team: Team | None = None) -> list[Busy]:
    """All of them, living ones first, each with what it holds."""
    found = {runner.process or runner.name: Busy(runner) for runner in Runner.objects.all()}
    for run in held().only("pk", "key", "name", "holder", "team_id", "started_at", "enqueued_at"):
        busy = found.get(run.holder)
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


def queues(known: Sequence[Busy]) -> list[Queue]:
    """Those that a runner serves or a run waits in."""
    found: dict[str, Queue] = {}
    for busy in known:
        for name in busy.runner.queues:
            found.setdefault(name, Queue(name)).runners += int(busy.runner.alive)
    for name, since, made in waiting().values_list("queue", "enqueued_at", "made_at"):
        queue = found.setdefault(name, Queue(name))
        queue.depth += 1
        begun = since or made
        queue.oldest = begun if queue.oldest is None else min(queue.oldest, begun)
    return sorted(found.values(), key=lambda queue: queue.name)


def why_waits(run: Run, known: Sequence[Busy] | None = None) -> str:
    """In words, as "third for gpu, runner x busy since 12:04"; empty when it does not wait for a runner."""
    place = _place(run)
    if not place:
        return ""
    at = ORDINALS[place] if place < len(ORDINALS) else f"number {place}"
    serving = [busy for busy in (known or runners(run.team)) if run.queue in busy.runner.queues]
    living = [busy for busy in serving if busy.runner.alive]
    if not serving:
        return f"{at} for {run.queue}, which no runner serves"
    if not living:
        last = max(serving, key=lambda busy: busy.runner.seen_at or busy.runner.registered_at).runner
        heard = f"was last heard {_clock(last.seen_at)}" if last.seen_at else "was never heard"
        return f"{at} for {run.queue}, runner {last.name} {heard}"
    if any(not busy.full for busy in living):
        return f"{at} for {run.queue}, a runner is free"
    longest = min(living, key=lambda busy: busy.since or timezone.now())
    return f"{at} for {run.queue}, runner {longest.runner.name} busy since {_clock(longest.since)}"


def _place(run: Run) -> int:
    """Its place in its queue, where teams take turns (runs.queue.pick); 0 when it does not wait."""
    teams: Counter[int] = Counter()
    turns = {}
    for at, (pk, team) in enumerate(waiting().filter(queue=run.queue).values_list("pk", "team")):
        turns[pk] = teams[team], at
        teams[team] += 1
    mine = turns.get(run.pk)
    return 0 if mine is None else 1 + sum(turn < mine for turn in turns.values())


def _clock(when: datetime | None) -> str:
    if when is None:
        return "just now"
    now, local = timezone.localtime(), timezone.localtime(when)
    return local.strftime("%H:%M" if local.date() == now.date() else "%Y-%m-%d %H:%M")


def page(team: Team) -> dict[str, Any]:
    """What the fleet's page shows the team."""
    known = runners(team)
    mine = list(waiting().filter(team=team).select_related("team")[:50])
    return {
        "runners": known,
        "queues": queues(known),
        "waiting": [(run, why_waits(run, known)) for run in mine],
        "living": sum(busy.runner.alive for busy in known),
    }
