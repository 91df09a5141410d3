"""Jobs under test: a sweep and a worker that does what it was sent, without a broker."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spakweb.ground import clock
from spakweb.ground.teams.models import Team
from spakweb.store.jobs.models import Job
from spakweb.work.jobs import work
from spakweb.work.jobs.queue import sweep


def swept(kind: str) -> list[str]:
    """Sweep jobs of a kind; gives the keys of those that a worker may take now. A moment later than now: the
    clock of the database may be a moment ahead."""
    with pytest.MonkeyPatch.context() as patch:
        real = clock.now
        patch.setattr(clock, "now", lambda: real() + timedelta(seconds=1))
        sweep([kind])
        rows = Job.objects.filter(work.ready(clock.now()), kind=kind)
        return list(rows.order_by("pk").values_list("key", flat=True))


def worked(kind: str) -> list[str]:
    """Sweep jobs of a kind and do them; gives their keys."""
    keys = swept(kind)
    for key in keys:
        work.do(kind, key)
    return keys


def do(kind: str, key: object) -> None:
    """What a worker does with a message."""
    work.do(kind, str(key))


def at_once(kind: str) -> list[str]:
    """The same, of those that rest too."""
    Job.objects.filter(kind=kind).update(due=None)
    return worked(kind)


def wanted(kind: str) -> list[str]:
    """Keys of jobs that are to be done, in order."""
    rows = Job.objects.filter(kind=kind, wanted_at__isnull=False).order_by("pk")
    return list(rows.values_list("key", flat=True))


def job(kind: str) -> Job:
    """The only job of a kind."""
    return Job.objects.get(kind=kind)


def failed_job(team: Team) -> Job:
    """A job that failed and can be tried again."""
    return Job.objects.create(kind="folders.sync", key="0", team=team, error="x", done_at=clock.now())
