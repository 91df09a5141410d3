"""The merge queue of a spec, as rows: who waits, in which place, and how that ended.

People queue a patch and take it out in actions.py; queue_steps.py is what a worker does with the first of
the queue. `leave` is called inside the transaction that it reports; `ask` makes the job of a worker that
advances the queue.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from spakweb.store.reviews.models import Patch, Queued
from spakweb.store.specs.models import Spec
from spakweb.work.jobs import queue as jobs

ADVANCE = "reviews.queue"
"""The kind of job that advances one."""


def waiting(spec: Spec | int) -> QuerySet[Queued]:
    """The queue of a spec, the first to be merged first."""
    rows = Queued.objects.filter(patch__spec=spec, state=Queued.State.WAITING)
    return rows.select_related("patch__spec__team", "user").order_by("pk")


def entry_of(patch: Patch) -> Queued | None:
    """Its place in the queue."""
    return waiting(patch.spec).filter(patch=patch).first()


def place(entry: Queued) -> int:
    """Counted from 1: the first is merged next."""
    return waiting(entry.patch.spec).filter(pk__lte=entry.pk).count()


def refused(patch: Patch) -> Queued | None:
    """Why the queue took the patch out, as long as nobody has queued or revised it since."""
    last = Queued.objects.filter(patch=patch).order_by("-pk").first()
    if last is None or last.state != Queued.State.REFUSED or last.revision_id != patch.latest.pk:
        return None
    return last


def leave(patch: Patch, state: str, words: str) -> bool:
    """Take the patch out of the queue; False where it was not in it. The caller holds the row of the
    patch."""
    rows = Queued.objects.filter(patch=patch, state=Queued.State.WAITING)
    if not rows.update(state=state, words=words[:300]):
        return False
    ask(patch.spec)
    return True


def ask(spec: Spec) -> None:
    """Have the queue of a spec looked at, once the transaction is committed: within it, it would hold the row
    of the job before it has all that a step has."""
    transaction.on_commit(partial(jobs.want, ADVANCE, spec.pk, spec.team_id))
