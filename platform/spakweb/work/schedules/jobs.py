"""The clock of schedules: each sweep of a worker begins what is due. A time comes once, however many look."""

from __future__ import annotations

import logging

from django.db import DatabaseError
from django.dispatch import receiver

from spakweb.ground import clock
from spakweb.store.schedules.models import Schedule
from spakweb.work.schedules import actions
from spakweb.work.worker.tasks import after_sweep

AT_A_TIME = 20

log = logging.getLogger(__name__)


@receiver(after_sweep, dispatch_uid="schedules.sweep")
def begin_due(**ignored: object) -> None:
    """Begin the runs whose time has come."""
    rows = Schedule.objects.select_related("spec__team", "spec__head", "person", "last_run")
    for schedule in rows.filter(active=True, next_at__lte=clock.now()).order_by("next_at")[:AT_A_TIME]:
        try:
            actions.fire(schedule)
        except DatabaseError:  # the next sweep tries again
            raise
        except Exception:  # one that nobody can read keeps no other from its time
            log.exception("schedule %s did not begin", schedule.pk)
