"""`spak run FILE`: start a run and advance it until it ends or waits."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common
from spak.errors import UsageError

MODES = click.Choice(["stepwise", "semi_auto", "full_auto"])


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--mode", type=MODES, help="Where to stop; the default is CONFIG's, or full_auto with a backend."
)
@click.option("--backend", default="", help="Who answers questions, e.g. manual.")
@common.from_option
@click.option("--proposer", default="", help="Who fills plans: a generator's name, or `model`.")
@click.option("--input", "inputs", multiple=True, metavar="K=V", help="A value for INPUTS; repeat for more.")
@click.option(
    "--workspace", type=click.Path(path_type=Path), help="A folder to copy into the run's workspace."
)
@click.option("--in-place", is_flag=True, help="Work in the folder itself instead of a copy.")
@common.timeout_option
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**53 - 1), help="Seed of the run; drawn if not given."
)
@common.runs_option
@common.json_option
def command(
    file: Path,
    mode: str | None,
    backend: str,
    recorded: str | None,
    proposer: str,
    inputs: tuple[str, ...],
    workspace: Path | None,
    in_place: bool,
    timeout: float | None,
    seed: int | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Start a run of FILE and advance it until it ends or waits."""
    from spak.cli import session, show

    if in_place and workspace is None:
        raise UsageError("usage.arguments", "--in-place needs --workspace", "name the folder to work in")
    held = session.begin(
        file,
        common.runs_dir(runs_dir),
        inputs=pairs(inputs),
        mode=mode,  # type: ignore[arg-type]
        backend=common.backend_of(backend, recorded),
        recorded=recorded,
        proposer=proposer,
        workspace=workspace,
        in_place=in_place,
        seed=seed,
    )
    return show.advance_and_show(held, as_json, timeout)


def pairs(inputs: tuple[str, ...]) -> dict[str, str]:
    """The values of `--input K=V`. Raises: UsageError `usage.arguments`."""
    found = {}
    for item in inputs:
        name, sign, value = item.partition("=")
        if not sign or not name:
            raise UsageError("usage.arguments", f"--input {item!r} is not K=V", "for example --input n=512")
        found[name] = value
    return found
