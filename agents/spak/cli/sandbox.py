"""`spak sandbox`: run one command in a launcher exactly as a tool would; build the containers' image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.sandbox.images import Way

NOT_STARTED = 125


@click.group()
def command() -> None:
    """Test the sandbox."""


@command.command("build")
@click.option(
    "--from",
    "way",
    type=click.Choice(["host", "packages", "registry"]),
    help="This host's Debian packages (default), Debian's archive (mmdebstrap), or a registry (--gpu).",
)
@click.option("--base", default="", help="Another image of the registry to build on.")
@click.option("--gpu", is_flag=True, help="The image of the gpu launcher.")
@common.json_option
def build(way: Way | None, base: str, gpu: bool, as_json: bool) -> int:
    """Build the image that the docker launcher runs jobs in."""
    from spak.errors import UsageError
    from spak.sandbox import images

    chosen = way or ("registry" if gpu or base else "host")
    if base and chosen != "registry":
        raise UsageError("usage.arguments", "--base is an image of a registry", "add --from registry")
    made = images.build(chosen, gpu=gpu, base=base, say=common.say)
    if as_json:
        common.emit(made)
    else:
        click.echo(f"{made['image']}  {made['id']}")
        common.say(f"next: spak sandbox probe --launcher {'gpu' if gpu else 'docker'} -- id")
    return 0


@command.command("probe", context_settings={"ignore_unknown_options": True})
@click.option("--launcher", default="restricted", show_default=True, help="Which launcher.")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder to work in; empty if not given.",
)
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@common.json_option
def probe(launcher: str, workspace: Path | None, argv: tuple[str, ...], as_json: bool) -> int:
    """Run ARGV in the launcher; the exit code is the command's, 125 when it could not be started."""
    from spak import config
    from spak.errors import UnavailableError, UsageError
    from spak.files.scratch import Scratch
    from spak.ports import Job
    from spak.runner.secret_guard import found_in
    from spak.sandbox import LAUNCHERS

    if launcher not in LAUNCHERS:
        raise UnavailableError(
            "unavailable.sandbox", f"there is no launcher {launcher!r}", f"known: {', '.join(LAUNCHERS)}"
        )
    if workspace is not None and not workspace.is_dir():
        raise UsageError("usage.workspace", f"{workspace} is not a folder", "name an existing folder")
    chosen = config.settings()
    with Scratch("probe") as empty:
        job = Job(
            argv=argv,
            workspace=(workspace or empty).resolve(),
            limits=chosen.limits,
            binds=config.toolchain(chosen.binds).binds,
            masked=found_in(workspace, chosen.shown_secrets)[0] if workspace is not None else (),
        )
        outcome = LAUNCHERS[launcher]().run(job)
    code = NOT_STARTED if outcome.status == "launcher" else outcome.exit
    if outcome.status in ("timeout", "oom", "limit"):
        code = 124
    if as_json:
        common.emit(
            {
                "launcher": launcher,
                "status": outcome.status,
                "exit": outcome.exit,
                "stdout": outcome.stdout.data.decode("utf-8", "replace"),
                "stderr": outcome.stderr.data.decode("utf-8", "replace"),
                "wall_ms": outcome.wall_ms,
                "cpu_ms": outcome.cpu_ms,
                "detail": outcome.detail,
            }
        )
        return code
    for stream, kept in ((common.output(), outcome.stdout), (common.errors(), outcome.stderr)):
        stream.write(kept.data)
        stream.flush()
    if outcome.status != "exited":
        common.say(f"spak: {outcome.status}: {outcome.detail}")
    return code
