"""`spak ledger verify RUN|FILE.jsonl|-`: chain, order, canonical form, completeness."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.group()
def command() -> None:
    """Verify a ledger."""


@command.command("verify")
@click.argument("run", default="latest")
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), help="A file {run, count, head} kept elsewhere."
)
@common.runs_option
@common.json_option
def verify_command(run: str, checkpoint: Path | None, runs_dir: Path | None, as_json: bool) -> int:
    """Check that RUN (or an exported file) is what was written, whole and in order."""
    from spak.cli import ledger_input
    from spak.ledger.blobs import FileBlobs
    from spak.ledger.verify import read_checkpoint, verify
    from spak.runner.views.report import plural

    if checkpoint is not None:
        common.read_input(checkpoint)  # a file that is not there is wrong usage, not a bad checkpoint
    mark = None if checkpoint is None else read_checkpoint(checkpoint)
    if ledger_input.is_file(run):
        report = verify(ledger_input.open_file(run), exported=True, checkpoint=mark)
    else:
        root, name = common.find_run(run, runs_dir)
        blobs = FileBlobs(root / name / "blobs", writable=False)
        trace = root / name / "trace.jsonl"
        report = verify(ledger_input.open_file(str(trace)), exported=False, checkpoint=mark, blobs=blobs)
    problems = [{"seq": item.seq, "code": item.code, "message": item.message} for item in report.problems]
    if as_json:
        common.emit({"ok": report.ok, "records": report.records, "head": report.head, "problems": problems})
    else:
        for item in problems:
            common.say(f"record {item['seq']}: {item['message']} [{item['code']}]")
        common.say(
            f"{plural(report.records, 'record')}, head {report.head}: {'whole' if report.ok else 'NOT whole'}"
        )
        common.say(
            f"next: spak replay {run}" if report.ok else "next: keep the file as evidence; restore a backup"
        )
    return 0 if report.ok else 1
