"""`spak problem check FILE...`: problems that profilers measure by."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.validators.problems.check import Found


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
        text = common.read_input(file).decode("utf-8", "replace")
        source = kernel or file.with_suffix(".c")
        given = common.read_input(source).decode("utf-8", "replace") if kernel or source.is_file() else ""
        found = [
            Finding(
                item.code, item.severity, item.message, Place(str(file), _line(item.message), 1), item.hint
            )
            for item in _findings(text, given, source.name)
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


def _findings(text: str, source: str, name: str) -> list[Found]:
    from spak import config
    from spak.validators import VALIDATORS, launch
    from spak.validators.problems import check

    settings = config.settings()
    with tempfile.TemporaryDirectory(dir=launch.scratch()) as folder:
        Path(folder).chmod(0o755)
        bench = check.Bench(
            config.box(settings), config.toolchain(settings.binds), settings.limits, Path(folder)
        )
        found = check.check(text, bench)
        if source and not any(item.severity == "error" for item in found):
            found += check.kernel(text, source, bench, VALIDATORS["CpuProfiler"](), name)
    return found


def _line(message: str) -> int:
    """The line that a message names, else the first."""
    named = re.match(r"line (\d+): ", message)
    return int(named[1]) if named else 1
