"""`spak import FILE.jsonl`: a run from an exported file; the whole of it, or nothing."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@common.runs_option
@common.json_option
def command(file: Path, runs_dir: Path | None, as_json: bool) -> int:
    """Read an exported run into the local runs."""
    from spak.errors import UsageError
    from spak.inputs import open_input
    from spak.ledger.export import import_
    from spak.ledger.files import FileLedgers

    root = common.runs_dir(runs_dir)
    try:
        stream = open_input(file)
    except OSError as error:
        raise UsageError("usage.file", f"{file}: {error.strerror}", "check the path") from error
    with stream:
        name = import_(stream, FileLedgers(root))
    if as_json:
        common.emit({"run": name, "file": str(file)})
    else:
        common.say(f"imported as run {name}\nnext: spak replay {name}")
    return 0
