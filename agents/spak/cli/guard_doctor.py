"""`spak guard doctor AGENT`: what an agent does when its hook refuses, fails or is mis-set."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.guard.doctor import Mode, Row

WORDS = {"shut": "shut", "open": "OPEN", "not_coverable": "not coverable"}


@click.command()
@click.argument("agent")
@click.option(
    "--mode", type=click.Choice(["hooks", "guard", "both"]), default="both", show_default=True,
    help="Where the agent works: outside with hooks only, or behind spak guard.",
)  # fmt: skip
@common.json_option
def command(agent: str, mode: str, as_json: bool) -> int:
    """Try the installed AGENT (claude, codex, or its file) against a scripted model: is a call done though
    its hook refuses, fails or is mis-set? Takes minutes. Exit 1 if anything is open behind spak guard."""
    from spak.guard import doctor

    name = doctor.name_of(agent)
    found = shutil.which(agent)
    if found is None:
        raise UsageError("guard.agent", f"there is no program {agent}", "install it, or name its file")
    program = Path(found).absolute()
    version = doctor.version(program)
    if not as_json:
        common.say(f"spak: {name} {version}; each line is a session of it")
    modes = ("hooks", "guard") if mode == "both" else (mode,)
    rows: list[Row] = []
    for row in doctor.rows(program, cast("tuple[Mode, ...]", modes)):
        rows.append(row)
        if not as_json:
            common.out(f"{WORDS[row.state]:14} {row.mode}: {row.way}")
    is_open = sum(row.state == "open" and row.mode == "guard" for row in rows)
    if as_json:
        common.emit({"agent": name, "version": version, "rows": [row.to_json() for row in rows]})
    else:
        for one in modes:
            count = sum(row.state == "open" and row.mode == one for row in rows)
            where = "with hooks only" if one == "hooks" else "behind spak guard"
            common.say(f"spak: {count} of {sum(row.mode == one for row in rows)} open {where}")
    return 1 if is_open else 0
