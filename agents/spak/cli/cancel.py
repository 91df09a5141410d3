"""`spak cancel RUN`: end a run as cancelled; an ended run stays as it is."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.command()
@click.argument("run")
@common.runs_option
@common.json_option
def command(run: str, runs_dir: Path | None, as_json: bool) -> int:
    """End RUN as cancelled."""
    from spak.cli import session, show

    root, name = common.find_run(run, runs_dir)
    held = session.reopen(root, name, bare=True)
    try:
        held.run.cancel()
        seen = held.save()
    finally:
        held.close()
    return show.show(seen, as_json)
