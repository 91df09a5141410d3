"""What a worker does with a merge queue: `step(spec)` does one thing for the first patch, in one transaction.

    the spec has a newer version    a revision with both changes, whose checks begin
    a required check is missing     it is begun, or waited for
    all that it needs is there      it is merged, byte for byte as it was checked
    anything else                   it is taken out; its author and who queued it get the reason

What to do is derived from the rows, which are locked: a step that was killed left nothing, one that is
repeated finds what the first has done, and two at once wait for each other. A patch that is queued after
another waits until that one is merged or taken out, so that what is checked is what would be merged.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from spakweb import access
from spakweb.audit.actions import record
from spakweb.errors import Refused
from spakweb.reviews import actions, by_task, checks, merge_queue, notices, rules
from spakweb.reviews.models import Check, Patch, Queued, Revision
from spakweb.runs.leases import is_long_ago
from spakweb.specs.models import Spec
from spakweb.text import digest, plural

RESEND_AFTER = timedelta(seconds=60)
"""The message of a check that has not begun after so long counts as lost."""
LOST_MOST = 3
"""So often checks that did not end are begun again."""

log = logging.getLogger(__name__)


def step(spec: int) -> bool:
    """Whether something was done, so that there may be more to do. Raises: DatabaseError."""
    first = merge_queue.waiting(spec).first()
    if first is None:
        return False
    with transaction.atomic():
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
    if not access.can(entry.user, "spec.propose", patch):
        return _refuse(entry, f"{entry.user} queued it and may no longer merge")
    if needs := rules.of_people(patch):
        return _refuse(entry, f"it needs {needs[0]}")
    if latest.base_id != spec.head_id:
        return _bring_up_to_date(entry, latest)
    found = _deciding(latest, spec)
    if any(row is None or rules.is_stale(spec, row) for row in found):
        checks.begin(latest)
        return False
    if going := [row for row in found if row is not None and row.ended_at is None]:
        return _wait(entry, latest, going)
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


def _wait(entry: Queued, latest: Revision, going: list[Check]) -> bool:
    """Checks whose message or whose worker is gone begin again, LOST_MOST times at most."""
    if any(checks.is_lost(row) for row in going):
        if entry.lost >= LOST_MOST:
            return _refuse(entry, "its checks did not end")
        entry.lost += 1
        entry.save(update_fields=["lost"])
        checks.begin(latest)
        return False
    unsent = [row.pk for row in going if row.state == Check.State.QUEUED]
    late = Check.objects.filter(is_long_ago("made_at", timezone.now(), RESEND_AFTER), pk__in=unsent)
    if late.update(made_at=timezone.now()):
        key = latest.pk
        transaction.on_commit(lambda: checks.send(key))
    return False


def _refuse(entry: Queued, words: str) -> bool:
    patch = entry.patch
    merge_queue.leave(patch, Queued.State.REFUSED, words)
    record(entry.user, "patch.queue_refused", f"{patch}: {words}", patch.spec.team)
    notices.left_queue(entry, words)
    return True
