"""Sending the spans of runs that have ended, where the operator names a collector (SPAK_WEB_OTLP_ENDPOINT).

The sweep finds runs that ended lately and were not sent; a worker folds the records and sends. What a
collector does not take is tried again, later each time. Spans have the same ids each time, so that a message
that comes twice makes nothing twice. Runs that ended longer than LATELY ago are sent by hand:
`manage.py export_spans RUN`.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.dispatch import receiver
from kombu.exceptions import KombuError

from spak.errors import UserError
from spakweb import clock, logs
from spakweb.ledger.store import DatabaseLedgers
from spakweb.runs.leases import is_due
from spakweb.runs.models import Run
from spakweb.telemetry import otlp, spans
from spakweb.telemetry.models import Sent
from spakweb.worker.tasks import after_sweep

LATELY = timedelta(hours=1)
PAUSE, TRIES = timedelta(seconds=30), 6
MOST_PAUSE = PAUSE * 2**TRIES
"""Also how long a worker that took one up has, before it counts as lost."""
AT_A_TIME = 20

log = logging.getLogger(__name__)


@receiver(after_sweep, dispatch_uid="telemetry.sweep")
def send_due(**ignored: object) -> None:
    """Hand runs whose spans are to be sent to workers."""
    from spakweb.celery import app

    if not settings.OTLP:
        return
    for pk in due():
        try:
            app.send_task("telemetry.send", (pk,), retry=False)
        except (OSError, KombuError) as error:
            log.warning("spans of run %s were not queued: %s", pk, type(error).__name__)
            return


def due() -> list[int]:
    """Runs that ended lately, whose spans nobody has sent or is sending."""
    now = clock.now()
    ended = Run.objects.filter(ended_at__gt=now - LATELY, deleted_at=None, count__gt=0)
    mine = Q(spans_sent__at=None, spans_sent__tries__lt=TRIES)
    waiting = Q(spans_sent=None) | (mine & is_due("spans_sent__next_at", now, MOST_PAUSE))
    return list(ended.filter(waiting).order_by("ended_at").values_list("pk", flat=True)[:AT_A_TIME])


@shared_task(name="telemetry.send", acks_late=True, ignore_result=True)
def send(pk: int) -> None:
    """Send one run's spans, unless another worker does."""
    run = Run.objects.filter(pk=pk, deleted_at=None).first()
    if not settings.OTLP or run is None or not _claimed(pk):
        return
    with logs.of_run(run.key):
        try:
            number = export(run)
        except UserError as error:
            log.warning("spans were not sent: %s: %s", error.code, error.message)
            Sent.objects.filter(run=pk).update(error=error.code)
            return
        Sent.objects.filter(run=pk).update(at=clock.now(), error="")
        log.info("%s spans were sent", number)


def export(run: Run) -> int:
    """Send the spans of a run now; gives how many. Raises: UnavailableError, RunError `telemetry.*`."""
    trace = spans.of(record for record, _ in DatabaseLedgers().reader(run.key).read())
    return otlp.send(trace, settings.OTLP, settings.OTLP_HEADERS) if trace is not None else 0


def _claimed(pk: int) -> bool:
    """Whether it is ours: nobody has sent them, and nobody tries just now."""
    now = clock.now()
    row = Sent.objects.filter(run=pk).first()
    if row is None:
        try:
            with transaction.atomic():
                Sent.objects.create(run_id=pk, tries=1, next_at=now + PAUSE)
        except IntegrityError:  # another worker, or the run is gone
            return False
        return True
    mine = Sent.objects.filter(is_due("next_at", now, MOST_PAUSE), run=pk, at=None, tries=row.tries)
    return bool(mine.update(tries=row.tries + 1, next_at=now + PAUSE * 2**row.tries))
