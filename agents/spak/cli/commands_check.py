"""`spak policy commands check [FILE...]`: the tables of command lines."""

from __future__ import annotations

import re
from pathlib import Path

import click

from spak.cli import common


@click.group()
def command() -> None:
    """Tables of command lines."""


@command.command("check")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@common.json_option
def check_command(files: tuple[Path, ...], as_json: bool) -> int:
    """Check that FILES, or the tables that ship and those of the settings, are in order: 0, else 3.

    FILES that do not ship may only describe programs that no shipped table knows."""
    from spak import config
    from spak.commandline import check, custom_tables, table
    from spak.datalog.syntax import Finding, Place
    from spak.runner import laws
    from spak.runner.views.report import plural

    named = files or (*table.FOLDER.glob("*.toml"), *laws.table_files(config.settings().commands))
    texts = {str(file): common.read_text(file) for file in sorted(named)}
    ships = [str(file) for file in named if file.resolve().parent == table.FOLDER]
    wrong = [
        custom_tables.Problem("commands.table", name, problem)
        for name in ships
        for problem in check.problems(texts[name])
    ]
    wrong += custom_tables.problems({name: text for name, text in texts.items() if name not in ships})
    found = [
        Finding(
            problem.code, "error", problem.message,
            Place(problem.file, _line(texts[problem.file], problem.message), 1),
            "docs/commands.md describes a table",
        )
        for problem in wrong
    ]  # fmt: skip
    if as_json:
        shown = [str(file) for file in files]
        common.emit({"files": shown, "ok": not found, "diagnostics": [item.to_json() for item in found]})
        return 3 if found else 0
    for item in found:
        common.say(item.text())
    if not found:
        common.say(f"ok: {plural(len(texts), 'file')}")
    return 3 if found else 0


def _line(text: str, problem: str) -> int:
    """The line that a problem is about: where it says one, or where the section of the program begins."""
    named = re.search(r"at line (\d+)", problem)
    if named:
        return int(named[1])
    head = re.search(rf'^\[\[?"?{re.escape(problem.partition(":")[0])}', text, re.MULTILINE)
    return text.count("\n", 0, head.start()) + 1 if head else 1
