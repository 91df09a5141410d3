"""What an experiment may use: the estimate before it begins, and the end when its budget is used up.

The runs of an experiment are queued at once, so a sweep looks what they have used so far, and cancels those
that have not begun. Runs that are under way end by themselves: an experiment can use more than its budget by
what runs at that moment, and by what begins between two sweeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, cast

from django.db import transaction
from django.db.models import Exists, OuterRef

from spak.evolve.experiments import Plan, Used
from spak.evolve.suites.book import SPLITS
from spakweb.ground import clock
from spakweb.ground.audit.actions import record
from spakweb.ground.database.lock_wait import short_lock_wait
from spakweb.store.hints import news
from spakweb.store.jobs.leases import free
from spakweb.store.ledger.projection import tokens_used
from spakweb.store.runs.models import ENDED, Run, State
from spakweb.store.suites.models import Case, Cell, Experiment

FIGURES = ("tokens", "cost_nanousd", "ms")


def amounts(summary: Any) -> dict[str, int]:
    """Tokens, billionths of a US dollar and milliseconds of a run, by its summary."""
    found = summary or {}
    return {
        "tokens": tokens_used(found),
        "cost_nanousd": int(found.get("cost") or 0),
        "ms": int(found.get("elapsed_ms") or 0),
    }


def known(cases: Iterable[Case]) -> dict[str, dict[str, int]]:
    """What the runs took that cases were kept from, by case; without cases whose run is gone."""
    origins = {case.origin: case for case in cases if case.origin}
    rows = Run.objects.filter(key__in=origins, deleted_at=None).values_list("key", "summary")
    return {origins[key].name: amounts(summary) for key, summary in rows if summary}


def estimates(cases: Sequence[Case]) -> dict[str, dict[str, int]]:
    """For each split what one run of each of its cases takes, by the runs that they were kept from: tokens,
    cost_nanousd, ms, and `unknown`, the number of cases without."""
    took = known(cases)
    found: dict[str, dict[str, int]] = {}
    for split in SPLITS:
        mine = [case.name for case in cases if case.split == split]
        sums = {name: sum(took.get(case, {}).get(name, 0) for case in mine) for name in FIGURES}
        found[split] = {"cases": len(mine), "unknown": sum(case not in took for case in mine), **sums}
    return found


def used(experiment: Experiment) -> Used:
    """What its runs have used so far, those under way too."""
    total = Used()
    rows = experiment.cells.filter(run__count__gt=0).values_list("run__summary", flat=True)
    for found in map(amounts, rows):
        total = Used(
            total.runs + 1,
            total.tokens + found["tokens"],
            total.cost_nanousd + found["cost_nanousd"],
            total.ms + found["ms"],
        )
    return total


def enforce() -> int:
    """Stop experiments whose budget is used up; gives how many runs were cancelled."""
    unended = Cell.objects.filter(experiment=OuterRef("pk")).exclude(run__state__in=ENDED)
    cancelled = 0
    for experiment in Experiment.objects.filter(Exists(unended), stopped_at=None).select_related(
        "suite__team"
    ):
        budget = Plan.from_json(experiment.plan).budget
        if why := used(experiment).exhausted(budget):
            cancelled += _end(experiment, why)
    return cancelled


def _end(experiment: Experiment, why: str) -> int:
    now = clock.now()
    with short_lock_wait():
        left = Experiment.objects.filter(pk=experiment.pk, stopped_at=None)
        if not left.update(stopped_at=now, ran_out=why):
            return 0
        unbegun = Run.objects.filter(free(now), cell__experiment=experiment, count=0)
        keys = list(unbegun.exclude(state__in=ENDED).values_list("key", flat=True))
        rows = Run.objects.filter(free(now), key__in=keys, count=0).exclude(state__in=ENDED)
        many = rows.update(state=State.CANCELLED, reason="run.cancelled", wanted="", ended_at=now)
        record(None, "experiment.ran_out", str(experiment), experiment.team, budget=why, cancelled=many)
        for key in keys:
            transaction.on_commit(partial(news.publish, key, 0))
    return cast(int, many)
