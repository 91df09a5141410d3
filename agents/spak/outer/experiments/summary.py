"""What an experiment shows: rates, flaky cases, the matrix, figures by spec, and the verdict on two specs.

Pure: takes the plan and the cells that are there. A cell that is missing (a budget ran out, it was stopped)
or void (the run did not end, a check could not be made, another spec ran) is no pass of its spec; in a
comparison it counts against the candidate, whichever side lacks it, and is named.

A case is one observation. Its difference is the candidate's share of passes less the base's; a win is a case
where it is above 0. Better or worse: the exact two-sided sign test over cases at 5 %. Non-inferior: betting
evidence of at least 20 that the mean difference is above minus the margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from spak.outer import stats
from spak.outer.experiments.model import Cell, Done, Plan, cells
from spak.outer.stats.betting import needed_ties

ALPHA = 0.05
EVIDENCE = 20.0
Word = Literal["better", "worse", "no_difference"]
FIGURES = ("tokens", "cost_nanousd", "ms")


@dataclass(frozen=True, slots=True)
class SpecRow:
    """One spec: passes over all its cells, with the Wilson interval, and pass^k for k = 1..n."""

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
    """Tokens, cost and time: sum, mean by case, and the bootstrap interval of that mean."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The candidate against the base. `needed_n` cases would show a difference like the one seen."""

    base: str
    candidate: str
    verdict: Word
    wins: int
    losses: int
    ties: int
    p: float
    difference: float
    interval: tuple[float, float] | None
    needed_n: int | None
    against: tuple[str, ...]
    """Cells that count against the candidate because they have no result."""
    figures: Mapping[str, Mapping[str, Any]]
    """Differences of tokens, cost and time by case where both have all results."""
    non_inferior: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What an experiment found, for each spec and for the comparison of two."""

    experiment: str
    head: str
    plan: Plan
    done: Mapping[Cell, Done]
    specs: tuple[SpecRow, ...]
    comparison: Comparison | None
    stopped: str = ""

    @property
    def ok(self) -> bool:
        """Every run passed; of a comparison: it is not worse, or, where that was asked for, non-inferior."""
        if self.comparison is None:
            return all(row.passed == row.n for row in self.specs)
        if self.comparison.non_inferior is not None:
            return bool(self.comparison.non_inferior["holds"])
        return self.comparison.verdict != "worse" and not self.comparison.against

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
        }


def summarise(name: str, head: str, plan: Plan, done: Mapping[Cell, Done], stopped: str = "") -> Report:
    """The report on an experiment, finished or not."""
    judged = {cell: _judged(plan, cell, item) for cell, item in done.items()}
    rows = tuple(_row(plan, spec, judged) for spec in plan.specs)
    names = list(plan.specs)
    compared = _compare(plan, names[0], names[1], judged) if len(names) == 2 else None
    return Report(name, head, plan, judged, rows, compared, stopped)


def _judged(plan: Plan, cell: Cell, done: Done) -> Done:
    """A cell whose run names another spec than the plan is void: it is no evidence about this one."""
    if done.outcome == "void" or done.ran == plan.specs[cell.spec]:
        return done
    fields = {**done.to_json(), "outcome": "void", "why": f"another spec ran: {done.ran or 'none'}"}
    return Done.from_json(fields)


def _of(plan: Plan, spec: str, case: str) -> list[Cell]:
    return [Cell(case, spec, k) for k in range(plan.n)]


def _row(plan: Plan, spec: str, done: Mapping[Cell, Done]) -> SpecRow:
    counts, flaky, void, missing = [], [], [], []
    for case in plan.cases:
        mine = [(cell, done.get(cell)) for cell in _of(plan, spec, case)]
        passed = sum(item is not None and item.outcome == "pass" for _, item in mine)
        failed = sum(item is not None and item.outcome == "fail" for _, item in mine)
        counts.append((passed, plan.n))
        flaky += [case] if passed and failed else []
        void += [f"{cell.key}: {item.why}" for cell, item in mine if item and item.outcome == "void"]
        missing += [cell.key for cell, item in mine if item is None]
    total, n = sum(passed for passed, _ in counts), plan.n * len(plan.cases)
    return SpecRow(
        spec, plan.specs[spec], total, n, stats.wilson(total, n),
        tuple(stats.pass_power(counts, k) for k in range(1, plan.n + 1)),
        tuple(flaky), tuple(void), tuple(missing),
        {name: _amounts(plan, spec, name, done) for name in FIGURES},
    )  # fmt: skip


def seed_of_suite(suite_hash: str) -> int:
    """What the intervals of a suite are drawn with, so that they come out again."""
    return int.from_bytes(suite_hash.encode()[:6], "big")


def figure(values: Sequence[float | None], seed: int) -> dict[str, Any]:
    """The mean of one value for each case with its bootstrap interval; None is a case that is not known."""
    known = [value for value in values if value is not None]
    if not known:
        return {"cases": 0, "mean": None, "interval": None}
    return {
        "cases": len(known),
        "mean": sum(known) / len(known),
        "interval": stats.interval_of_mean(known, seed),
    }


def paired(sides: Sequence[tuple[float, float] | None], seed: int) -> dict[str, Any]:
    """The `figure` of what the second side has more than the first, with the mean of each side."""
    known = [one for one in sides if one is not None]
    found = figure([second - first for first, second in known], seed)
    means = [sum(side) / len(known) for side in zip(*known, strict=True)] or [None, None]
    return {**found, "base": means[0], "candidate": means[1]}


def _amounts(plan: Plan, spec: str, name: str, done: Mapping[Cell, Done]) -> dict[str, Any]:
    return figure([_mean(plan, spec, case, name, done) for case in plan.cases], _seed(plan))


def _mean(plan: Plan, spec: str, case: str, name: str, done: Mapping[Cell, Done]) -> float | None:
    """The mean of a figure over a case's runs; None where one is missing or void."""
    found = [done.get(cell) for cell in _of(plan, spec, case)]
    if any(item is None or item.outcome == "void" for item in found):
        return None
    return float(sum(getattr(item, name) for item in found)) / len(found)


def _compare(plan: Plan, base: str, candidate: str, done: Mapping[Cell, Done]) -> Comparison:
    differences, against = [], []
    for case in plan.cases:
        shares = {}
        for spec, missing in ((base, 1.0), (candidate, 0.0)):
            total = 0.0
            for cell in _of(plan, spec, case):
                item = done.get(cell)
                if item is None or item.outcome == "void":
                    against.append(cell.key)
                    total += missing
                else:
                    total += item.outcome == "pass"
            shares[spec] = total / plan.n
        differences.append(shares[candidate] - shares[base])
    wins, losses = sum(item > 0 for item in differences), sum(item < 0 for item in differences)
    ties, p = len(differences) - wins - losses, stats.sign_test(wins, losses)
    word: Word = "no_difference" if p >= ALPHA else "better" if wins > losses else "worse"
    return Comparison(
        base, candidate, word, wins, losses, ties, p,
        sum(differences) / len(differences) if differences else 0.0,
        stats.interval_of_mean(differences, _seed(plan)),
        stats.needed(wins, losses, ties),
        tuple(against),
        {name: _paired(plan, base, candidate, name, done) for name in FIGURES},
        _non_inferior(plan.non_inferior, differences),
    )  # fmt: skip


def _paired(plan: Plan, base: str, candidate: str, name: str, done: Mapping[Cell, Done]) -> dict[str, Any]:
    values: list[float | None] = []
    for case in plan.cases:
        one, other = (_mean(plan, spec, case, name, done) for spec in (base, candidate))
        values.append(None if one is None or other is None else other - one)
    return figure(values, _seed(plan))


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


def _seed(plan: Plan) -> int:
    return seed_of_suite(plan.suite_hash)
