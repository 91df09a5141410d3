"""`spak replay RUN|FILE.jsonl|-`: derive every commit again, without model or sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import LedgerError

if TYPE_CHECKING:
    from spak.kernel.replay import Replay


@click.command()
@click.argument("run", default="latest")
@common.runs_option
@common.json_option
def command(run: str, runs_dir: Path | None, as_json: bool) -> int:
    """Derive every commit of RUN (or of an exported file, - for standard input) again and compare."""
    from spak.cli import ledger_input
    from spak.data import kernel_code
    from spak.ledger.pack import other_kernel
    from spak.runner.views.report import plural

    code: dict[str, None] = {}
    if ledger_input.is_file(run):
        found, kept = _of_a_file(run, code)
    else:
        found, kept = _of_a_run(*common.find_run(run, runs_dir), code)
    difference = None if found.difference is None else found.difference.to_json()
    equal = difference is None
    if as_json:
        common.emit(
            {
                "equal": equal,
                "records": found.records,
                "summary_hash": found.state.summary,
                "first_difference": difference,
                "kernel_code": {"recorded": list(code), "here": kernel_code()},
                **({} if kept is None else {"snapshot": kept}),
            }
        )
    else:
        common.say(f"{plural(found.records, 'record')}, summary {found.state.summary}")
        common.say(
            "equal: every commit follows from the proposals" if equal else f"DIFFERENT at {difference}"
        )
        for note in other_kernel(code):
            common.say(f"note: {note.message} [{note.code}]")
        if kept is not None and kept["problem"]:
            common.say(f"DAMAGED: the snapshot was removed: {kept['problem']}")
        if run != "-":
            common.say(f"next: spak ledger verify {run}")
    return 0 if equal and not (kept and kept["problem"]) else 1


def _of_a_file(run: str, code: dict[str, None]) -> tuple[Replay, None]:
    """The replay of a file; `code` gets the hashes of the kernels that decided it."""
    from spak.cli import ledger_input
    from spak.kernel.replay import Replay
    from spak.ledger.statement import code_of

    found = Replay()
    for record in ledger_input.records(run, None):
        code |= dict.fromkeys(code_of(record))
        found.feed(record)
    found.finish()
    return found, None


def _of_a_run(root: Path, name: str, code: dict[str, None]) -> tuple[Replay, dict[str, Any] | None]:
    """The same of a run folder, and how its snapshot compares; a damaged one is removed."""
    from spak.kernel.replay import Replay
    from spak.ledger import snapshots
    from spak.ledger.files import FileLedgers
    from spak.ledger.statement import code_of
    from spak.runner.resume import Comparison

    found, problem, kept = Replay(), "", None
    try:
        kept = snapshots.found(root / name, name)
    except LedgerError as error:
        problem = error.message
    compared = Comparison(kept, found)
    for record, _ in FileLedgers(root).reader(name).read():
        code |= dict.fromkeys(code_of(record))
        found.feed(record)
        compared.feed(record)
    found.finish()
    problem = problem or compared.problem()
    if problem:
        snapshots.drop(root / name)
    if kept is None and not problem:
        return found, None
    return found, {"records": 0 if kept is None else kept.count, "problem": problem}
