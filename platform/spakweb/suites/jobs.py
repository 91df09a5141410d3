"""What workers are asked to do for suites: try the checks of cases, judge runs, keep to budgets.

Tasks carry a key and nothing else, may be repeated and may be lost: the sweep sends them again.
"""

from __future__ import annotations

import logging

from celery import shared_task
from django.core.cache import cache
from django.db import OperationalError
from django.dispatch import receiver
from kombu.exceptions import KombuError

from spakweb.suites import budget, judging
from spakweb.worker.tasks import after_sweep

REPEAT_S = 120
"""After so long a message counts as lost."""

log = logging.getLogger(__name__)


@shared_task(name="suites.vet", acks_late=True, ignore_result=True)
def vet(pk: int) -> None:
    """Try the checks of a case."""
    if not judging.vet(pk):
        cache.delete(_mark("suites.vet", pk))  # the next sweep sends it


@shared_task(name="suites.judge", acks_late=True, ignore_result=True)
def judge(key: str) -> None:
    """Judge a run."""
    if not judging.judge(key):
        cache.delete(_mark("suites.judge", key))


@receiver(after_sweep, dispatch_uid="suites.sweep")
def send_due(**ignored: object) -> None:
    """Stop experiments whose budget is used up, and send the work that is due and not under way."""
    try:
        budget.enforce()
    except OperationalError as error:  # somebody holds a run's lock: the next sweep looks again
        log.warning("budgets of experiments were not looked at: %s", error)
    cases, runs = judging.due()
    for pk in cases:
        _send("suites.vet", pk)
    for key in runs:
        _send("suites.judge", key)


def _mark(task: str, about: object) -> str:
    return f"{task}.{about}"


def _send(task: str, about: object) -> None:
    from spakweb.celery import app

    mark = _mark(task, about)
    if not cache.add(mark, 1, REPEAT_S):
        return
    try:
        app.send_task(task, (about,), retry=False)
    except (OSError, KombuError) as error:
        log.warning("%s was not queued: %s", mark, type(error).__name__)
        cache.delete(mark)
