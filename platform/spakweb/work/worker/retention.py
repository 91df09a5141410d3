"""Deleting runs: by an admin, or because they ended longer ago than their team keeps runs.

`mark` makes a run a tombstone in one transaction: its row keeps what it was (spec, version, state, number of
records, head of the chain, when it ended, when it was deleted and by whom) and loses what it said. From then
on nothing else of it is shown. `erase` removes its records, blobs that no other run has, and files, a part at
a time; whoever is killed meanwhile leaves the rest to the next sweep (`go_on`). A run that a fork goes on
from is not deleted, and its stored files stay for as long as a fork of it is there that may go back to them.

Only runs that ended are deleted, and imported ones that are only shown; of records only those of marked runs:
the triggers see to it.
"""

from __future__ import annotations

import fcntl
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Coalesce

from spakweb.ground import clock
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.hints import news
from spakweb.store.ledger import blobs, uploads
from spakweb.store.ledger.workspaces import folder_of
from spakweb.store.runs.models import DELETABLE, ENDED, Command, Run, RunRecord, RunSnapshot, RunText
from spakweb.store.sources.models import RunSource

RECORDS, BLOBS, RUNS, UPLOADS = 1_000, 100, 50, 10
"""What one transaction deletes at most; runs that one sweep marks, and uploads that it removes."""
EVERY_S, SLICE_S = 30, 1.0
"""How often some process looks, and for how long it works then."""
WAIT_S, PAUSE_S = 30.0, 0.1
"""How long a backup waits for who erases, and between two tries."""
LOOKED = "runs.retention"
TIDY_S = 600.0
"""How often a process looks for folders of deleted runs that are on its host."""

log = logging.getLogger(__name__)
_tidied = 0.0


def days_of(team: Team) -> int:
    """Days for which the team keeps runs that ended; 0 for ever."""
    return settings.KEEP_RUNS_DAYS if team.keep_days is None else team.keep_days


def due(team: Team, days: int) -> Any:
    """The runs of a team that ended more than so many days ago, the oldest first."""
    goes_on = Run.objects.filter(parent=OuterRef("pk")).exclude(state__in=ENDED)
    rows = Run.objects.filter(DELETABLE, team=team, deleted_at=None)
    rows = rows.annotate(over=Coalesce("ended_at", "made_at"))
    return rows.filter(~Exists(goes_on), over__lt=clock.now() - timedelta(days=days)).order_by("pk")


def forks_that_go_on(run: Run) -> list[str]:
    """The forks of a run that have not ended."""
    rows = Run.objects.filter(parent=run).exclude(state__in=ENDED).order_by("pk")
    return list(rows.values_list("key", flat=True))


def mark(run: Run, user: Any, why: str) -> bool:
    """Make it a tombstone; False when it has not ended, has a fork that goes on, or is one already."""
    with transaction.atomic():
        rows = Run.objects.select_for_update(no_key=True)
        found = rows.filter(DELETABLE, pk=run.pk, deleted_at=None).first()
        if found is None or forks_that_go_on(found):
            return False
        Run.objects.filter(pk=run.pk).update(
            deleted_at=clock.now(), deleted_by=user, deleted_why=why[:120], fence=F("fence") + 1, holder="",
            lease_until=None, wanted="", summary={}, inputs={}, labels=[], task="", reason="",
        )  # fmt: skip
        detail = {"count": found.count, "state": str(found.state), "why": why}
        record(user, "run.deleted", run.key, run.team, before=found.head, **detail)
        transaction.on_commit(partial(news.publish, run.key, found.count))
    return True


def erase(run: Run, until: float = float("inf")) -> bool:
    """Remove what is left of a marked run, up to a monotonic time; True when nothing is."""
    with _alone() as alone:
        if not alone:  # a backup is under way, or another process erases
            return False
        while _some_records(run.pk) or blobs.drop(run.pk, BLOBS):
            if time.monotonic() >= until:
                return False
        with transaction.atomic():
            RunSnapshot.objects.filter(run=run).delete()
            RunText.objects.filter(run=run).delete()
            RunSource.objects.filter(run=run).delete()
            Command.objects.filter(run=run).delete()
        _remove_files(run)
        Run.objects.filter(pk=run.pk).update(erased_at=clock.now(), files=None)
    return True


def go_on() -> None:
    """What a sweep does, now and then and for a moment: mark what is due, erase what is marked."""
    if not cache.add(LOOKED, 1, EVERY_S):
        return
    until = time.monotonic() + SLICE_S
    for team in Team.objects.all() if settings.KEEP_RUNS_DAYS else Team.objects.filter(keep_days__gt=0):
        expire(team, until)
    for run in Run.objects.filter(deleted_at__isnull=False, erased_at=None).order_by("deleted_at")[:RUNS]:
        try:
            done = time.monotonic() < until and erase(run, until)
        except (DatabaseError, OSError) as error:  # what is damaged keeps no other run here
            log.warning("run %s was deleted and could not be erased: %s", run.key, error)
            connection.close()
            continue
        if not done:
            cache.delete(LOOKED)  # there is more to do
            break
    with _alone() as alone:
        if alone:
            uploads.drop(UPLOADS)
    _tidy()


def expire(team: Team, until: float = float("inf")) -> int:
    """Mark the runs that the team keeps no longer, some at a time; gives how many."""
    days, done = days_of(team), 0
    for run in due(team, days)[:RUNS] if days else ():
        if time.monotonic() >= until:
            break
        done += mark(run, None, f"retention: kept for {days} days")
    if done:
        log.info("team %s: %d runs ended more than %d days ago and were deleted", team.slug, done, days)
    return done


@contextmanager
def withheld() -> Iterator[None]:
    """While this lasts nothing is erased: a backup copies first the database, then the files.

    Raises: Refused `web.backup` when a process erases that does not come to an end, a stopped one.
    """
    until = time.monotonic() + WAIT_S
    while True:
        with _alone() as alone:
            if alone:
                yield
                return
        if time.monotonic() >= until:
            raise Refused(
                "web.backup", "Another process is erasing a deleted run and does not come to an end.",
                "End it: manage.py check_worker says which does not answer.", 503,
            )  # fmt: skip
        time.sleep(PAUSE_S)


@contextmanager
def _alone() -> Iterator[bool]:
    with _lock_file().open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _lock_file() -> Path:
    folder = Path(settings.DATA_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "erase.lock"


def _some_records(run: int) -> bool:
    """Delete the oldest records that are left; False when there are none."""
    first = RunRecord.objects.filter(run=run).order_by("seq").values_list("seq", flat=True).first()
    if first is None:
        return False
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {RunRecord._meta.db_table} WHERE run_id = %s AND seq < %s", [run, first + RECORDS]
        )
    return True


def _remove_files(run: Run) -> None:
    """The run's folder on this host; but for its stored files while a fork may go back to them."""
    folder = folder_of(run.key)
    if not _has_forks(run.pk):
        shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if path.name == "store":
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _has_forks(run: int) -> bool:
    """Whether a run that is not deleted was forked from it, or from a fork of it."""
    for pk, deleted_at in Run.objects.filter(parent=run).values_list("pk", "deleted_at"):
        if deleted_at is None or _has_forks(pk):
            return True
    return False


def _tidy() -> None:
    """Folders of deleted runs that another host has erased, and stored files that no fork needs any more."""
    global _tidied
    if time.monotonic() < _tidied + TIDY_S and _tidied:
        return
    _tidied = time.monotonic()
    root = Path(settings.DATA_DIR) / "runs"
    names = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
    for start in range(0, len(names), 500):
        erased = Run.objects.filter(key__in=names[start : start + 500], erased_at__isnull=False)
        for run in erased:
            _remove_files(run)
