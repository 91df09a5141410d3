"""`spak runs`: local runs, newest last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from spak.cli import common


@click.command()
@common.runs_option
@common.json_option
def command(runs_dir: Path | None, as_json: bool) -> int:
    """List local runs, newest last, as their last stop left them."""
    from spak.ledger.files import FileLedgers

    root = common.runs_dir(runs_dir)
    rows = [_row(root / name) for name in FileLedgers(root).runs()]
    if as_json:
        common.emit({"runs": rows})
        return 0
    if not rows:
        common.say(f"no runs in {root}\nnext: spak run FILE")
    for row in rows:
        click.echo(f"{row['run']}  {row['state']:<10} {row['task']}")
    if rows:
        common.say("next: spak show RUN")
    return 0


def _row(folder: Path) -> dict[str, Any]:
    """A run from its projection; one that never came to a stop is shown as running."""
    try:
        found = json.loads((folder / "context.json").read_text(encoding="utf-8"))
        return {"run": folder.name, "state": found["state"], "task": found["task"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"run": folder.name, "state": "running", "task": ""}
