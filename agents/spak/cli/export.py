"""`spak export RUN`: a run as one file, lossless."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.ledger.verify import Footer
    from spak.ports import Ledger


@click.command()
@click.argument("run", default="latest")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The file to write; standard output if not given."
)
@common.runs_option
@common.json_option
def command(run: str, output: Path | None, runs_dir: Path | None, as_json: bool) -> int:
    """Write RUN into one file with a footer, so that it can be checked and imported anywhere."""
    from spak.errors import UsageError
    from spak.ledger.export import export
    from spak.ledger.files import FileLedgers

    root, name = common.find_run(run, runs_dir)
    if as_json and output is None:
        raise UsageError("usage.arguments", "--json needs --output", "the run itself goes to standard output")
    _keep_files(root, name)
    reader = FileLedgers(root).reader(name)
    try:
        footer = export(reader, common.output()) if output is None else _into(output, reader)
    finally:
        reader.close()
    if as_json:
        common.emit(
            {
                "run": footer.run,
                "count": footer.count,
                "head": footer.head,
                "blobs": footer.blobs,
                "file": str(output),
            }
        )
    elif output is not None:
        common.say(
            f"{footer.count} records and {footer.blobs} blobs in {output}\nnext: spak ledger verify {output}"
        )
    return 0


def _keep_files(root: Path, name: str) -> None:
    """The files of a run that has not ended become blobs of it, so that it can go on wherever it is imported.

    Without them the export is still whole: one of a run that is under way, or whose store is gone.
    """
    from spak.errors import UserError
    from spak.kernel.replay import replay
    from spak.ledger.files import FileLedgers
    from spak.workspace import Workspace

    ledgers, folder = FileLedgers(root), root / name
    try:
        reader = ledgers.reader(name)
        state = replay(record for record, _ in reader.read()).state
        if state.ended or not (folder / "store").is_dir():
            return
        with ledgers.open(name) as ledger:
            Workspace(folder / "workspace", folder / "store").push(state.r3, ledger.blobs)
    except UserError as error:
        common.say(f"spak: the files of the run are not in the export: {error.message}")


def _into(output: Path, reader: Ledger) -> Footer:
    """The whole file, or none: written aside and renamed."""
    from spak.errors import UsageError
    from spak.ledger.export import export

    aside = output.with_name(output.name + ".part")
    try:
        try:
            with aside.open("wb") as stream:
                footer = export(reader, stream)
                stream.flush()
                os.fsync(stream.fileno())
            aside.replace(output)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(
            "usage.file", f"{output}: {error.strerror}", "check the path, its rights and the space"
        ) from error
    return footer
