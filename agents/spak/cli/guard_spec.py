"""`spak guard spec RUN`: a guarded session as the draft of a spec."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.command("spec")
@click.argument("run")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write it to a file, which must not exist.",
)  # fmt: skip
@common.runs_option
@common.json_option
def command(run: str, output: Path | None, runs_dir: Path | None, as_json: bool) -> int:
    """Write what a guarded session did as the draft of a spec: its calls of our tools as steps, what its own
    tools changed as patches."""
    from spak.errors import UsageError
    from spak.files.disk import Disk
    from spak.guard.as_spec import draft
    from spak.ledger.files import FileLedgers
    from spak.workspace.store import Store

    root, name = common.find_run(run, runs_dir)
    reader = FileLedgers(root).reader(name)
    store = Store(root / name / "store", Disk())
    store.look()
    made = draft((record for record, _ in reader.read()), reader.blobs, store.read)
    if output is not None:
        try:
            with output.open("x", encoding="utf-8") as file:
                file.write(made.text)
        except OSError as error:
            raise UsageError("usage.file", f"{output}: {error.strerror}", "name a new file") from error
    if as_json:
        common.emit({"run": name, "steps": made.steps, "spec": made.text})
    elif output is None:
        click.echo(made.text, nl=False)
    else:
        common.say(f"spak: {made.steps} steps in {output}")
        common.say(f"next: spak check {output}")
    return 0
