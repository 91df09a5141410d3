"""Sending the spans of runs that have ended, where the operator names a collector (SPAK_WEB_OTLP_ENDPOINT).

The sweep finds runs that ended lately and have no job yet; a worker folds the records and sends. What a
collector does not take is tried again, later each time. Spans have the same ids each time, so that a message
that comes twice makes nothing twice. Runs that ended longer than LATELY ago are sent by hand:
`manage.py export_spans RUN`.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings

from spak.errors import UserError
from spakweb.ground import clock
from spakweb.ground.host_faults import is_fault
from spakweb.ground.logs import lines as logs
from spakweb.store.jobs.models import Job
from spakweb.store.jobs.pauses import doubling
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Again, Kind
from spakweb.work.telemetry import otlp, spans

SEND = "telemetry.send"
LATELY = timedelta(hours=1)
AT_A_TIME = 20

log = logging.getLogger(__name__)


def find() -> list[tuple[str, int]]:
    """Runs that ended lately and whose spans no job was made for, each with its team."""
    if not settings.OTLP:
        return []
    ended = Run.objects.filter(ended_at__gt=clock.now() - LATELY, deleted_at=None, count__gt=0)
    new = ended.exclude(key__in=Job.objects.filter(kind=SEND).values("key"))
    return list(new.order_by("ended_at").values_list("key", "team")[:AT_A_TIME])


def act(hold: Hold) -> dict[str, Any] | None:
    """Send one run's spans. Raises: Again."""
    run = Run.objects.filter(key=hold.key, deleted_at=None).first()
    if not settings.OTLP or run is None:
        return None
    with logs.of_run(run.key):
        try:
            number = export(run)
        except UserError as error:
            if is_fault(error):
                raise
            log.warning("spans were not sent: %s: %s", error.code, error.message)
            raise Again(f"{error.code}: {error.message}") from error
        log.info("%s spans were sent", number)
    return {"spans": number}


def export(run: Run) -> int:
    """Send the spans of a run now; gives how many. Raises: UnavailableError, RunError `telemetry.*`."""
    trace = spans.of(record for record, _ in DatabaseLedgers().reader(run.key).read())
    return otlp.send(trace, settings.OTLP, settings.OTLP_HEADERS) if trace is not None else 0


KIND = Kind(name=SEND, title="Spans for the collector", act=act, find=find, waits=doubling(30, 5))
