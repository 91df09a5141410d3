"""`spak fork RUN --at SEQ`: a new run that shares another's records up to SEQ, then goes its own way."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.command()
@click.argument("run", default="latest")
@click.option(
    "--at",
    "at",
    type=click.IntRange(min=1),
    required=True,
    metavar="SEQ",
    help="Proposals before this record are copied.",
)
@common.runs_option
@common.json_option
def command(run: str, at: int, runs_dir: Path | None, as_json: bool) -> int:
    """Fork RUN at record SEQ; the new run stops there, ready for `spak resume` or `spak step`."""
    from spak.cli import session, show

    root, name = common.find_run(run, runs_dir)
    held, stopped_at = session.fork(root, name, at)
    try:
        seen = held.save()
    finally:
        held.close()
    if stopped_at is not None:
        common.say(f"copied up to record {stopped_at}: that question has to be answered again")
    code = show.show(seen, as_json)
    return 0 if seen.state == "paused" else code  # made, and not yet advanced: that is what was asked for
