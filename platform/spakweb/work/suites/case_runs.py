"""Beginning a run of a case, for experiments and campaigns alike: its inputs, files, seed and recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q

from spak import config
from spak.errors import UserError
from spak.evolve.experiments.model import seed_of
from spak.program import compile as compile_program
from spakweb.ground import clock
from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Command, Run, State
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import SpecVersion
from spakweb.store.specs.team_files import TeamFiles
from spakweb.store.suites.models import Case, CaseRun
from spakweb.work.runs import actions as runs
from spakweb.work.worker.queue import enqueue
from spakweb.work.worker.retry_policy import PAUSE

PERSONS = ("", "manual")
"""Names of a backend with which a person answers."""


def begin(
    user: Any,
    case: Case,
    version: SpecVersion,
    k: int,
    labels: Sequence[str],
    trial: str,
    *,
    backend: str = "",
    text: str = "",
) -> Run:
    """The k-th run of a case, queued. A backend that is named takes the place of the case's recording.

    Raises: what `runs.actions.start` raises.
    """
    with transaction.atomic():
        run = runs.start(
            user, version.spec, version=version, inputs=case.inputs, mode="full_auto", backend=backend,
            labels=labels, files=case.files, bare=case.files is None, text=text,
            seed=seed_of(case.content_hash, case.seed, k), trial=trial,
            recording=case.pack if case.recorded and not backend else "", history=case.history,
        )  # fmt: skip
        if case.checked:
            CaseRun.objects.create(run=run, case=case)
    return run


def resting() -> Q:
    """Of rows with a `run`: it cannot go on now, and is tried again by itself."""
    lately = clock.now() - PAUSE
    return Q(run__state=State.QUEUED, run__due__gt=lately) & ~Q(run__reason="")


def held_up(rows: Any) -> str:
    """Why some of these runs cannot go on now; empty where none is held up."""
    return rows.filter(resting()).order_by("run__pk").values_list("run__reason", flat=True).first() or ""


def try_now(rows: Any) -> None:
    """Try those that are held up at once."""
    with transaction.atomic():
        for one in rows.filter(resting()).select_related("run"):
            enqueue(one.run)


def require_unattended(cases: Iterable[Case], versions: Iterable[SpecVersion], backend: str) -> None:
    """Raises: Refused `web.run_backend` of one that is not there, which would be waited for without end;
    `web.trial_asks` where a person answered the run that a case was kept from, and a version would ask a
    person again. What else asks one is known when it does: its run is void then."""
    if backend not in ("", *catalog().backends):
        hint = f"One of: {', '.join(catalog().backends)}."
        raise Refused("web.run_backend", f"There is no backend {backend[:40]!r}.", hint)
    if backend not in PERSONS:
        return
    origins = {case.origin: case for case in cases if backend or not case.recorded}
    answered = Command.objects.filter(run__key__in=origins, kind="answer", outcome="").exclude(done_at=None)
    key = answered.values_list("run__key", flat=True).first()
    if key is None:
        return
    for version in versions:
        if _asks_person(version, origins[key], backend):
            raise Refused(
                "web.trial_asks",
                f"{version} asks a person, who answered the run of case {origins[key].name}. No person "
                "answers the runs of an experiment or a campaign.",
                "Choose a backend, or cases with a recording.",
            )  # fmt: skip


def _asks_person(version: SpecVersion, case: Case, backend: str) -> bool:
    """Whether a version asks and no backend would answer; False of one that does not compile."""
    try:
        program = compile_program(
            TeamFiles.of(version.spec).whole(version.text).parsed, catalog(), case.inputs
        )
    except UserError:
        return False
    steps = (step for task in program.tasks.values() for step in task.steps)
    asks = any(step.kind in ("ask", "plan") for step in steps)
    return asks and (backend or program.backend or config.settings().backend) in PERSONS


def require_vetted(cases: Iterable[Case]) -> None:
    """Raises: Refused `web.case_checks` where the checks of a case were not tried yet, or show nothing."""
    for case in cases:
        vetting = getattr(case, "vetting", None)
        if case.checked and vetting is None:
            hint = "Wait some seconds; a worker does it."
            raise Refused("web.case_checks", f"The checks of {case.name} are not tried yet.", hint, 409)
        if vetting is not None and vetting.trouble:
            hint = "Fix the case and import the suite again."
            raise Refused("web.case_checks", f"Case {case.name}: {vetting.trouble}.", hint, 409)
