"""`spak eval SPEC...`: every case of a suite under each spec, n times, and what that shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from spak.cli import common
from spak.errors import OuterError, UnavailableError, UsageError

if TYPE_CHECKING:
    from spak.evolve.experiments import Budget, Cell, Done, Experiment, Plan, Report
    from spak.evolve.suites import Suite

SPLITS = ("train", "gate", "sealed")
FOLDER = "evals"
BUDGETS = {
    "runs": " --budget-runs N",
    "tokens": " --budget-tokens N",
    "money": " --budget-usd N",
    "time": " --budget-s N",
}
"""What more of a budget that was used up is given with."""


@click.command()
@click.argument("specs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--suite", "folder", type=click.Path(path_type=Path), help="The suite's folder.")
@click.option(
    "--n", type=click.IntRange(min=1, max=1000), default=1, show_default=True, help="Runs of each case."
)
@click.option(
    "--jobs", type=click.IntRange(min=1, max=256), default=1, show_default=True, help="Runs at a time."
)
@click.option("--backend", default="", help="Who answers questions instead of a case's recording.")
@click.option("--split", "splits", multiple=True, type=click.Choice(SPLITS), help="Only cases of this split.")
@click.option("--budget-runs", type=click.IntRange(min=1), help="Stop after so many runs.")
@click.option("--budget-tokens", type=click.IntRange(min=1), help="Stop when models used so many tokens.")
@click.option(
    "--budget-usd", type=click.FloatRange(min=0, min_open=True), help="Stop when models cost so much."
)
@click.option(
    "--budget-s", type=click.FloatRange(min=0, min_open=True), help="Stop after so many run seconds."
)
@click.option(
    "--non-inferior",
    type=click.FloatRange(min=0, max=100, min_open=True, max_open=True),
    metavar="PERCENT",
    help="Ask whether the second spec is no worse than the first by so many points.",
)
@click.option("--resume", "named", metavar="EXPERIMENT", help="Continue an experiment that stopped.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write the cells as JUnit XML.")
@click.option("--html", type=click.Path(path_type=Path), help="Write the report as one HTML page.")
@common.timeout_option
@common.runs_option
@common.json_option
def command(
    specs: tuple[Path, ...],
    folder: Path | None,
    n: int,
    jobs: int,
    backend: str,
    splits: tuple[str, ...],
    budget_runs: int | None,
    budget_tokens: int | None,
    budget_usd: float | None,
    budget_s: float | None,
    non_inferior: float | None,
    named: str | None,
    junit: Path | None,
    html: Path | None,
    timeout: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Run the cases of a suite under each SPEC and compare each other one with the first."""
    from spak.evolve.experiments import Budget, Experiment

    root = common.runs_dir(runs_dir)
    place = root.parent / FOLDER
    budget = Budget(budget_runs or 0, budget_tokens or 0, int((budget_usd or 0.0) * 1e9), budget_s or 0.0)
    if named is None:
        if not specs or folder is None:
            raise UsageError("usage.arguments", "no SPEC or no --suite", "spak eval a.spak --suite DIR")
        margin = None if non_inferior is None else non_inferior / 100
        plan, suite = planned(specs, folder, n, splits or SPLITS[:2], backend, budget, margin)
        experiment = Experiment.create(place, common.run_id(), plan)
        _estimated(plan, suite, experiment)
    else:
        common.fixed_by_plan("specs", "folder", "n", "backend", "splits", "non_inferior")
        experiment = Experiment.read(place, named)
        suite = reopened(experiment.plan)
        given = {name: value for name, value in asdict(budget).items() if value}
        budget = replace(experiment.budget, **given)  # a limit that is not given again holds on
    carry_out(experiment, suite, place, root, jobs, timeout, budget)
    return reported(experiment, root, junit, html, as_json)


def planned(
    specs: tuple[Path, ...],
    folder: Path,
    n: int,
    splits: tuple[str, ...],
    backend: str,
    budget: Any,
    margin: float | None,
) -> tuple[Plan, Suite]:
    """The plan of a new experiment, and its suite. Raises: SuiteError, SpecError, UsageError, OuterError."""
    from spak.evolve.experiments import Plan
    from spak.evolve.suites import Suite

    if margin is not None and len(specs) != 2:
        raise UsageError(
            "usage.arguments", "--non-inferior compares two specs", "name the base, then the other"
        )
    suite = Suite.open(folder).sound()
    chosen = suite.of(splits)
    if not chosen:
        raise OuterError(
            "outer.no_cases",
            f"{folder} has no case in the split {' or '.join(splits)}",
            "--split sealed uses the sealed cases, and each use is counted; or add cases",
        )
    labels, hashes = _labels(specs), {}
    for label, path in labels.items():
        hashes[label] = hash_of(path)
    return (
        Plan(
            str(folder),
            suite.hash,
            {case.name: case.hash for case in chosen},
            hashes,
            {label: str(path) for label, path in labels.items()},
            n,
            splits,
            backend,
            budget,
            margin,
        ),
        suite,
    )


def hash_of(path: Path) -> str:
    """The hash of a spec as its runs will record it. Raises: SpecError when it does not check."""
    from spak import config
    from spak.evolve.experiments.model import spec_hash
    from spak.llm import redactor

    return spec_hash(redactor(config.settings().llm).text(common.whole_spec(path).parsed.text))


def reopened(plan: Plan) -> Suite:
    """The suite of an experiment that goes on. Raises: OuterError `outer.changed`."""
    from spak.evolve.suites import Suite

    suite = Suite.open(Path(plan.suite)).sound()
    known = {case.name: case.hash for case in suite.cases}
    for name, digest in plan.cases.items():
        if known.get(name) != digest:
            raise OuterError("outer.changed", f"case {name} was changed since", "start a new experiment")
    for label, path in plan.files.items():
        if hash_of(Path(path)) != plan.specs[label]:
            raise OuterError("outer.changed", f"{path} was changed since", "put it back, or start a new one")
    return suite


def carry_out(
    experiment: Experiment,
    suite: Suite,
    place: Path,
    root: Path,
    jobs: int,
    timeout: float | None,
    budget: Budget | None = None,
) -> None:
    """Run what is left of an experiment; looks at sealed cases are noted before."""
    from spak.cli.cells import Cells

    plan = experiment.plan
    left = experiment.left
    sealed = sorted({cell.case for cell in left} & {case.name for case in suite.of(("sealed",))})
    if sealed:
        suite.book.look("spak eval", experiment.name, sealed)
    empty = place / experiment.name / "empty"
    empty.mkdir(exist_ok=True)
    files = {label: Path(path) for label, path in plan.files.items()}
    cases = {case.name: case for case in suite.cases}
    work = Cells(cases, files, root, empty, experiment.name, plan.backend, jobs, timeout)
    count, width = len(left), len(str(len(left)))
    number = 0

    def shown(cell: Cell, done: Done) -> None:
        nonlocal number
        number += 1
        why = f": {done.why.splitlines()[0][:120]}" if done.why else ""
        common.say(f"{number:>{width}}/{count} {done.outcome:<4} {cell.case} {cell.spec} #{cell.k + 1}{why}")

    try:
        experiment.advance(place, work, shown, budget)
    except KeyboardInterrupt:  # between two runs
        experiment.stopped = "interrupted"


def reported(experiment: Experiment, root: Path, junit: Path | None, html: Path | None, as_json: bool) -> int:
    """Print the report, write its files; 0 when it is what was hoped for, 6 when it was interrupted, 7 when
    the host could not go on."""
    from spak.evolve.experiments import render

    report = report_of(experiment)
    if junit is not None:
        _write(junit, render.junit(report))
    if html is not None:
        runs = os.path.relpath(root, html.absolute().parent)
        _write(html, render.html(report, lambda run: quote(f"{runs}/{run}/")))
    if as_json:
        common.emit(report.to_json())
    else:
        common.out(render.text(report), nl=False)
    if experiment.fault is not None:
        common.say(f"spak: {experiment.fault}")
    if experiment.left or experiment.void:
        more = BUDGETS.get(experiment.stopped, "")
        common.say(f"next: spak eval --resume {experiment.name}{more}")
    if experiment.fault is not None:
        return UnavailableError.exit_code
    return 6 if experiment.stopped == "interrupted" and experiment.left else 0 if report.ok else 1


def report_of(experiment: Experiment) -> Report:
    """The report of an experiment as far as it got."""
    from spak.evolve.experiments import summarise

    return summarise(experiment.name, experiment.head, experiment.plan, experiment.done, experiment.stopped)


def _labels(specs: tuple[Path, ...]) -> Mapping[str, Path]:
    """A name for each spec: its file's, with its place where two have the same. One named twice is an A/A."""
    names = [path.stem for path in specs]
    made: dict[str, Path] = {}
    for number, path in enumerate(specs, 1):
        label = path.stem if names.count(path.stem) == 1 else f"{path.stem}.{number}"
        while label in made:
            label += f".{number}"
        made[label] = path
    return made


def _estimated(plan: Plan, suite: Suite, experiment: Experiment) -> None:
    from spak.cli.show import money
    from spak.evolve.experiments.run import estimate
    from spak.runner.views.report import plural

    found = estimate(plan, {case.name: case.took for case in suite.cases if case.took is not None})
    words = [plural(found["runs"], "run"), plural(found["tokens"], "token"), money(found["cost_nanousd"])]
    unknown = f", not known for {found['unknown']} of the runs" if found["unknown"] else ""
    size = f"{plural(len(plan.specs), 'spec')} x {plural(len(plan.cases), 'case')} x {plan.n}"
    common.say(
        f"experiment {experiment.name}: {size}: {', '.join(words)}, "
        f"{found['ms'] / 1000:.1f} s by the runs that were kept{unknown}"
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            "usage.file", f"{path}: {error.strerror}", "check the path and its rights"
        ) from error
