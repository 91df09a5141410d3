"""`spak problem check` and `spak problem measure`: problems that profilers measure by, and their spaces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.spaces.measure import Place, Progress
    from spak.validators.problems.check import Found

REPORT_S = 10.0
"""Seconds between two lines about the progress of a measurement."""


@click.group()
def command() -> None:
    """Problems that CpuProfiler measures kernels on."""


@command.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--kernel",
    type=click.Path(path_type=Path),
    help="A correct kernel in C, C++ or Python; the default is FILE.c next to FILE.py, if it exists.",
)
@common.json_option
def check_command(files: tuple[Path, ...], kernel: Path | None, as_json: bool) -> int:
    """Check that kernels can be measured on the problems in FILES. Exit 0, else 3.

    Each runs in the sandbox. Its answers have to be steady and finite, and its tolerance has to find planted
    wrong answers. A kernel, where there is one, is compiled and has to be right."""
    from spak.datalog.syntax import Finding, Place
    from spak.runner.views.report import plural

    shown, wrong = [], False
    for file in files:
        data = common.read_input(file)
        source = kernel or file.with_suffix(".c")
        given = common.read_input(source).decode("utf-8", "replace") if kernel or source.is_file() else ""
        found = [
            Finding(
                item.code, item.severity, item.message, Place(str(file), _line(item.message), 1), item.hint
            )
            for item in _findings(data, given, source.name)
        ]
        bad = any(item.severity == "error" for item in found)
        wrong |= bad
        shown.append({"file": str(file), "ok": not bad, "diagnostics": [item.to_json() for item in found]})
        for item in found if not as_json else ():
            common.say(item.text())
    if as_json:
        common.emit({"files": shown})
    elif not wrong:
        common.say(f"ok: {plural(len(files), 'file')}")
    return 3 if wrong else 0


@command.command("measure")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", "path", required=True, type=click.Path(path_type=Path), help="The cache to write, NAME.jsonl.gz."
)
@click.option(
    "--template",
    type=click.Path(path_type=Path),
    help="The kernel with parameters; the default is NAME_template.c next to NAME.py.",
)
@click.option(
    "--space",
    type=click.Path(path_type=Path),
    help="The parameters as JSON; the default is NAME_space.json next to NAME.py.",
)
@click.option(
    "--n", type=click.IntRange(min=1), help="The size; the default is the one the problem times at."
)
@click.option(
    "--timeout", type=common.Seconds(), metavar="S", help="Stop after S seconds; the same command continues."
)
@common.json_option
def measure_command(
    file: Path,
    path: Path,
    template: Path | None,
    space: Path | None,
    n: int | None,
    timeout: float | None,
    as_json: bool,
) -> int:
    """Measure every point of a space of kernels for the problem in FILE, into a cache.

    The same command continues where an earlier one was stopped or killed. Exit 0 when all points are
    measured, 6 when it stopped before."""
    import time

    from spak.files.scratch import Scratch
    from spak.spaces import measure

    template = template or file.with_name(f"{file.stem}_template.c")
    space = space or file.with_name(f"{file.stem}_space.json")
    task = measure.Task(
        problem=(file.name, common.read_input(file)),
        template=(template.name, common.read_input(template)),
        space=_space(space),
        n=n or 0,
    )
    ends = None if timeout is None else time.monotonic() + timeout
    done: Progress | None = None
    shown = 0.0

    def report(progress: Progress) -> None:
        nonlocal done, shown
        done = progress
        if not as_json and time.monotonic() >= shown:
            shown = time.monotonic() + REPORT_S
            common.say(_course(progress))

    with Scratch("problem") as folder:
        try:
            late = (lambda: False) if ends is None else (lambda: time.monotonic() >= ends)
            done = measure.measure(task, _place(folder), path, report, late)
        except KeyboardInterrupt:
            common.say("interrupted")
    whole = done is not None and done.done == done.header.points
    if as_json:
        common.emit(_document(path, done, whole))
    elif done is not None:
        common.say(_course(done))
    if not as_json:
        common.say(f"ok: {path}" if whole else "stopped; the same command continues")
    return 0 if whole else 6


def _space(path: Path) -> dict[str, Any]:
    """Raises: UsageError `usage.file`, `tuner.space`."""
    import json

    try:
        found = json.loads(common.read_input(path))
    except (ValueError, RecursionError) as error:
        raise UsageError("tuner.space", f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UsageError("tuner.space", f"{path} is not an object of parameters")
    return found


def _place(folder: Path) -> Place:
    """What a measurement works with. Raises: UnavailableError."""
    from spak import config
    from spak.cli.report import processor
    from spak.spaces.measure import Place

    folder.chmod(0o755)
    settings = config.settings()
    return Place(
        launcher=config.box(settings),
        toolchain=config.toolchain(settings.binds),
        limits=settings.limits,
        folder=folder,
        cpu=processor(),
        compiler=config.versions().get("gcc", ""),
    )


def _course(progress: Progress) -> str:
    """How far a measurement is, for people."""
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in progress.counts().items())
    parts = [f"{progress.done:,} of {progress.header.points:,} points ({counts})"]
    best = progress.best()
    if best is not None:
        parts.append(f"best {best.median_ns / 1000:,.1f} us")
    if progress.done < progress.header.points and progress.left_s is not None:
        seconds = progress.left_s
        parts.append(f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left")
    return "; ".join(parts)


def _document(path: Path, progress: Progress | None, whole: bool) -> dict[str, Any]:
    best = progress.best() if progress else None
    return {
        "cache": str(path) if whole else None,
        "points": progress.header.points if progress else None,
        "done": progress.done if progress else 0,
        "outcomes": progress.counts() if progress else {},
        "best": {"params": best.params, "median_ns": best.median_ns} if best else None,
    }


def _findings(data: bytes, source: str, name: str) -> list[Found]:
    from spak import config
    from spak.files.scratch import Scratch
    from spak.validators import VALIDATORS
    from spak.validators.problems import check, decoded
    from spak.validators.problems.fault import ProblemFault

    try:
        text = decoded(data)
    except ProblemFault as fault:
        return [check.Found("error", fault.code, fault.detail)]
    settings = config.settings()
    with Scratch("problem") as folder:
        folder.chmod(0o755)
        bench = check.Bench(config.box(settings), config.toolchain(settings.binds), settings.limits, folder)
        found = check.check(text, bench)
        if source and not any(item.severity == "error" for item in found):
            found += check.kernel(text, source, bench, VALIDATORS["CpuProfiler"](), name)
    return found


def _line(message: str) -> int:
    """The line that a message names, else the first."""
    named = re.match(r"line (\d+): ", message)
    return int(named[1]) if named else 1
