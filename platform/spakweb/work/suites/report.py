"""What an experiment shows so far: the kernel's own report, made of the runs of its cells.

A run that has not ended is missing, and so is one that never began because the budget was used up; one that
was cancelled or deleted, could not begin, asked a person, or whose first record names another spec than the
plan, is void. None of these passes for a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from spak.evolve.experiments import Cell as Place
from spak.evolve.experiments import Done, Plan, Report, Used, summarise
from spak.evolve.experiments.model import Outcome, spec_hash
from spak.records import decode
from spakweb.store.ledger.projection import tokens_used
from spakweb.store.runs.models import Run, RunRecord, State
from spakweb.store.suites.models import Case, Cell, Experiment, Judgement

CANCELLED = "run.cancelled"
NOT_BEGUN, WAITS = "it could not begin: ", "it waits for a person"
OF_SPEC = (WAITS, "web.trial_asks", *(f"{NOT_BEGUN}{family}" for family in ("lang.", "usage.", "policy.")))
"""How a reason begins for which the spec is to blame, and not the host or whoever ended the run."""


@dataclass(frozen=True, slots=True)
class Shown:
    """`runs` has the run of each cell, ended or not; `open` counts those that have not ended."""

    report: Report
    runs: Mapping[Place, Run]
    open: int
    used: Used


def of(experiment: Experiment) -> Shown:
    """The report on an experiment, finished or not."""
    plan = Plan.from_json(experiment.plan)
    done: dict[Place, Done] = {}
    runs: dict[Place, Run] = {}
    unbegun, used = 0, Used()
    for place, cell in newest(experiment).items():
        runs[place] = cell.run
        if experiment.ran_out and cell.run.state == State.CANCELLED and not cell.run.count:
            unbegun += 1
        elif settled(cell.case, cell.run):
            done[place] = done_of(cell.case, cell.run)
            used = used.and_(done[place])
    stopped = (experiment.ran_out or "stopped") if experiment.stopped_at else ""
    report = summarise(f"{experiment.suite.slug} {experiment.number}", "", plan, done, stopped)
    return Shown(report, runs, len(runs) - len(done) - unbegun, used)


def newest(experiment: Experiment) -> dict[Place, Cell]:
    """The newest attempt of each cell."""
    rows = experiment.cells.select_related("case__suite", "version__spec__team", "run").order_by(
        "attempt", "pk"
    )
    return {Place(cell.case.name, cell.label, cell.k): cell for cell in rows}


def settled(case: Case, run: Run) -> bool:
    """Whether what a run of a case came to is known: it has ended, and is judged where checks decide."""
    if _void(case, run):
        return True
    return run.ended and (not case.checked or Judgement.objects.filter(of__run=run).exists())


def is_void(case: Case, run: Run) -> bool:
    """Whether a run of a case is over and gave no result."""
    return settled(case, run) and done_of(case, run).outcome == "void"


def done_of(case: Case, run: Run) -> Done:
    """The result of a settled run of a case."""
    if why := _void(case, run):
        return Done(run.key, "void", why, run.state, of_host=not why.startswith(OF_SPEC))
    summary: Mapping[str, Any] = run.summary or {}
    reason = "" if run.state == State.SUCCEEDED else run.reason
    right = run.state == case.state and reason == case.reason
    why = "" if right else f"it ended as {run.state}" + (f": {run.reason}" if run.reason else "")
    outcome: Outcome = "pass" if right else "fail"
    if case.checked:
        judged = Judgement.objects.get(of__run=run)
        outcome, why = cast(Outcome, judged.outcome), judged.why
    return Done(
        run.key, outcome, why, run.state, (run.reason,) if run.reason else (),
        tokens_used(summary), int(summary.get("cost") or 0),
        int(summary.get("elapsed_ms") or 0), _ran(run.key),
    )  # fmt: skip


def _void(case: Case, run: Run) -> str:
    """Why a run gives no result, whatever it did; empty where it gives one, or goes on."""
    if run.deleted_at is not None:
        return "the run was deleted"
    if run.state == State.WAITING:
        return WAITS
    if run.state == State.CANCELLED and run.reason not in ("", CANCELLED):
        return run.reason
    if run.state == State.CANCELLED and case.state != State.CANCELLED:
        return "the run was cancelled"
    return f"{NOT_BEGUN}{run.reason}" if run.ended and not run.count else ""


@lru_cache(maxsize=4_096)
def _ran(run: str) -> str:
    """The hash of the spec that an ended run's first record holds."""
    first = RunRecord.objects.filter(run__key=run, seq=0).values_list("line", flat=True).first()
    text = (decode(bytes(first)).body.get("rules") or {}).get("spec") if first is not None else None
    return spec_hash(text) if isinstance(text, str) else ""
