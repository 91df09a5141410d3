"""What a worker does with a merge queue: `step(spec)` does one thing for the first patch, in one transaction.

    the spec has a newer version    a revision with both changes, whose checks begin
    a required check has failed     it is taken out, whatever the other checks do
    a required check is missing     it is begun, or waited for
    all that it needs is there      it is merged, byte for byte as it was checked
    anything else                   it is taken out; its author and who queued it get the reason

What to do is derived from the rows, which are locked: a step that was killed left nothing, one that is
repeated finds what the first has done, and two at once wait for each other. A patch that is queued after
another waits until that one is merged or taken out, so that what is checked is what would be merged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from django.db import transaction

from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.text import digest, plural
from spakweb.store.reviews.models import Check, Patch, Queued, Revision
from spakweb.store.specs.models import Spec
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Again, Kind, decided
from spakweb.work.reviews import actions, by_task, checks, merge_queue, notices, rules

STEPS = 20
"""Steps of one turn; then others have theirs."""
REPEAT = timedelta(seconds=10)
"""How often the sweep looks at a queue that waits."""

log = logging.getLogger(__name__)


def find() -> list[tuple[str, int]]:
    """Specs in whose queue a patch waits, each with its team."""
    rows = Queued.objects.filter(state=Queued.State.WAITING).order_by("patch__spec")
    return [(str(pk), team) for pk, team in rows.values_list("patch__spec", "patch__spec__team").distinct()]


def act(hold: Hold) -> dict[str, Any]:
    """Advance the merge queue of a spec until it is empty or waits for checks. Raises: Again, Lost,
    DatabaseError."""
    for done in range(STEPS):
        if not step(int(hold.key), hold.writing):
            return {"steps": done}
    raise Again(wait_s=0, counts=False)


def failed(key: str, error: str) -> None:
    """The first of the queue is taken out: it may be what ends workers."""
    first = merge_queue.waiting(int(key)).first()
    if first is not None:
        Patch.objects.select_for_update().get(pk=first.patch_id)
        _refuse(first, f"it could not be merged: {error}"[:300])


def step(spec: int, writing: Callable[[], AbstractContextManager[Any]] = transaction.atomic) -> bool:
    """Whether something was done, so that there may be more to do; `writing` is its transaction. Raises:
    DatabaseError."""
    first = merge_queue.waiting(spec).first()
    if first is None:
        return False
    with writing():
        Patch.objects.select_for_update().get(pk=first.patch_id)
        entry = merge_queue.waiting(spec).first()
        if entry is None or entry.pk != first.pk:
            return True  # another worker was faster
        Spec.objects.select_for_update().get(pk=spec)
        entry.patch.spec.refresh_from_db()
        return _go_on(entry)


def _go_on(entry: Queued) -> bool:
    patch, latest, spec = entry.patch, entry.patch.latest, entry.patch.spec
    if spec.archived_at:
        return _refuse(entry, f"{spec.name} is archived")
    if not access.can(entry.user, "spec.merge", patch):
        return _refuse(entry, f"{entry.user} queued it and may no longer merge")
    if needs := rules.of_people(patch):
        return _refuse(entry, f"it needs {needs[0]}")
    if latest.base_id != spec.head_id:
        return _bring_up_to_date(entry, latest)
    if needs := rules.before_queue(patch):  # checks that still run cannot change that
        return _refuse(entry, f"it needs {needs[0]}")
    found = _deciding(latest, spec)
    if any(row is None or rules.is_stale(spec, row) for row in found):
        checks.begin(latest)
        return False
    if going := [row for row in found if row is not None and row.ended_at is None]:
        return checks.is_lost(going[0]) and _refuse(entry, "its checks did not end")
    if needs := rules.missing(patch):
        return _refuse(entry, f"it needs {needs[0]}")
    try:
        with transaction.atomic():
            version = actions.merge_held(entry.user, patch, latest, by_queue=True)
    except Refused as why:
        return _refuse(entry, why.message)
    log.info("%s was merged as version %s by the queue", patch, version.number)
    return True


def _bring_up_to_date(entry: Queued, latest: Revision) -> bool:
    patch, head = entry.patch, entry.patch.spec.head
    both = by_task.merge(latest.base.text, latest.text, head.text)
    if not both.clean:
        places = plural(len(both.conflicts), "place")
        return _refuse(entry, f"it conflicts with version {head.number} in {places}")
    text = both.decided({})
    if digest(text) == head.content_hash:
        return _refuse(entry, f"version {head.number} has all of it already")
    entry.revision = actions.rebase_held(entry.user, patch, latest, head, text)
    entry.save(update_fields=["revision"])
    return True


def _deciding(latest: Revision, spec: Spec) -> list[Check | None]:
    """The checks that have to end: what is required, and what is newly permitted: it decides who approves."""
    rows = {one.name: one for one in latest.checks.all()}
    return [rows.get(name) for name in rules.CHECKS if name == "actions" or name in rules.required(spec)]


def _refuse(entry: Queued, words: str) -> bool:
    patch = entry.patch
    merge_queue.leave(patch, Queued.State.REFUSED, words)
    record(entry.user, "patch.queue_refused", f"{patch}: {words}", patch.spec.team)
    notices.left_queue(entry, words)
    return True


KIND = Kind(
    name=merge_queue.ADVANCE,
    title="Merge queues",
    act=act,
    find=find,
    failed=failed,
    reopen=decided,
    every=REPEAT,
)
