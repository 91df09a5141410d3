"""What each sweep does for suites besides jobs (judging.py): stop experiments whose budget is used up."""

from __future__ import annotations

import logging

from django.db import OperationalError
from django.dispatch import receiver

from spakweb.work.suites import budget
from spakweb.work.worker.tasks import after_sweep

log = logging.getLogger(__name__)


@receiver(after_sweep, dispatch_uid="suites.sweep")
def keep_to_budgets(**ignored: object) -> None:
    """Stop experiments whose budget is used up."""
    try:
        budget.enforce()
    except OperationalError as error:  # somebody holds a run's lock: the next sweep looks again
        log.warning("budgets of experiments were not looked at: %s", error)
