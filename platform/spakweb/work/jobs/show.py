"""What a team's admins see of its jobs, and trying one again: the page *Work* and the API.

Runs are work too, and have pages of their own.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from spakweb.ground import access, clock
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.jobs.leases import held, is_held
from spakweb.store.jobs.models import Job
from spakweb.work.jobs import queue
from spakweb.work.jobs.kinds import kinds

STATES = ("failed", "running", "waiting", "done")
SHOWN = 50
"""Jobs of each state that are shown, the newest first."""


def of_state(team: Team, state: str) -> QuerySet[Job]:
    """The team's jobs in that state. Raises: Refused `web.filter`."""
    wanted, here = Q(wanted_at__isnull=False), held(clock.now())
    chosen = {
        "failed": ~wanted & ~Q(error=""), "running": wanted & here, "waiting": wanted & ~here,
        "done": ~wanted & Q(error=""),
    }.get(state)  # fmt: skip
    if chosen is None:
        raise Refused("web.filter", f"{state[:40]!r} is not a state.", f"One of: {', '.join(STATES)}.")
    return Job.objects.filter(chosen, team=team).order_by("-done_at", "-wanted_at", "-pk")


def row_of(job: Job) -> dict[str, Any]:
    """One job as people and programs see it."""
    now = clock.now()
    if job.wanted_at is None:
        state = "failed" if job.error else "done"
    else:
        state = "running" if is_held(job.holder, job.lease_until, now) else "waiting"
    kind = kinds().get(job.kind)
    return {
        "id": job.pk, "kind": job.kind, "title": kind.title if kind else job.kind, "key": job.key,
        "state": state, "error": job.error, "tries": job.tries, "queue": job.queue,
        "wanted_at": job.wanted_at, "due": job.due, "done_at": job.done_at,
        "worker": job.holder if state == "running" else "",
    }  # fmt: skip


def retry(user: Any, job: Job) -> None:
    """Have a job done now that failed, or however long it rests. Raises: Refused `web.work_decided`."""
    access.require(user, "work.manage", job)
    with transaction.atomic():
        kind = kinds().get(job.kind)
        failed = job.wanted_at is None and job.error
        if kind is None or (failed and not kind.reopen(job.key)):
            hint = "The page of what it was for begins it anew."
            raise Refused("web.work_decided", "What became of this job is written down for good.", hint, 409)
        queue.want(job.kind, job.key, job.team_id)
        record(user, "work.retried", str(job), job.team)
