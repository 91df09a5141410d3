"""A run that could not go on: when it is tried again, and when a person is asked instead.

    a fault of the host              every HOST_PAUSE, for as long as it takes (spakweb.ground.host_faults)
    something that people can mend   every PAUSE: no engine, damaged files, a refused begin (UserError)
    a model that is away             every PAUSE, for a run of an experiment or campaign
    a blob that the run lacks        as an error that nobody expected: only a backup brings it back
    a repository that is away        after 5 s, then twice as long; then it fails (store/sources/freeze.py)
    an error that nobody expected    PAUSE, then twice as long each time; after TRIES the run is paused
    a worker that died with it       at once, then PAUSE and twice as long each time; after TRIES it is paused

None of it is a decision of the kernel and none is recorded in the ledger: the row says why the run does not
go on. A run that got on, or that a person resumed, begins to count again: one that made a record before its
worker died is not to blame. One that was in hand beside the guilty one rests too, and for another while.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Literal

from django.db.models import Q, QuerySet
from django.utils import timezone

from spak.errors import UserError, of_host
from spak.records import Authority
from spakweb.ground import clock
from spakweb.ground.host_faults import is_fault
from spakweb.ground.unsafe_text import without_nul
from spakweb.store.hints import news
from spakweb.store.jobs.leases import free
from spakweb.store.jobs.pauses import doubling, pause
from spakweb.store.ledger import store
from spakweb.store.runs.models import ENDED, TRIES, Run, RunRecord, State
from spakweb.work.jobs.work import HOST_PAUSE
from spakweb.work.worker.queue import let_go

PAUSE = timedelta(seconds=10)
WAITS = doubling(PAUSE.total_seconds(), 6)

log = logging.getLogger(__name__)


def hold_up(
    row: Run, error: UserError, fence: int | None = None, rest: timedelta = PAUSE, tries: int | None = None
) -> Literal["stopped"]:
    """The run cannot go on here and now: it says why, and is tried again after `rest`.

    `fence` is that of the lease that we had: nothing is written if somebody had the run after us.
    """
    log.warning("run %s: %s: %s", row.key, error.code, error.message)
    reason = f"{error.code}: {error.message}"
    if error.code == "ledger.blob":
        _rests_or_pauses(row, reason, row.tries + 1)
        return "stopped"
    _rests(row, reason, HOST_PAUSE if is_fault(error) else rest, tries, fence)
    if awaits(row, error):
        _others_rest(row, reason, rest)
    return "stopped"


def awaits(row: Run, error: UserError) -> bool:
    """Whether a run of an experiment or campaign waits until what is unavailable is back: it would measure
    nothing if it ended now."""
    return bool(row.trial) and of_host(error)


def _others_rest(row: Run, reason: str, rest: timedelta) -> None:
    """Of one experiment or campaign few runs at a time find out whether it is back."""
    now = clock.now()
    rows = Run.objects.filter(free(now), team=row.team_id, trial=row.trial, labels=row.labels)
    rows.filter(state=State.QUEUED, wanted="").update(due=now + rest, reason=_reason(reason))


def count(row: Run, error: Exception) -> Literal["stopped"]:
    """The worker failed while it had the run, which may be the run's doing."""
    reason = f"web.worker: the worker that had it failed: {type(error).__name__}: {error}"
    _rests_or_pauses(row, reason, row.tries + 1)
    return "stopped"


def in_hand(row: Run) -> bool:
    """A run without records is about to be begun: it has no lease yet that would say so. False where it has
    some."""
    return bool(Run.objects.filter(pk=row.pk, count=0).update(left_at=0))


def left_behind(row: Run) -> bool:
    """Whether the run rests, since whoever had it last died with it, as before, and it never got on."""
    mine = Run.objects.filter(free(clock.now()) | Q(holder=store.leases.choosing), pk=row.pk, fence=row.fence)
    if row.left_at is None or not mine.exists():
        return False
    got_on = RunRecord.objects.filter(run=row.pk, seq__gte=row.left_at).exclude(authority=Authority.HOST)
    tries = 1 if row.count and got_on.exists() else row.tries + 1
    if not mine.filter(left_at=row.left_at).exclude(state__in=ENDED).update(tries=tries, left_at=None):
        return False
    row.tries, row.left_at = tries, None
    log.warning("run %s: the worker that had it died, for the %d. time in a row", row.key, tries)
    if tries == 1 or row.wanted:
        return False
    _rests_or_pauses(row, f"web.worker: {tries} workers in a row died with it", tries, at_once=1)
    return True


def _rests_or_pauses(row: Run, reason: str, tries: int, at_once: int = 0) -> None:
    """`at_once`: so many of the tries had no pause."""
    if tries < TRIES:
        _rests(row, reason, pause(WAITS, tries - at_once), tries)
        return
    log.error("run %s failed %d times in a row and is paused", row.key, tries)
    let_go(row.key)
    found = {"state": State.PAUSED, "reason": _reason(reason), "tries": tries, "due": None}
    if _left(row).update(**found, wanted="", left_at=None, holder="", lease_until=None):
        news.publish(row.key, row.count)


def got_on(row: Run) -> None:
    """Forget the faults of a run that went on."""
    if row.tries:
        Run.objects.filter(pk=row.pk).update(tries=0)


def refuse(row: Run, error: UserError) -> None:
    """The run could not begin: it has no records, and says why; not one that was cancelled meanwhile, or that
    somebody else begins."""
    let_go(row.key)
    if error.code == "git.cancelled":
        cancelled = {"state": State.CANCELLED, "reason": "run.cancelled", "wanted": "", "left_at": None}
        _left(row).filter(count=0).update(**cancelled, ended_at=timezone.now(), holder="", lease_until=None)
        return
    _left(row).filter(count=0).update(
        state=State.FAILED,
        reason=_reason(f"{error.code}: {error.message}"),
        ended_at=timezone.now(),
        holder="",
        lease_until=None,
        left_at=None,
        summary=without_nul({"error": {"code": error.code, "message": error.message, "hint": error.hint}}),
    )


def put_away(row: Run, error: UserError) -> None:
    """An earlier kernel made the run, so that nobody goes on with it: it is over, and says why."""
    let_go(row.key)
    kept = {name: value for name, value in (row.summary or {}).items() if name != "waiting"}
    ended = {"state": State.CANCELLED, "reason": _reason(f"{error.code}: {error.message}"), "wanted": ""}
    freed = {"holder": "", "lease_until": None, "left_at": None, "ended_at": timezone.now()}
    if _left(row).update(**ended, **freed, summary=kept):
        news.publish(row.key, row.count)


def _rests(
    row: Run, reason: str, rest: timedelta, tries: int | None = None, fence: int | None = None
) -> None:
    let_go(row.key)
    until = clock.now() + rest
    found = {"state": State.QUEUED, "reason": _reason(reason), "due": until, "left_at": None}
    if _left(row, fence).update(**found, **({} if tries is None else {"tries": tries})):
        news.publish(row.key, row.count)


def _left(row: Run, fence: int | None = None) -> QuerySet[Run]:
    """The run, unless somebody else has it by now, had it after this fence, or it ended."""
    left = Run.objects.filter(free(clock.now()), pk=row.pk).exclude(state__in=ENDED)
    return left if fence is None else left.filter(fence=fence)


def _reason(text: str) -> str:
    return str(without_nul(text[:200]))
