"""What an experiment costs over the runs that it makes.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. The floor is the same runs, one by
one in the same process without suite, ledger, judgement or report; both in turn, CPU time of the process and
its children, the least of ROUNDS each: what other programs on the machine add to CPU time is only ever more.
"""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import Any

from spak.cli import eval_, session
from spak.outer.experiments import Budget, Experiment
from spak.suites import Case, Suite

CASES, ROUNDS = 10, 7
SPEC = """
task Write {
  step one: tool.write_file { path: "a.txt" content: "good" }
  step two: tool.run { cmd: "sort a.txt" }
  step three: tool.read_file { path: "a.txt" }
  success: file_contains("a.txt", "good")
}
"""


def rows() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        folder = Path(name)
        spec = folder / "a.spak"
        spec.write_text(SPEC)
        suite = Suite.open(folder / "suite", new=True)
        for number in range(CASES):
            suite = suite.add(Case(f"c{number}", folder, seed=number), lambda place: None, None)
        alone(spec, folder / "warm")
        ours, floor = [], []
        for number in range(ROUNDS):
            floor.append(alone(spec, folder / f"alone{number}"))
            ours.append(experiment(spec, suite, folder / f"eval{number}"))
    return [
        {
            "name": f"{CASES} runs by spak eval over the runs alone",
            "ours": round(min(ours) / min(floor), 3),
            "floor": 1.0,
            "unit": "x",
            "aim": "<= 1.05",
        }
    ]


def alone(spec: Path, root: Path) -> float:
    empty = root / "empty"
    empty.mkdir(parents=True)
    began = _cpu()
    for number in range(CASES):
        held = session.begin(spec, root / "runs", workspace=empty, seed=number)
        held.advance()
        held.close()
    return _cpu() - began


def experiment(spec: Path, suite: Suite, root: Path) -> float:
    began = _cpu()
    splits = ("train", "gate", "sealed")
    plan, _ = eval_.planned((spec,), suite.folder, 1, splits, "", Budget(), None)
    made = Experiment.create(root / "evals", "e", plan)
    eval_.carry_out(made, suite, root / "evals", root / "runs", 1, None)
    report = eval_.report_of(made)
    used = _cpu() - began
    assert report.specs[0].passed == CASES, report.specs[0]
    return used


def _cpu() -> float:
    """Seconds, to the microsecond."""
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime
