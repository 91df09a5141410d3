"""What a worker does with a run: take its lease, hold and advance it for a slice, count what goes wrong.

`advance(key, slice_s)` is idempotent and may be called by anybody at any time: the lease admits one. It comes
back when the run ended, waits, was paused, or the slice is over, and says whether it should be called again.
A runner that dies leaves a lease that ends by itself; the next call replays the ledger and goes on.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Literal

from django.db import DatabaseError

from spak.errors import LedgerError, RunError, UnavailableError, UserError
from spak.files.disk import has_room, unwritable
from spak.files.faults import CODES
from spak.program.semantics import Earlier
from spakweb.ground import clock
from spakweb.ground.host_faults import is_fault, typed
from spakweb.ground.logs import lines as logs
from spakweb.store.fleet.models import SILENT
from spakweb.store.fleet.models import Runner as FleetRunner
from spakweb.store.jobs.pauses import pause
from spakweb.store.ledger import store
from spakweb.store.ledger.workspaces import folder_of
from spakweb.store.runs.models import Run
from spakweb.store.sources import freeze
from spakweb.work.worker import retry_policy
from spakweb.work.worker.beginning import closing_if_it_fails
from spakweb.work.worker.held_run import LOST, HeldRun
from spakweb.work.worker.open_run import take
from spakweb.work.worker.queue import give_back

SLICE_S = 60.0
ELSEWHERE = timedelta(minutes=3)
"""For so long a new run that this worker cannot begin is left to others, where there are any."""

log = logging.getLogger(__name__)


def advance(key: str, slice_s: float = SLICE_S) -> bool:
    """Go on with a run; True when it should be called again (the slice is over, or more was asked of it)."""
    return advance_or_busy(key, slice_s) == "again"


def advance_or_busy(key: str, slice_s: float = SLICE_S) -> Literal["again", "stopped", "busy"]:
    """The same; "busy" when somebody else holds the run. An error that nobody expected is counted: a run may
    be what makes its worker fail."""
    with logs.of_run(key):
        return _tried(key, slice_s)


def _tried(key: str, slice_s: float) -> Literal["again", "stopped", "busy"]:
    row = Run.objects.select_related("team", "version__spec__team", "parent").get(key=key)
    if row.ended or row.only_shown:
        return "stopped"
    if retry_policy.left_behind(row):
        return "stopped"
    try:
        return _advanced(row, slice_s)
    except DatabaseError:  # nothing can be said now: a lease that it has ends by itself
        give_back(key)
        raise
    except Exception as error:
        if is_fault(error):
            return retry_policy.hold_up(row, typed(error))
        log.exception("run %s: its worker failed", key)
        return retry_policy.count(row, error)


def _advanced(row: Run, slice_s: float) -> Literal["again", "stopped", "busy"]:
    if (fault := _lasting(row)) is not None:
        return retry_policy.hold_up(row, fault)
    try:
        runner = take(row)
    except LedgerError as error:
        if error.code in LOST:
            return "busy"
        if isinstance(error, Earlier):
            (retry_policy.put_away if row.count else retry_policy.refuse)(row, error)
            return "stopped"
        return retry_policy.hold_up(row, error)
    except UserError as error:
        if (
            row.count
            or error.code == "workspace.busy"
            or is_fault(error)
            or retry_policy.awaits(row, error)
            or _elsewhere(row, error)
        ):
            return retry_policy.hold_up(row, error)
        if error.code == freeze.AWAY and row.tries < len(freeze.AWAY_WAITS):
            rest = pause(freeze.AWAY_WAITS, row.tries + 1)
            return retry_policy.hold_up(row, error, rest=rest, tries=row.tries + 1)
        retry_policy.refuse(row, error)
        return "stopped"
    try:
        with closing_if_it_fails(runner):
            holding = HeldRun(row, runner)
        more = holding.go(slice_s)
        retry_policy.got_on(row)
        return "again" if more else "stopped"
    except UserError as error:
        return "busy" if error.code in LOST else retry_policy.hold_up(row, error, runner.ledger.fence)


def _lasting(row: Run) -> UserError | None:
    """The fault of the disk that the run waits for, while it lasts: each try to go on would add a record to
    its ledger and do its step again."""
    code, _, message = row.reason.partition(": ")
    if not row.count or code not in CODES or row.wanted:
        return None
    folder = folder_of(row.key)
    return RunError(code, message) if unwritable(folder) or not has_room(folder) else None


def _elsewhere(row: Run, error: UserError) -> bool:
    """Whether another worker may have what this one lacks: an engine, the image, a backend."""
    now = clock.now()
    if not isinstance(error, UnavailableError) or abs(now - row.made_at) > ELSEWHERE:
        return False
    living = FleetRunner.objects.filter(seen_at__range=(now - SILENT, now + SILENT))
    others = living.exclude(process=store.leases.process)
    return any(row.queue in queues for queues in others.values_list("queues", flat=True))
