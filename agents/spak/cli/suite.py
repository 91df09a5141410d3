"""`spak suite`: cases that experiments run, kept from past runs or added by hand, and checked as a whole."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.cli.eval_ import SPLITS
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.evolve.suites import Case, Check, Suite

suite_option = click.option(
    "--suite",
    "folder",
    default="suite",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The suite's folder.",
)
check_option = click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="CMD",
    help="A sealed command, executed after the run has ended.",
)
output_option = click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="TEXT",
    help="What the sealed command at the same position prints.",
)
sealed_option = click.option(
    "--sealed", type=click.Path(path_type=Path), help="A folder of files that only sealed checks see."
)
before_option = click.option(
    "--passes-before", default="", metavar="WHY", help="Why the sealed checks may pass before any run."
)
tag_option = click.option("--tag", "tags", multiple=True, help="A tag of the case; repeat for more.")


@click.group()
def command() -> None:
    """Keep runs as cases, add cases, give them sealed checks, check a suite."""


@command.command("keep")
@click.argument("run", default="latest")
@suite_option
@click.option("--name", default="", help="The case's name; the run's if not given.")
@check_option
@output_option
@sealed_option
@before_option
@tag_option
@common.runs_option
@common.json_option
def keep(
    run: str,
    folder: Path,
    name: str,
    checks: tuple[str, ...],
    outputs: tuple[str, ...],
    sealed: Path | None,
    passes_before: str,
    tags: tuple[str, ...],
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Freeze RUN, which ended, as a case: its workspace, inputs, seed, a model's answers and its outcome."""
    from dataclasses import replace

    from spak.cli import case_files

    root, found = common.find_run(run, runs_dir)
    case, fill = case_files.case_of(root, found, name or found)
    right = replace(case.right, sealed=_checks(checks, outputs), passes_before=passes_before)
    case = replace(case, right=right, tags=tags)
    return _added(folder, case, _with_sealed(fill, sealed), as_json)


@command.command("add")
@click.argument("name")
@suite_option
@click.option("--input", "inputs", multiple=True, metavar="K=V", help="A value for INPUTS; repeat for more.")
@click.option(
    "--workspace", help="What a run begins with: a folder, an archive (.tar, .tar.gz, .zip) or git:DIR@REF."
)
@click.option(
    "--recording", type=click.Path(path_type=Path, dir_okay=False), help="A file of answers (docs/models.md)."
)
@click.option(
    "--history", type=click.IntRange(1, 1000), default=None, metavar="N", help="Freeze the last N commits."
)
@click.option("--seed", type=click.IntRange(min=0, max=2**53 - 1), default=0, help="The case's seed.")
@click.option("--state", default="succeeded", show_default=True, help="The state that a correct run ends in.")
@click.option("--code", "codes", multiple=True, help="A code that a correct run ends with.")
@click.option("--validator", default="", metavar="NAME", help="A validator that judges what a run left.")
@check_option
@output_option
@sealed_option
@before_option
@tag_option
@common.json_option
def add(
    name: str,
    folder: Path,
    inputs: tuple[str, ...],
    workspace: str | None,
    recording: Path | None,
    history: int | None,
    seed: int,
    state: str,
    codes: tuple[str, ...],
    validator: str,
    checks: tuple[str, ...],
    outputs: tuple[str, ...],
    sealed: Path | None,
    passes_before: str,
    tags: tuple[str, ...],
    as_json: bool,
) -> int:
    """Add the case NAME."""
    from spak.cli import case_files
    from spak.cli.run import pairs
    from spak.evolve.suites import Case, Right

    chosen = {"name": validator, "options": {}} if validator else None
    right = Right(state, codes, {}, chosen, _checks(checks, outputs), passes_before)
    case = Case(name, folder, pairs(inputs), seed, right, tags)
    fill = case_files.filler(workspace, recording, history or 0)
    return _added(folder, case, _with_sealed(fill, sealed), as_json)


@command.command("seal")
@click.argument("name")
@suite_option
@check_option
@output_option
@sealed_option
@before_option
@common.json_option
def seal(
    name: str,
    folder: Path,
    checks: tuple[str, ...],
    outputs: tuple[str, ...],
    sealed: Path | None,
    passes_before: str,
    as_json: bool,
) -> int:
    """Give the case NAME, which has none, sealed checks: commands that judge what a run left."""
    from spak.begin import bench
    from spak.evolve.suites import Suite

    made = _checks(checks, outputs)
    if not made:
        raise UsageError("usage.arguments", "no command is named", "name one or more with --check")
    suite = Suite.open(folder).seal(name, made, passes_before, _with_sealed(_nothing, sealed), bench())
    _report(suite, name, "changed", folder, as_json)
    return 0


@command.command("check")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--enter", is_flag=True, help="Record cases that were written by hand or changed on purpose.")
@click.option("--no-run", is_flag=True, help="Only read: run no sealed check.")
@common.json_option
def check(folder: Path, enter: bool, no_run: bool, as_json: bool) -> int:
    """Check a suite: its files, its ledger, and that every case fails before a run."""
    from spak.evolve.suites import Suite
    from spak.runner.views.report import plural

    suite = Suite.open(folder)
    if enter:
        suite = suite.enter()
    problems = suite.problems()
    if not no_run and any(case.right.runs_checks for case in suite.cases):
        from spak.begin import bench

        problems += suite.untouched(bench())
    document = {
        **describe(suite),
        "problems": [{"case": item.case, "code": item.code, "message": item.message} for item in problems],
        "unseen": unseen(suite),
    }
    if as_json:
        common.emit(document)
    else:
        for row in document["cases"]:
            common.out(f"{row['split'] or '-':<7} {row['name']}")
        for item in problems:
            common.say(f"spak: {item.case or folder}: {item.message} [{item.code}]")
        for name, paths in document["unseen"].items():
            common.say(f"spak: {name}: ignored by git, so no run sees {', '.join(paths)}")
        splits = ", ".join(f"{count} {name}" for name, count in document["splits"].items())
        common.say(f"{plural(len(suite.cases), 'case')}: {splits}; sealed looks so far: {suite.book.looks}")
    return 2 if problems else 0


def unseen(suite: Suite) -> dict[str, list[str]]:
    """By case, which of its files no run's copy holds. Raises: RunError `git.*`, UsageError."""
    from spak.config import settings
    from spak.repository.scratch import GIT
    from spak.workspace.brought import choose

    found, wanted = {}, settings().wanted
    for case in suite.cases:
        if case.workspace is not None:
            git = [GIT] if (case.workspace / GIT).exists() else []
            if left_out := [*git, *choose(case.workspace, wanted).left_out]:
                found[case.name] = left_out
    return found


def describe(suite: Suite) -> dict[str, Any]:
    """A suite as a document: its cases with split and hash."""
    from spak.evolve.suites import SPLITS

    return {
        "suite": str(suite.folder),
        "hash": suite.hash,
        "cases": [
            {"name": case.name, "split": suite.split(case), "hash": case.hash, "tags": list(case.tags)}
            for case in suite.cases
        ],
        "splits": {name: len(suite.of((name,))) for name in SPLITS},
        "looks": suite.book.looks,
    }


def _checks(commands: tuple[str, ...], outputs: tuple[str, ...]) -> tuple[Check, ...]:
    from spak.evolve.suites import Check

    if len(outputs) > len(commands):
        raise UsageError(
            "usage.arguments", "more --output than --check", "each belongs to one --check, in order"
        )
    made = []
    for number, text in enumerate(commands):
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise UsageError("usage.arguments", f"--check {text!r}: {error}", "fix the quotes") from error
        if not words:
            raise UsageError("usage.arguments", "--check is empty", "name a command")
        made.append(Check(words, output=outputs[number] if number < len(outputs) else ""))
    return tuple(made)


def _with_sealed(fill: Callable[[Path], None], sealed: Path | None) -> Callable[[Path], None]:
    from spak.evolve.suites import sealed as checks
    from spak.evolve.suites.model import SEALED

    def filled(place: Path) -> None:
        fill(place)
        if sealed is not None:
            if not sealed.is_dir():
                raise UsageError("usage.file", f"{sealed} is not a folder", "name a folder with --sealed")
            (place / SEALED).mkdir()
            checks.copy_plain(sealed, place / SEALED)

    return filled


def _added(folder: Path, case: Case, fill: Callable[[Path], None], as_json: bool) -> int:
    from spak.evolve.suites import Suite

    suite = Suite.open(folder, new=True)
    from spak.begin import bench

    made = suite.add(case, fill, bench() if case.right.runs_checks else None)
    _report(made, case.name, "added", folder, as_json)
    return 0


def _nothing(place: Path) -> None:
    """What a case that has its files needs."""


def _report(suite: Suite, name: str, what: str, folder: Path, as_json: bool) -> None:
    case = next(item for item in suite.cases if item.name == name)
    row: Mapping[str, Any] = {"name": name, "split": suite.split(case), "hash": case.hash}
    if as_json:
        common.emit({**describe(suite), what: row})
    else:
        common.say(f"case {name} is in the split {row['split']}")
        if suite.of(SPLITS[:2]):
            common.say(f"next: spak eval SPEC --suite {folder}")
        else:
            common.say(f"next: spak suite keep RUN --suite {folder}   (cases of this split are for the end)")
