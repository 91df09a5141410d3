"""What workers do for cases with checks: try them before any run, and judge runs that have ended.

Both are idempotent: the first result is kept. Checks run in a sandbox of their own, on a copy of what the run
left by its records, which is removed afterwards; the files of sealed checks are nowhere else on a worker.
`cases_due()` and `runs_due()` say what nobody asked for yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from spak.begin import bench
from spak.errors import UserError, of_host
from spak.evolve.suites import Case as Kept
from spak.evolve.suites import judge as judged
from spak.evolve.suites.folder import Problem, passes_before
from spak.evolve.suites.model import read_case
from spak.evolve.suites.sealed import Bench, to_json
from spak.files.scratch import Scratch
from spak.workspace import Workspace
from spakweb.ground.host_faults import is_fault
from spakweb.store.ledger import packs
from spakweb.store.ledger.blobs import StoredBlobs
from spakweb.store.ledger.workspaces import folder_of
from spakweb.store.runs.models import ENDED, Run
from spakweb.store.suites.models import Case, CaseRun, Judgement, Vetting
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Again, Kind, decided
from spakweb.work.jobs.queue import to_do
from spakweb.work.runs.files import roots
from spakweb.work.worker.beginning import draw_from_parents

PAUSES = (120, 120)
"""Seconds before a run that could not be judged is tried again; after that it is void."""
LONGEST = timedelta(minutes=50)
WHY = 300


def cases_due() -> list[tuple[str, int]]:
    """Cases whose checks were not tried yet, each with its team."""
    return to_do("suites.vet", Case.objects.filter(checked=True, vetting=None), team="suite__team")


def runs_due() -> list[tuple[str, int]]:
    """Runs that ended and were not judged, each with its team."""
    runs = CaseRun.objects.filter(judgement=None, run__state__in=sorted(ENDED), run__deleted_at=None)
    return to_do("suites.judge", runs, "run__key", "run__team")


def vet(hold: Hold) -> dict[str, Any] | None:
    """Try the sealed checks of a case on an empty workspace and on the one that it begins with. A full disk,
    or what else the host cannot do, says nothing of them: the case stays due.

    Raises: UnavailableError where this worker has no sandbox, and other faults of the host; Lost.
    """
    row = Case.objects.filter(pk=int(hold.key), vetting=None).first()
    if row is None:
        return None
    made = _bench()
    try:
        with _unpacked(row) as case:
            problem = passes_before(case, made)
            trouble = "" if problem is None else _words(problem)
    except UserError as error:
        if is_fault(error) or of_host(error):
            raise
        trouble = _words(error)
    with hold.writing():
        _vetted(row, trouble)
    return {"trouble": trouble[:WHY]}


def _vetted(row: Case, trouble: str) -> None:
    Vetting.objects.get_or_create(case=row, defaults={"trouble": trouble[:WHY]})


def _vet_failed(key: str, error: str) -> None:
    row = Case.objects.filter(pk=int(key)).first()
    if row is not None:
        _vetted(row, error)


def judge(hold: Hold) -> dict[str, Any] | None:
    """Judge a run of a case that has ended; where that is not possible it is tried again, and void in the
    end. What the host cannot do decides nothing, and the run stays due.

    Raises: UnavailableError where this worker has no sandbox, and other faults of the host; Again, Lost.
    """
    rows = CaseRun.objects.select_related("run__parent", "case")
    of = rows.filter(run__key=hold.key, judgement=None, run__deleted_at=None).first()
    if of is None:
        return None
    made = _bench()
    outcome, why, results = "void", "", []
    try:
        with _unpacked(of.case) as case, _left(of.run) as left:
            codes = tuple(code for code in of.run.reason.split(", ") if code)
            found = judged(case, of.run.state, codes, left, made)
            outcome, why, results = found.outcome, found.why, to_json(found.results)
    except UserError as error:
        if is_fault(error) or of_host(error):
            raise
        why = _words(error)
    if outcome == "void":
        raise Again(why)
    with hold.writing():
        Judgement.objects.get_or_create(of=of, defaults={"outcome": outcome, "why": why, "results": results})
    return {"outcome": outcome}


def _void(key: str, error: str) -> None:
    of = CaseRun.objects.filter(run__key=key).first()
    if of is not None:
        Judgement.objects.get_or_create(of=of, defaults={"outcome": "void", "why": error})


def _words(error: UserError | Problem) -> str:
    return f"{error.message} [{error.code}]"


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


VET = Kind(
    name="suites.vet", title="Sealed checks to try", act=vet, find=cases_due, failed=_vet_failed,
    reopen=decided, longest=LONGEST,
)  # fmt: skip
JUDGE = Kind(
    name="suites.judge", title="Runs to judge", act=judge, find=runs_due, failed=_void,
    reopen=decided, waits=PAUSES, longest=LONGEST,
)  # fmt: skip
