"""`spak guard report RUN --server URL`: send a platform what it does not have of a guarded session."""

from __future__ import annotations

from pathlib import Path

import click

from spak.cli import common


@click.command("report")
@click.argument("run")
@click.option("--server", metavar="URL", required=True, help="The platform.")
@click.option("--team", default="", metavar="TEAM", help="Its team; needed where you have more.")
@common.runs_option
@common.json_option
def command(run: str, server: str, team: str, runs_dir: Path | None, as_json: bool) -> int:
    """Send a platform what it does not have of a guarded session: after one without it, or while it was away.

    Its records stay as they are: it does not come under the law of the team by that."""
    from spak.cli.guard_server import platform_of, sender

    folder = Path(*common.find_run(run, runs_dir))
    with platform_of(server, team) as (platform, team):
        reports = sender(platform, team, folder)
        reports.send()
    if as_json:
        common.emit({"run": folder.name, "server": platform.url, "team": team, "html_url": reports.page})
    else:
        common.say(f"spak: {reports.page} has all of {folder.name}")
    return 0
