"""What an experiment shows: rates, flaky cases, the matrix, figures by spec, and a verdict on each candidate.

Pure: takes the plan and the cells that are there. A cell that is missing (a budget ran out, it was stopped)
or void has no result. One that is void by its spec's own fault (the run did not end, another spec ran) does
not pass; the others say nothing of a spec. In a comparison a run pairs with the one of the same case and
number under the base. A pair is left out, and named, where neither side has a result, or one has none and is
not to blame. Else the candidate's void run does not pass and the base's does.

A case is one observation. Its difference is the candidate's share of passes less the base's; a win is a case
where it is above 0. Better or worse: the exact two-sided sign test over cases, at 5 % shared among the
candidates, with the interval that belongs to it. Non-inferior: betting evidence of at least 20 that the mean
difference is above minus the margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from spak.evolve import stats
from spak.evolve.experiments.model import Cell, Done, Plan, cells
from spak.evolve.stats.betting import needed_ties

ALPHA = 0.05
EVIDENCE = 20.0
Word = Literal["better", "worse", "no_difference", "no_result"]
FIGURES = ("tokens", "cost_nanousd", "ms")
UNTESTED = frozenset({"ms"})
"""Figures whose difference has no interval: what else the machine did decides them too."""


@dataclass(frozen=True, slots=True)
class SpecRow:
    """One spec: passes of the `n` cells that count, with the exact interval, and pass^k for k = 1..n."""

    spec: str
    hash: str
    passed: int
    n: int
    interval: tuple[float, float]
    power: tuple[float | None, ...]
    flaky: tuple[str, ...]
    void: tuple[str, ...]
    """Cells without a result: `case/spec/k: why`."""
    missing: tuple[str, ...]
    figures: Mapping[str, Mapping[str, Any]]
    """Tokens, cost and time: mean by case, and the approximate interval of that mean."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The candidate against the base. `net` is the share of the cases that it won less that of those that it
    lost, `interval` that of the sign test at 1 - `alpha`; `difference` the mean difference of passes.
    `needed_n` cases would show a difference like the one seen. `no_result`: no case has a pair."""

    base: str
    candidate: str
    verdict: Word
    wins: int
    losses: int
    ties: int
    p: float
    alpha: float
    difference: float
    net: float
    interval: tuple[float, float] | None
    needed_n: int | None
    against: tuple[str, ...]
    """Void cells that count against the candidate."""
    unpaired: tuple[str, ...]
    """Cells without a result whose pairs are left out."""
    figures: Mapping[str, Mapping[str, Any]]
    """Differences of tokens, cost and time by case where both have all results."""
    non_inferior: Mapping[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """No pair is left out, and: non-inferior where that was asked for, else not worse by any run."""
        if self.non_inferior is not None:
            return self.non_inferior["holds"] and not self.unpaired
        return self.verdict != "worse" and not self.against and not self.unpaired


@dataclass(frozen=True, slots=True)
class Report:
    """What an experiment found, for each spec and for each candidate against the first."""

    experiment: str
    head: str
    plan: Plan
    done: Mapping[Cell, Done]
    specs: tuple[SpecRow, ...]
    comparisons: tuple[Comparison, ...]
    stopped: str = ""

    @property
    def comparison(self) -> Comparison | None:
        """The comparison where there are two specs."""
        return self.comparisons[0] if len(self.comparisons) == 1 else None

    @property
    def halted(self) -> bool:
        """Whether it stopped before every cell had a result."""
        return bool(self.stopped) and any(row.void or row.missing for row in self.specs)

    @property
    def ok(self) -> bool:
        """Every run passed; with candidates: none is worse, or non-inferior where that was asked for. Not
        while it is halted."""
        if self.halted:
            return False
        if not self.comparisons:
            return all(row.passed == self.plan.n * len(self.plan.cases) for row in self.specs)
        return all(one.ok for one in self.comparisons)

    def to_json(self) -> dict[str, Any]:
        """The report as `spak eval --json` prints it, with a row for each cell."""
        rows = []
        for cell in cells(self.plan):
            done = self.done.get(cell)
            row: dict[str, Any] = {"case": cell.case, "spec": cell.spec, "k": cell.k}
            rows.append(
                {**row, "run": "", "outcome": "missing"} if done is None else {**row, **done.to_json()}
            )
        return {
            "experiment": self.experiment,
            "head": self.head,
            "suite": {"folder": self.plan.suite, "hash": self.plan.suite_hash},
            "stopped": self.stopped,
            "ok": self.ok,
            "cells": rows,
            "specs": [asdict(row) for row in self.specs],
            "comparison": None if self.comparison is None else asdict(self.comparison),
            "comparisons": [asdict(one) for one in self.comparisons],
        }


def summarise(name: str, head: str, plan: Plan, done: Mapping[Cell, Done], stopped: str = "") -> Report:
    """The report on an experiment, finished or not."""
    judged = {cell: _judged(plan, cell, item) for cell, item in done.items()}
    rows = tuple(_row(plan, spec, judged) for spec in plan.specs)
    base, *candidates = plan.specs
    compared = [_compare(plan, base, one, judged, ALPHA / len(candidates)) for one in candidates]
    return Report(name, head, plan, judged, rows, tuple(compared), stopped)


def _judged(plan: Plan, cell: Cell, done: Done) -> Done:
    """A cell whose run names another spec than the plan is void: it is no evidence about this one."""
    if done.void or done.ran == plan.specs[cell.spec]:
        return done
    return replace(done, outcome="void", why=f"another spec ran: {done.ran or 'none'}")


def _of(plan: Plan, spec: str, case: str) -> list[Cell]:
    return [Cell(case, spec, k) for k in range(plan.n)]


def _row(plan: Plan, spec: str, done: Mapping[Cell, Done]) -> SpecRow:
    counts, flaky, void, missing = [], [], [], []
    for case in plan.cases:
        mine = [(cell, done.get(cell)) for cell in _of(plan, spec, case)]
        known = [item for _, item in mine if item is not None and not _excused(item)]
        passed = sum(item.outcome == "pass" for item in known)
        counts.append((passed, len(known)))
        flaky += [case] if passed and any(item.outcome == "fail" for item in known) else []
        void += [f"{cell.key}: {item.why}" for cell, item in mine if item is not None and item.void]
        missing += [cell.key for cell, item in mine if item is None]
    total, n = (sum(side) for side in zip(*counts, strict=True))
    return SpecRow(
        spec, plan.specs[spec], total, n, stats.exact(total, n),
        tuple(stats.pass_power(counts, k) for k in range(1, plan.n + 1)),
        tuple(flaky), tuple(void), tuple(missing),
        {name: _amounts(plan, spec, name, done) for name in FIGURES},
    )  # fmt: skip


def _excused(done: Done | None) -> bool:
    """Whether it has no result, and the spec is not to blame."""
    return done is None or (done.void and done.of_host)


def figure(values: Sequence[float | None]) -> dict[str, Any]:
    """The mean of one value for each case with its approximate interval; None is a case that is not known."""
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if known else None
    return {"cases": len(known), "mean": mean, "interval": stats.interval_of_mean(known)}


def paired(sides: Sequence[tuple[float, float] | None], name: str = "") -> dict[str, Any]:
    """The `figure` of what the second side has more than the first, with the mean of each side."""
    known = [one for one in sides if one is not None]
    found = figure([second - first for first, second in known])
    means = [sum(side) / len(known) for side in zip(*known, strict=True)] or [None, None]
    return {
        **found,
        **({"interval": None} if name in UNTESTED else {}),
        "base": means[0],
        "candidate": means[1],
    }


def _amounts(plan: Plan, spec: str, name: str, done: Mapping[Cell, Done]) -> dict[str, Any]:
    found = figure([_mean(plan, spec, case, name, done) for case in plan.cases])
    if found["interval"] is not None:  # amounts are not below 0
        found["interval"] = tuple(max(end, 0.0) for end in found["interval"])
    return found


def _mean(plan: Plan, spec: str, case: str, name: str, done: Mapping[Cell, Done]) -> float | None:
    """The mean of a figure over a case's runs; None where one is missing or void."""
    found = [done.get(cell) for cell in _of(plan, spec, case)]
    if any(item is None or item.void for item in found):
        return None
    return float(sum(getattr(item, name) for item in found)) / len(found)


def _compare(plan: Plan, base: str, candidate: str, done: Mapping[Cell, Done], alpha: float) -> Comparison:
    differences, against, unpaired = [], [], []
    for case in plan.cases:
        found = []
        for cells_ in zip(_of(plan, base, case), _of(plan, candidate, case), strict=True):
            before, after = (done.get(cell) for cell in cells_)
            void = [cell.key for cell in cells_ if cell not in done or done[cell].void]
            if before is None or after is None or no_pair(before, after):
                unpaired += void
                continue
            against += void
            found.append((after.outcome == "pass") - (before.outcome != "fail"))
        differences += [sum(found) / len(found)] if found else []
    many = len(differences)
    wins, losses = sum(item > 0 for item in differences), sum(item < 0 for item in differences)
    ties, p = many - wins - losses, stats.sign_test(wins, losses)
    word: Word = "no_difference" if p >= alpha else "better" if wins > losses else "worse"
    return Comparison(
        base, candidate, word if many else "no_result", wins, losses, ties, p, alpha,
        sum(differences) / many if many else 0.0,
        (wins - losses) / many if many else 0.0,
        stats.net_interval(wins, losses, ties, alpha),
        stats.needed(wins, losses, ties),
        tuple(against),
        tuple(unpaired),
        {name: _paired(plan, base, candidate, name, done) for name in FIGURES},
        _non_inferior(plan.non_inferior, differences),
    )  # fmt: skip


def no_pair(base: Done, candidate: Done) -> bool:
    """Whether a pair says nothing: neither side has a result, or one has none and is not to blame."""
    return (base.void and candidate.void) or _excused(base) or _excused(candidate)


def _paired(plan: Plan, base: str, candidate: str, name: str, done: Mapping[Cell, Done]) -> dict[str, Any]:
    sides = []
    for case in plan.cases:
        one, other = (_mean(plan, spec, case, name, done) for spec in (base, candidate))
        sides.append(None if one is None or other is None else (one, other))
    return paired(sides, name)


def _non_inferior(margin: float | None, differences: Sequence[float]) -> dict[str, Any] | None:
    if margin is None:
        return None
    evidence = stats.mean_above(differences, -margin)
    return {
        "margin": margin,
        "holds": evidence >= EVIDENCE,
        "evidence": min(evidence, 1e300),
        "cases": len(differences),
        "needed_ties": needed_ties(-margin, 1 / EVIDENCE),
    }
