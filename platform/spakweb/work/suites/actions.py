"""Every write to suites: keep a run as a case, begin and stop an experiment. Rights are asked here."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, ProtectedError
from django.utils.text import slugify

from spak import canon
from spak.evolve.experiments import Budget, Plan
from spak.evolve.experiments.model import cells, spec_hash
from spak.evolve.suites.book import SPLITS, draw
from spak.evolve.suites.model import NAME
from spakweb.ground import access, clock, unsafe_text
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import ENDED, Run, State, Trial
from spakweb.store.specs.models import SpecVersion
from spakweb.store.specs.team_files import TeamFiles
from spakweb.store.suites.models import Case, Cell, Experiment, Suite
from spakweb.work.runs import actions as runs
from spakweb.work.suites import case_runs, report

MOST_CELLS, MOST_TIMES, MOST_VERSIONS = 400, 50, 6
NO_LIMIT = Budget()
CANDIDATE = ("train", "gate")
"""The splits of an experiment that names none: sealed cases are looked at on purpose."""


def make(user: Any, team: Team, name: str) -> Suite:
    """A new suite without cases. Raises: Refused `web.suite_name`."""
    access.require(user, "suite.edit", team)
    unsafe_text.require_no_nul(name)
    called = name.strip()[:80]
    slug = slugify(called)[:60]
    if not slug:
        raise Refused("web.suite_name", "A suite needs a name.", "Letters or digits, for example: nightly.")
    try:
        with transaction.atomic():
            made = Suite.objects.create(
                team=team, slug=slug, name=called, seed=secrets.randbits(52) | 1, made_by=user
            )
            record(user, "suite.made", slug, team)
    except IntegrityError as error:
        raise Refused("web.suite_name", f"There is a suite {slug}.", "Choose another name.", 409) from error
    return made


def rename(user: Any, suite: Suite, name: str) -> None:
    """Another name; its address stays. Raises: Refused `web.suite_name`."""
    access.require(user, "suite.edit", suite)
    unsafe_text.require_no_nul(name)
    called = name.strip()[:80]
    if not slugify(called):
        raise Refused("web.suite_name", "A suite needs a name.", "Letters or digits, for example: nightly.")
    with transaction.atomic():
        if Suite.objects.filter(pk=suite.pk).exclude(name=called).update(name=called):
            record(user, "suite.renamed", suite.slug, suite.team, name=called)
    suite.name = called


def remove(user: Any, suite: Suite) -> None:
    """Remove a suite that has no case, experiment or campaign: what was measured stays.

    Raises: Refused `web.suite_used`.
    """
    access.require(user, "suite.edit", suite)
    try:
        with transaction.atomic():
            record(user, "suite.removed", suite.slug, suite.team)
            suite.delete()
    except ProtectedError as error:
        words = "The suite has cases, experiments or campaigns, which stay."
        raise Refused("web.suite_used", words, "Rename it instead.", 409) from error


def keep(user: Any, run: Run, suite: Suite, name: str) -> Case:
    """Freeze a run that ended as a case. Raises: Refused `web.case`."""
    access.require(user, "suite.edit", suite)
    access.require(user, "run.view", run)
    called = name.strip() or run.key
    if run.state not in ENDED or run.only_shown or run.deleted_at is not None or suite.team_id != run.team_id:
        why = "Only a run of this team that has ended can be a case."
        raise Refused("web.case", why, "Wait until it ends.", 409)
    if not NAME.fullmatch(called) or len(called) > 80:
        raise Refused("web.case", "A case is named by letters, digits, dot, dash and underscore.", "first-1")
    reason = "" if run.state == State.SUCCEEDED else run.reason
    root = run.files.root if run.files is not None else ""
    about = [dict(run.inputs), root, run.state, reason, *([run.history] if run.history else [])]
    digest = canon.content_hash(about)
    try:
        with transaction.atomic():
            made = Case.objects.create(
                suite=suite, name=called, content_hash=digest, split=draw(suite.seed, digest),
                inputs=run.inputs, files=run.files, state=run.state, reason=reason, origin=run.key,
                history=run.history, made_by=user,
            )  # fmt: skip
            record(user, "suite.case", called, suite.team, after=digest, suite=suite.slug)
    except IntegrityError as error:
        twin = suite.cases.filter(content_hash=digest).first()
        why = f"the same case as {twin.name}" if twin is not None else f"a case {called}"
        raise Refused("web.case", f"The suite has {why}.", "Choose another name or run.", 409) from error
    return made


def mark_golden(user: Any, case: Case, golden: bool) -> None:
    """Say whether candidates of campaigns may lose the case; one that came as golden stays so. Campaigns that
    have begun keep to what held then."""
    access.require(user, "suite.edit", case.suite)
    with transaction.atomic():
        suite = Suite.objects.select_for_update().get(pk=case.suite_id)
        marked = {*(suite.golden or ())} - {case.name} | ({case.name} if golden else set())
        suite.golden = sorted(marked)
        suite.save(update_fields=["golden"])
        record(user, "suite.golden", case.name, suite.team, suite=suite.slug, golden=golden)


def begin(
    user: Any,
    suite: Suite,
    versions: Sequence[SpecVersion],
    times: int = 1,
    splits: Sequence[str] = CANDIDATE,
    backend: str = "",
    budget: Budget = NO_LIMIT,
) -> Experiment:
    """An experiment with all its runs, queued; each run is one of the team's like any other. When its budget
    is used up, a sweep cancels those that have not begun (budget.py).

    Raises: Refused `web.experiment`, `web.case_checks`, `web.run_backend`, `web.trial_asks`;
    what `runs.actions.start` raises.
    """
    access.require(user, "suite.edit", suite)
    chosen = [case for case in suite.current.select_related("files", "vetting") if case.split in splits]
    unique = list(dict.fromkeys(versions))
    if len(unique) < len(versions):
        twice = next(one for place, one in enumerate(versions) if one in versions[:place])
        hint = "Choose another version; more runs of each case show how much chance decides."
        raise Refused("web.experiment", f"{twice} is named twice.", hint)
    _fits(suite, unique, times, splits, chosen)
    case_runs.require_vetted(chosen)
    case_runs.require_unattended(chosen, unique, backend)
    labels = _labels(unique)
    plan = Plan(
        suite.slug,
        canon.content_hash([[case.name, case.content_hash, case.split] for case in suite.current]),
        {case.name: case.content_hash for case in chosen},
        {label: _hash(version) for label, version in labels.items()},
        {label: str(version) for label, version in labels.items()},
        times,
        tuple(split for split in SPLITS if split in splits),
        backend,
        budget,
    )
    by_name = {case.name: case for case in chosen}
    with transaction.atomic():
        locked = Suite.objects.select_for_update().get(pk=suite.pk)
        number = (locked.experiments.aggregate(most=Max("number"))["most"] or 0) + 1
        made = Experiment.objects.create(
            suite=suite, number=number, plan=plan.to_json(), made_by=user,
            sealed=sum(case.split == "sealed" for case in chosen),
        )  # fmt: skip
        for cell in cells(plan):
            new = Cell(experiment=made, case=by_name[cell.case], version=labels[cell.spec])
            new.label, new.k = cell.spec, cell.k
            _begin(user, new, backend)
        details = {"runs": len(by_name) * len(labels) * times, "sealed": made.sealed}
        record(user, "experiment.begun", f"{suite.slug} {number}", suite.team, **details)
    return made


def stop(user: Any, experiment: Experiment) -> None:
    """Cancel the runs that have not ended; what ended stays."""
    access.require(user, "suite.edit", experiment)
    with transaction.atomic():
        if not Experiment.objects.filter(pk=experiment.pk, stopped_at=None).update(stopped_at=clock.now()):
            return
        record(user, "experiment.stopped", str(experiment), experiment.suite.team)
    for cell in experiment.cells.exclude(run__state__in=ENDED).select_related("run__team"):
        runs.request_control(user, cell.run, "cancel")


def resume(user: Any, experiment: Experiment) -> int:
    """Try at once what is held up, and run again the cells whose run gave no result; how many these are.

    Raises: Refused `web.experiment`.
    """
    access.require(user, "suite.edit", experiment)
    if experiment.stopped_at is not None:
        raise Refused("web.experiment", "The experiment was stopped.", "Start a new one.", 409)
    case_runs.try_now(experiment.cells)
    backend = Plan.from_json(experiment.plan).backend
    with transaction.atomic():
        Suite.objects.select_for_update().get(pk=experiment.suite_id)
        void = [cell for cell in report.newest(experiment).values() if report.is_void(cell.case, cell.run)]
        for cell in void:
            again = Cell(experiment=experiment, case=cell.case, version=cell.version, label=cell.label)
            again.k, again.attempt = cell.k, cell.attempt + 1
            _begin(user, again, backend)
        if void:
            record(user, "experiment.resumed", str(experiment), experiment.team, runs=len(void))
    return len(void)


def _begin(user: Any, cell: Cell, backend: str) -> None:
    """Queue the run of a new cell."""
    label = f"experiment {cell.experiment.suite.slug} {cell.experiment.number}"
    cell.run = case_runs.begin(
        user, cell.case, cell.version, cell.k, [label], Trial.EXPERIMENT, backend=backend
    )
    cell.save()


def _fits(
    suite: Suite, versions: Sequence[SpecVersion], times: int, splits: Sequence[str], chosen: Sequence[Case]
) -> None:
    if not versions or len(versions) > MOST_VERSIONS:
        raise Refused("web.experiment", f"Choose 1 to {MOST_VERSIONS} versions.", "Two are compared.")
    if any(version.spec.team_id != suite.team_id for version in versions):
        raise Refused("web.experiment", "There is no such version.", "Choose from the list.")
    if not set(splits) <= set(SPLITS):
        raise Refused("web.experiment", "There is no such split.", f"One of: {', '.join(SPLITS)}.")
    if not chosen:
        raise Refused("web.experiment", "No case is in these splits.", "Keep more runs as cases.")
    count = len(chosen) * len(versions) * times
    if not 1 <= times <= MOST_TIMES or count > MOST_CELLS:
        raise Refused("web.experiment", f"{count} runs: at most {MOST_CELLS}.", "Run each case fewer times.")


def _labels(versions: Sequence[SpecVersion]) -> Mapping[str, SpecVersion]:
    """What each version is called: `slug v3`; the first is the base of a comparison."""
    return {f"{version.spec.slug} v{version.number}": version for version in versions}


def _hash(version: SpecVersion) -> str:
    """The hash of a version as its runs record it, with its imports."""
    return spec_hash(TeamFiles.of(version.spec).whole(version.text).parsed.text)
