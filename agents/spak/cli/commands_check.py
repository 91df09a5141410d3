"""`spak policy commands check [FILE...]`: the tables of command lines."""

from __future__ import annotations

import re
from pathlib import Path

import click

from spak.cli import common


@click.group()
def command() -> None:
    """Look at the tables of command lines."""


@command.command("check")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@common.json_option
def check_command(files: tuple[Path, ...], as_json: bool) -> int:
    """Check that FILES, or the tables that ship, are tables of programs: 0, else 3."""
    from spak.commandline import check, table
    from spak.datalog.syntax import Finding, Place
    from spak.runner.views.report import plural

    found: list[Finding] = []
    for file in files or sorted(table.FOLDER.glob("*.toml")):
        text = common.read_input(file).decode("utf-8", "replace")
        for problem in check.problems(text):
            place = Place(str(file), _line(text, problem), 1)
            found.append(
                Finding("commands.table", "error", problem, place, "docs/gate.md says what a table holds")
            )
    if as_json:
        shown = [str(file) for file in files]
        common.emit({"files": shown, "ok": not found, "diagnostics": [item.to_json() for item in found]})
        return 3 if found else 0
    for item in found:
        common.say(item.text())
    if not found:
        common.say(f"ok: {plural(len(files or tuple(table.FOLDER.glob('*.toml'))), 'file')}")
    return 3 if found else 0


def _line(text: str, problem: str) -> int:
    """The line that a problem is about: where it says one, or where the section of the program begins."""
    said = re.search(r"at line (\d+)", problem)
    if said:
        return int(said[1])
    head = re.search(rf'^\[\[?"?{re.escape(problem.partition(":")[0])}', text, re.MULTILINE)
    return text.count("\n", 0, head.start()) + 1 if head else 1
