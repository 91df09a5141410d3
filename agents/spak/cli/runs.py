"""`spak runs`: local runs, newest last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from spak.cli import common
from spak.errors import UserError


@click.command()
@common.runs_option
@common.json_option
def command(runs_dir: Path | None, as_json: bool) -> int:
    """List local runs, newest last, as their last stop left them."""
    from spak.ledger.files import FileLedgers

    root = common.runs_dir(runs_dir)
    rows = [_row(root, name) for name in FileLedgers(root).runs()]
    if as_json:
        common.emit({"runs": rows})
        return 0
    if not rows:
        common.say(f"no runs in {root}\nnext: spak run FILE")
    for row in rows:
        common.out(f"{row['run']}  {row['state'] or row['problem']:<10} {row['task']}")
    if rows:
        common.say("next: spak show RUN")
    return 0


def _row(root: Path, name: str) -> dict[str, Any]:
    """A run from its projection; where the ledger has gone on since, from the ledger itself."""
    from spak.cli import reading

    folder = root / name
    try:
        projection = folder / "context.json"
        if projection.stat().st_mtime_ns >= (folder / "trace.jsonl").stat().st_mtime_ns:
            found = json.loads(projection.read_text(encoding="utf-8"))
            return {"run": name, "state": found["state"], "task": found["task"], "problem": ""}
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no projection, or none that can be read: the ledger knows
    try:
        seen = reading.view_of(root, name)
    except UserError as error:
        return {"run": name, "state": "", "task": "", "problem": error.code}
    return {"run": name, "state": seen.state, "task": seen.task, "problem": ""}
