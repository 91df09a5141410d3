"""`spak runs`: local runs, newest last; `--clean` removes what killed runs left before their first record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from spak.cli import common
from spak.errors import UserError


@click.command()
@click.option("--clean", is_flag=True, help="Remove the remains of runs that were killed before they began.")
@click.option("--delete", multiple=True, metavar="RUN", help="Delete a run that ended; may be repeated.")
@common.runs_option
@common.json_option
def command(clean: bool, delete: tuple[str, ...], runs_dir: Path | None, as_json: bool) -> int:
    """List local runs, newest last, in the state of their last stop."""
    from spak.cli.run_folders import remove, unfinished
    from spak.ledger.files import FileLedgers

    root = common.runs_dir(runs_dir)
    if delete:
        return _deleted([common.find_run(name, runs_dir) for name in delete], as_json)
    left = unfinished(root)
    if clean:
        return _cleaned([path.name for path in left if remove(path)], as_json)
    rows = [_row(root, name) for name in FileLedgers(root).runs()]
    words = [row.pop("word") for row in rows]
    if as_json:
        common.emit({"runs": rows})
        return 0
    if not rows:
        common.say(f"no runs in {root}\nnext: spak run FILE")
    wide = max((10, *(len(word) for word in words)))
    for row, word in zip(rows, words, strict=True):
        common.out(f"{row['run']}  {word:<{wide}} {row['task']}")
    if left:
        common.say(
            f"{len(left)} never began or are half deleted: `spak runs --clean` removes what is left of them"
        )
    if rows:
        common.say("next: spak show RUN")
    return 0


def _deleted(runs: list[tuple[Path, str]], as_json: bool) -> int:
    """Delete runs, in order; none after the first that cannot be."""
    from spak.cli.run_folders import delete

    names = list(dict.fromkeys(name for _, name in runs))
    for name in names:
        delete(runs[0][0], name)
    return _cleaned(names, as_json)


def _cleaned(names: list[str], as_json: bool) -> int:
    if as_json:
        common.emit({"removed": names})
    else:
        for name in names:
            common.out(name)
        common.say(f"{len(names)} removed")
    return 0


def _row(root: Path, name: str) -> dict[str, Any]:
    """A run from its projection; where the ledger has gone on since, from the ledger itself. `word` is its
    state as people read it, or the problem."""
    from spak.cli import reading
    from spak.runner.views.run_json import worded

    folder = root / name
    try:
        projection = folder / "context.json"
        if projection.stat().st_mtime_ns >= (folder / "trace.jsonl").stat().st_mtime_ns:
            found = json.loads(projection.read_text(encoding="utf-8"))
            state = found["state"]
            word = worded(state, found)
            return {"run": name, "state": state, "task": found["task"], "problem": "", "word": word}
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no projection, or none that can be read: the ledger knows
    try:
        seen = reading.view_of(root, name)
    except UserError as error:
        return {"run": name, "state": "", "task": "", "problem": error.code, "word": error.code}
    return {"run": name, "state": seen.state, "task": seen.task, "problem": "", "word": seen.word}
