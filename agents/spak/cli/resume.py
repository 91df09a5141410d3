"""`spak resume RUN`: continue after a crash or a stop."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.command()
@click.argument("run", default="latest")
@click.option(
    "--mode", type=click.Choice(["stepwise", "semi_auto", "full_auto"]), help="Switch to this mode."
)
@click.option("--backend", default="", help="Switch to this backend.")
@common.extend_option
@common.from_option
@common.timeout_option
@common.progress_option
@common.runs_option
@common.json_option
def command(
    run: str,
    mode: str | None,
    backend: str,
    extensions: tuple[tuple[str, int], ...],
    recorded: str | None,
    timeout: float | None,
    progress: bool | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Continue RUN where its ledger ends; an ended run stays as it is."""
    from spak.cli import session, show

    root, name = common.find_run(run, runs_dir)
    asked = common.backend_of(backend, recorded)
    held = session.reopen(root, name, mode=mode, backend=asked, recorded=recorded)  # type: ignore[arg-type]
    try:
        held.extend(extensions)
        return show.advance_and_show(held, as_json, timeout, progressing=progress)
    finally:
        held.close()
