"""`spak replay RUN|FILE.jsonl|-`: derive every commit again, without model or sandbox."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.command()
@click.argument("run", default="latest")
@common.runs_option
@common.json_option
def command(run: str, runs_dir: Path | None, as_json: bool) -> int:
    """Derive every commit of RUN (or of an exported file, - for standard input) again and compare."""
    from spak.cli import lines
    from spak.kernel.replay import replay

    found = replay(lines.records(run, runs_dir))
    difference = None if found.difference is None else found.difference.to_json()
    equal = difference is None
    if as_json:
        common.emit(
            {
                "equal": equal,
                "records": found.records,
                "summary_hash": found.state.summary,
                "first_difference": difference,
            }
        )
    else:
        common.say(f"{found.records} records, summary {found.state.summary}")
        common.say(
            "equal: every commit follows from the proposals" if equal else f"DIFFERENT at {difference}"
        )
        if run != "-":
            common.say(f"next: spak ledger verify {run}")
    return 0 if equal else 1
