"""What `spak eval` costs over the runs that it makes.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. The work is CASES cases without workspace,
each one run of SPEC: write a file, a program in the sandbox, read the file. The floor is the same runs, one
by one in the same process without suite, experiment's ledger, judgement or report. A round measures both, in
alternating order, and gives a ratio; a row shows the median of the rounds and, in its name, the interval that
holds the true median with 95 % (order statistics, no assumption on the noise). The aim is for CPU time, of
the process and its children, since other programs change it least. Wall time is shown.
"""

from __future__ import annotations

import contextlib
import io
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

from bench.sizes import sized
from spak.cli import eval_, session
from spak.evolve.experiments import Budget, Experiment
from spak.evolve.suites import Case, Suite

CASES, ROUNDS = sized(10, 2), sized(15, 6)
SPEC = """
task Write {
  step one: tool.write_file { path: "a.txt" content: "good" }
  step two: tool.run { cmd: "sort a.txt" }
  step three: tool.read_file { path: "a.txt" }
  success: file_contains("a.txt", "good")
}
"""
WORK = f"spak eval, {CASES} cases of a run of 3 steps, over the runs alone"

Times = tuple[float, float]
"""CPU and wall seconds."""


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    cpu, wall = [], []
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        for ours, floor in measured(Path(name)):
            cpu.append(ours[0] / floor[0])
            wall.append(ours[1] / floor[1])
    return [_row("CPU time", cpu, "<= 1.05"), _row("wall time", wall, "")]


def _row(what: str, ratios: Sequence[float], aim: str) -> dict[str, Any]:
    least, most = interval(ratios)
    title = f"{WORK}: {what} ({least:.3f} to {most:.3f} in {len(ratios)} rounds)"
    return {"name": title, "ours": round(median(ratios), 3), "floor": 1.0, "unit": "x", "aim": aim}


def interval(seen: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of ranks that holds the median with 95 %; the range where there are too few."""
    ranked, count = sorted(seen), len(seen)
    below, outside = 0, 0.0
    while below < count // 2 and outside + comb(count, below) / 2**count <= 0.025:
        outside += comb(count, below) / 2**count
        below += 1
    cut = max(below - 1, 0)
    return ranked[cut], ranked[count - 1 - cut]


def measured(folder: Path, rounds: int = ROUNDS) -> list[tuple[Times, Times]]:
    """What the experiment and the runs alone took in each round, after one round that is not counted."""
    spec = folder / "a.spak"
    spec.write_text(SPEC)
    suite = Suite.open(folder / "suite", new=True)
    for number in range(CASES):
        suite = suite.add(Case(f"c{number}", folder, seed=number), lambda place: None, None)
    seen = []
    for number in range(rounds + 1):
        turns: list[Callable[[], Times]] = [
            lambda place=folder / f"eval{number}": _timed(lambda: experiment(spec, suite, place)),
            lambda place=folder / f"alone{number}": _timed(lambda: alone(spec, place)),
        ]
        if number % 2:
            floor, ours = turns[1](), turns[0]()
        else:
            ours, floor = turns[0](), turns[1]()
        seen.append((ours, floor))
    return seen[1:]


def alone(spec: Path, root: Path) -> None:
    """The runs of the cases, without an experiment."""
    empty = root / "empty"
    empty.mkdir(parents=True)
    for number in range(CASES):
        held = session.begin(spec, root / "runs", workspace=empty, seed=number)
        held.advance()
        held.close()


def experiment(spec: Path, suite: Suite, root: Path) -> None:
    """What `spak eval` does, from the plan to the report."""
    splits = ("train", "gate", "sealed")
    with contextlib.redirect_stderr(io.StringIO()):
        plan, _ = eval_.planned((spec,), suite.folder, 1, splits, "", Budget(), None)
        made = Experiment.create(root / "evals", "e", plan)
        eval_.carry_out(made, suite, root / "evals", root / "runs", 1, None)
    report = eval_.report_of(made)
    assert report.specs[0].passed == CASES, report.specs[0]


def _timed(work: Callable[[], None]) -> Times:
    cpu, wall = _cpu(), time.perf_counter()
    work()
    return _cpu() - cpu, time.perf_counter() - wall


def _cpu() -> float:
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime
