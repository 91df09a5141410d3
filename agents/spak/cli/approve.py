"""`spak approve RUN`: answer an action that waits for approval."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common
from spak.errors import RunError


@click.command()
@click.argument("run")
@click.option("--deny", is_flag=True, help="Say no.")
@click.option("--expires", type=click.IntRange(min=1), metavar="S", help="Seconds for which the yes is good.")
@common.runs_option
@common.json_option
def command(run: str, deny: bool, expires: int | None, runs_dir: Path | None, as_json: bool) -> int:
    """Approve (or deny) the action that RUN waits for."""
    from spak.cli import reading

    root, name = common.find_run(run, runs_dir)
    seen = reading.view_of(root, name)
    raise RunError(
        "run.no_approval",
        f"run {name} is {seen.state} and waits for no approval",
        "the built-in rule permits or denies at once; spak show says what the run waits for",
    )
