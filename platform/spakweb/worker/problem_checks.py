"""Checks of a team's problems: what `spak problem check` finds, by a worker, in its sandbox.

A check may be repeated and may be lost: a sweep sends it again, a few times. Its result counts only for the
text that was checked.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from celery import shared_task
from django.core.cache import cache
from django.dispatch import receiver
from django.utils import timezone

from spak import config
from spak.errors import UserError
from spak.files.scratch import Scratch
from spak.validators.problems import check as problem_check
from spakweb.host_faults import is_fault
from spakweb.runs.leases import MOST_APART
from spakweb.specs import problem_files
from spakweb.specs.models import ProblemFile
from spakweb.worker.tasks import after_sweep

LOST_S = 180
"""After so long a message counts as lost."""
TRIES = 3
"""How often a check is sent; then it is said that it was lost, since it may be what ends workers."""
LONGEST = 2000
"""Characters of a message that are kept."""

log = logging.getLogger(__name__)


@shared_task(name=problem_files.TASK, acks_late=True, ignore_result=True)
def check(key: int) -> None:
    """Check a problem that waits for it."""
    row = ProblemFile.objects.filter(pk=key, state=ProblemFile.State.QUEUED).first()
    if row is None:
        return
    try:
        found = findings(row.text)
    except UserError as error:
        if is_fault(error):
            log.warning("problem %s was not checked: %s", row, error)
            return  # `send_lost` sends it again
        found = [
            {"code": error.code, "severity": "error", "message": error.message[:LONGEST], "hint": error.hint}
        ]
    _ended(row, found)


def findings(text: str) -> list[dict[str, str]]:
    """What is wrong with a problem's text. Raises: UnavailableError."""
    settings = config.settings()
    with Scratch("problem") as folder:
        folder.chmod(0o755)
        bench = problem_check.Bench(
            config.box(settings), config.toolchain(settings.binds), settings.limits, folder
        )
        return [
            {
                "code": item.code, "severity": item.severity,
                "message": item.message.replace("\0", "")[:LONGEST], "hint": item.hint,
            }
            for item in problem_check.check(text, bench)
        ]  # fmt: skip


def _ended(row: ProblemFile, found: list[dict[str, str]]) -> None:
    bad = any(item["severity"] == "error" for item in found)
    ProblemFile.objects.filter(pk=row.pk, sha256=row.sha256, state=ProblemFile.State.QUEUED).update(
        state=ProblemFile.State.BAD if bad else ProblemFile.State.GOOD, found=found, checked_at=timezone.now()
    )


@receiver(after_sweep, dispatch_uid="problems.sweep")
def send_lost(**ignored: Any) -> None:
    """Send checks again whose message or worker was lost."""
    for row in ProblemFile.objects.filter(state=ProblemFile.State.QUEUED):
        if not cache.add(f"problems.check.{row.pk}.{row.sha256}.{row.sent}", 1, LOST_S) or not _old(row):
            continue
        if row.sent >= TRIES:
            lost = "The check was lost several times. Check it again, or with spak problem check."
            _ended(row, [{"code": "web.problem_lost", "severity": "error", "message": lost, "hint": ""}])
        else:
            problem_files.send(row.pk)


def _old(row: ProblemFile) -> bool:
    ago = timezone.now() - row.saved_at
    return bool(ago > timedelta(seconds=LOST_S) or ago < -MOST_APART)
