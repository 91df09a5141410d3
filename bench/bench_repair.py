"""Repair of mutants of HumanEval: correct, overfit, refused with a code, and what each check alone catches.

Only when named (`make bench ARGS=repair`): the first time it installs the packages of
requirements-repair.lock, with their hashes, into `.venv-repair`. Mutants are made by the operators of
cosmic-ray, which know nothing of ours; those that no test kills are left out. The asserts of a problem become
tests of a project, and a search splits them by itself into visible and hidden ones. A patch is correct when
it passes all tests and answers as the reference solution on 300 inputs that no search has seen; else it is
overfit. The other lines judge the same searches with one check left out, or take the first patch that passes.
CPU time is that of the sandboxed jobs and of the search itself, up to the accepted patch; the last run of all
tests is not in it. Without `visible` every edit passes what the search sees: those searches are made again
for the first of the mutants.

A half-mended program had two mistakes, of which one is mended: a report of the mended one is stale. Both
programs fail a test of the problem, by the judge and not by the search. It is called mended where a patch is
accepted that is not correct, where the search says that no test fails, or where it says of the stale report's
test that it passes and not that others fail.
"""

from __future__ import annotations

import ast
import json
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.bench_peers import installed
from bench.sizes import sized
from spak import config, data
from spak.ports import Job, MeasureCall
from spak.proposers.repair import checks, lab
from spak.proposers.repair import search as searching
from spak.proposers.repair.candidates import Candidate

ROOT = Path(__file__).resolve().parents[1]
LOCK, PLACE = ROOT / "requirements-repair.lock", ROOT / ".venv-repair"
SEED, MUTANTS, RIGHT = sized(4, 5), sized(200, 1), sized(164, 1)
HALVES, UNSEEN = sized(60, 1), sized(20, 1)
INPUTS = 300
FIRST = frozenset(checks.NAMES)


@dataclass(slots=True)
class Outcome:
    """What became of one mutant."""

    task: str
    operator: str
    code: str = ""
    """Of a refusal."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    correct: bool = False
    cpu_s: float = 0.0
    without: dict[str, str] = field(default_factory=dict)
    """By what was left out: `correct`, `overfit`, or the code of a refusal."""


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    python = installed(PLACE, LOCK)
    made = subprocess.run(
        [str(python), str(ROOT / "bench" / "repair_theirs.py"), str(SEED), str(MUTANTS * 2), str(HALVES * 2)],
        capture_output=True,
        check=True,
    )
    found = json.loads(made.stdout)
    problems = {one["task_id"]: one for one in found["problems"]}
    outcomes = list(mended(problems, found["mutants"]))
    left_alone = [alone(problem) for problem in list(problems.values())[:RIGHT]]
    edits = sum(not one for one in left_alone)
    name = f"right solutions with a stale report: edits, of {len(left_alone)}"
    halves = list(halved(problems, found["halves"]))
    return [*_rows(outcomes), *_of_checks(outcomes), _row(name, edits, "edits", "<= 0"), *_of_halves(halves)]


def mended(problems: Mapping[str, Mapping[str, Any]], mutants: list[dict[str, Any]]) -> Iterator[Outcome]:
    """The outcomes of the first MUTANTS mutants that some test kills."""
    count = 0
    for mutant in mutants:
        if count == MUTANTS:
            return
        problem = problems[mutant["task"]]
        outcome = _searched(problem, mutant["code"], Outcome(mutant["task"], mutant["operator"]))
        if outcome.code != "repair.not_reproduced":
            if count < UNSEEN:
                unseen = _searched(problem, mutant["code"], Outcome("", ""), off=frozenset({"visible"}))
                outcome.without["visible"] = unseen.code or ("correct" if unseen.correct else "overfit")
            count += 1
            yield outcome


def halved(
    problems: Mapping[str, Mapping[str, Any]], halves: list[dict[str, Any]]
) -> Iterator[tuple[Outcome, Outcome | None]]:
    """Of the first HALVES half-mended programs the outcome, and that with a stale report, where a test failed
    before and passes now."""
    count = 0
    for half in halves:
        problem = problems[half["task"]]
        if count == HALVES or not all(judged(problem, half[name])["fails"] for name in ("code", "both")):
            continue
        count += 1
        before, now = (_failing(problem, half[name]) for name in ("both", "code"))
        stale = [name for name in before if name not in now]
        report = _searched(problem, half["code"], Outcome("", ""), test=stale[0]) if stale else None
        yield _searched(problem, half["code"], Outcome(half["task"], half["operator"])), report


def _failing(problem: Mapping[str, Any], code: str) -> list[str]:
    with _project(problem, code) as call:
        parts = searching.look(call, searching.Options(tests=(".",))).parts
    return sorted(test.name for test in (*parts.visible, *parts.hidden) if test.outcome == "fail")


def alone(problem: Mapping[str, Any]) -> bool:
    """Whether a right solution is left as it is."""
    right = problem["prompt"] + problem["canonical_solution"]
    return bool(_searched(problem, right, Outcome(problem["task_id"], "")).code)


@contextmanager
def _project(problem: Mapping[str, Any], code: str) -> Iterator[MeasureCall]:
    """A folder with the program and its tests, as a search gets it."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "solution.py").write_text(code)
        (folder / "test_solution.py").write_text(tests(problem))
        settings = config.settings()
        box, tools = config.box(settings), config.toolchain(settings.binds)
        yield MeasureCall("bench", "repair", {}, folder, box, settings.limits, tools, seed=SEED)


def _searched(problem: Mapping[str, Any], code: str, outcome: Outcome, **options: Any) -> Outcome:
    seen: list[tuple[Any, ...]] = []
    usual = checks.judge

    def judge(*args: Any) -> checks.Outcome:
        seen.append(args)
        return usual(*args)

    with _project(problem, code) as call:
        checks.judge = judge
        heard, began = _counted(), time.process_time()
        try:
            found = searching.find(call, searching.Options(tests=(".",), compare_all=True, **options))
        finally:
            checks.judge, lab.ask = usual, heard.usual
    outcome.cpu_s = time.process_time() - began + heard.cpu_ms / 1000
    if found.refusal:
        outcome.code, outcome.evidence = found.refusal.code, found.refusal.evidence
    outcome.correct = found.candidate is not None and right(problem, found.candidate)
    for off in (*((name,) for name in checks.NAMES[1:]), FIRST) if seen and not options else ():
        other = usual(*seen[0][:3], frozenset(off))
        label = "all" if off is FIRST else off[0]
        outcome.without[label] = other.refusal.code if other.refusal else "overfit"
        if other.candidate is not None and right(problem, other.candidate):
            outcome.without[label] = "correct"
    return outcome


class _counted:
    """Counts the CPU time of the guest's jobs while it is in the place of `lab.ask`."""

    def __init__(self) -> None:
        self.usual, self.cpu_ms = lab.ask, 0
        lab.ask = self

    def __call__(self, *args: Any) -> lab.Heard:
        heard = self.usual(*args)
        self.cpu_ms += heard.cpu_ms
        return heard


def right(problem: Mapping[str, Any], candidate: Candidate) -> bool:
    """Whether a patched solution answers as the reference does."""
    said = judged(problem, candidate.function.in_file(candidate.edit.text))
    return bool(said) and said["different"] is None


def judged(problem: Mapping[str, Any], code: str) -> Mapping[str, Any]:
    """What the judge says of a program: `different` and `fails`; nothing where it did not end."""
    settings = config.settings()
    tools, launcher = config.toolchain(settings.binds), config.box(settings)
    assert launcher is not None
    plan = {
        "reference": problem["prompt"] + problem["canonical_solution"],
        "mended": code,
        "entry": problem["entry_point"],
        "test": problem["test"],
        "generated": data.path(lab.COMPARE).read_text(),
        "inputs": INPUTS,
        "seed": f"judge {SEED}",
    }
    judge = (ROOT / "bench" / "repair_judge.py").read_text()
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        Path(folder).chmod(0o755)
        argv = (tools.programs["python"], "-I", "-B", "-c", judge)
        done = launcher.run(
            Job(
                argv,
                Path(folder),
                writable=False,
                limits=settings.limits,
                binds=tools.binds,
                stdin=json.dumps(plan).encode(),
            )
        )
    lines = done.stdout.data.decode().strip().splitlines()
    if not lines or done.status != "exited":
        return {"fails": False, "different": "no answer"}
    found: Mapping[str, Any] = json.loads(lines[-1])
    return found


def tests(problem: Mapping[str, Any]) -> str:
    """The asserts of a problem's check, each as a test; what comes before one is repeated in it."""
    tree = ast.parse(problem["test"])
    check = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "check")
    before = [one for one in tree.body if one is not check]
    found, setup = [], list[ast.stmt]()
    for statement in check.body:
        if isinstance(statement, (ast.Assert, ast.For)):
            if not (isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant)):
                found.append([*setup, statement])
        else:
            setup.append(statement)
    lines = [f"from solution import {problem['entry_point']} as candidate", *map(ast.unparse, before)]
    for number, body in enumerate(found):
        lines.append(f"\n\ndef test_{number}():")
        lines += [
            "    " + line
            for part in body
            for line in ast.unparse(ast.fix_missing_locations(part)).split("\n")
        ]
    return "\n".join(lines) + "\n"


def _rows(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    count = len(outcomes)
    accepted = [one for one in outcomes if not one.code]
    correct = sum(one.correct for one in accepted)
    cpu = statistics.median(one.cpu_s for one in accepted) if accepted else None
    refused = Counter(one.code for one in outcomes if one.code)
    first = Counter(one.without.get("all", "none") for one in outcomes)
    kinds = ", ".join(f"{code.partition('.')[2]} {number}" for code, number in refused.most_common())
    return [
        _row(
            f"{count} mutants: correct", 100 * correct / count, "%", ">= 60", 100 * first["correct"] / count
        ),
        _row("overfit", 100 * (len(accepted) - correct) / count, "%", "<= 1", 100 * first["overfit"] / count),
        _row(f"refused with a code ({kinds})", 100 * sum(refused.values()) / count, "%", ""),
        _row("median to the accepted patch", cpu, "CPU-s", "<= 2"),
    ]


def _of_checks(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """With each check left out: what is accepted wrongly, beside the whole."""
    found = []
    for name in checks.NAMES:
        some = [one for one in outcomes if name != "visible" or name in one.without]
        overfit = sum(not one.code and not one.correct for one in some)
        of = "" if len(some) == len(outcomes) else f" of {len(some)} mutants"
        wrong = sum(one.without.get(name) == "overfit" for one in some)
        label = f"without {name}: overfit patches{of}, beside all five"
        found.append(_row(label, wrong, "patches", "", overfit))
    return found


def _of_halves(halves: list[tuple[Outcome, Outcome | None]]) -> list[dict[str, Any]]:
    outcomes = [one for one, _ in halves]
    stale = [report for _, report in halves if report is not None]
    wrong = [one for one in outcomes if not one.code and not one.correct]
    called = len(wrong) + sum(one.code == "repair.not_reproduced" for one in outcomes)
    called += sum(one.code == "repair.not_reproduced" and not one.evidence.get("failed") for one in stale)
    asks = sum(one.code == "repair.ambiguous" for one in outcomes)
    mended, count = sum(one.correct for one in outcomes), len(outcomes)
    kinds = f"{mended} correct, {asks} asked, {len(stale)} stale reports"
    return [
        _row(f"{count} half-mended programs ({kinds}): called mended", called, "programs", "<= 0"),
        _row(
            "half-mended: repaired, or refused with a question", 100 * (mended + asks) / count, "%", ">= 55"
        ),
    ]


def _row(name: str, ours: float | None, unit: str, aim: str, floor: float | None = None) -> dict[str, Any]:
    shown = None if ours is None else round(ours, 2)
    bare = None if floor is None else round(floor, 2)
    return {"name": f"repair: {name}", "ours": shown, "floor": bare, "unit": unit, "aim": aim}
