"""What workers do for cases with checks: try them before any run, and judge runs that have ended.

`vet(pk)` and `judge(key)` are idempotent: the first result is kept. Checks run
in a sandbox of their own, on a copy of what the run left by its records, which is removed afterwards; the
files of sealed checks are nowhere else on a worker. `due()` says what is left to do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from django.core.cache import cache
from django.db import IntegrityError, transaction

from spak.begin import bench
from spak.errors import UserError, of_host
from spak.files.scratch import Scratch
from spak.suites import Case as Kept
from spak.suites import judge as judged
from spak.suites.folder import passes_before
from spak.suites.model import read_case
from spak.suites.sealed import Bench, to_json
from spak.workspace import Workspace
from spakweb.host_faults import is_fault
from spakweb.ledger import packs
from spakweb.ledger.blobs import StoredBlobs
from spakweb.ledger.workspaces import folder_of
from spakweb.runs.files import roots
from spakweb.runs.models import ENDED, Run
from spakweb.suites.models import Case, CaseRun, Judgement, Vetting
from spakweb.worker.beginning import draw_from_parents

AT_ONCE = 20
TRIES, REMEMBERED_S = 3, 3600
"""A run that could not be judged is void after so many tries, each a sweep's message apart."""
WHY = 300

log = logging.getLogger(__name__)


def due() -> tuple[list[int], list[str]]:
    """Cases whose checks were not tried yet, and runs that ended and were not judged."""
    cases = Case.objects.filter(checked=True, vetting=None).order_by("pk")
    runs = CaseRun.objects.filter(judgement=None, run__state__in=sorted(ENDED), run__deleted_at=None)
    return (
        list(cases.values_list("pk", flat=True)[:AT_ONCE]),
        list(runs.order_by("pk").values_list("run__key", flat=True)[:AT_ONCE]),
    )


def vet(pk: int) -> bool:
    """Try the sealed checks of a case on an empty workspace and on the one that it begins with. A full disk,
    or what else the host cannot do, says nothing of them: False, and the case stays due.

    Raises: UnavailableError where this worker has no sandbox.
    """
    row = Case.objects.get(pk=pk)
    made = _bench()
    try:
        with _unpacked(row) as case:
            problem = passes_before(case, made)
            trouble = "" if problem is None else f"{problem.message} [{problem.code}]"
    except (UserError, OSError, RuntimeError, MemoryError) as error:
        if is_fault(error) or of_host(error):
            log.warning("checks of case %s were not tried: %s", row, error)
            return False
        if not isinstance(error, UserError):
            raise
        trouble = f"{error.message} [{error.code}]"
    with transaction.atomic():
        Vetting.objects.get_or_create(case=row, defaults={"trouble": trouble[:WHY]})
    return True


def judge(key: str) -> bool:
    """Judge a run of a case that has ended. What the host cannot do decides nothing: False, and it stays due.

    Raises: UnavailableError where this worker has no sandbox.
    """
    of = CaseRun.objects.select_related("run__parent", "case").get(run__key=key)
    made = _bench()
    outcome, why, results = "void", "", []
    try:
        with _unpacked(of.case) as case, _left(of.run) as left:
            codes = tuple(code for code in of.run.reason.split(", ") if code)
            found = judged(case, of.run.state, codes, left, made)
            outcome, why, results = found.outcome, found.why, to_json(found.results)
    except (UserError, OSError, RuntimeError, MemoryError) as error:
        if is_fault(error) or of_host(error):
            log.warning("run %s was not judged: %s", key, error)
            return False
        if not isinstance(error, UserError):
            raise
        why = f"{error.message} [{error.code}]"
    if outcome == "void" and _tries(key) < TRIES:
        log.warning("run %s was not judged, and will be tried again: %s", key, why)
        return True
    with suppress(IntegrityError), transaction.atomic():  # unless somebody else did it meanwhile
        Judgement.objects.create(of=of, outcome=outcome, why=why, results=results)
    return True


def _tries(key: str) -> int:
    """How many times it was tried, this time too; where the cache forgot, it is tried more often."""
    mark = f"suites.tries.{key}"
    cache.add(mark, 0, REMEMBERED_S)
    try:
        return int(cache.incr(mark))
    except ValueError:  # it ran out between the two
        return 1


@lru_cache(maxsize=1)
def _bench() -> Bench:
    return bench()


@contextmanager
def _unpacked(row: Case) -> Iterator[Kept]:
    """The case in a folder of its own. Raises: UserError."""
    with Scratch("case") as held:
        folder = held / row.name
        folder.mkdir()
        packs.fill(row.pack, folder)
        yield read_case(folder)


@contextmanager
def _left(run: Run) -> Iterator[Path]:
    """What a run left, by the root that its records name. Raises: RunError `workspace.*`."""
    with Scratch("left") as folder:
        place = Workspace(folder / "ws", folder / "store")
        place.draw_from(folder_of(run.key) / "store")
        draw_from_parents(run, place)
        place.draw_on(StoredBlobs(run.pk))
        _, now = roots(run)
        place.directory.mkdir(parents=True, exist_ok=True)
        if now:
            place.restore(now)
        yield place.directory
