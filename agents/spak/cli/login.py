"""`spak login URL`: keep the token that `spak run --server URL` uses."""

from __future__ import annotations

import sys

import click

from spak.cli import common
from spak.errors import UsageError


@click.command()
@click.argument("url")
@common.json_option
def command(url: str, as_json: bool) -> int:
    """Store a token for the platform at URL after testing it. The token is asked for, or read from standard
    input; it is never an argument, which other users could see."""
    from spak.client import Platform, servers
    from spak.client.connection import origin

    server = origin(url)
    with Platform(server, _secret(server)) as platform:
        teams = [
            {"slug": str(one.get("slug", "")), "role": str(one.get("role", ""))} for one in platform.teams()
        ]
        file = servers.keep(server, platform.token)
    if as_json:
        common.emit({"server": server, "teams": teams, "file": str(file)})
        return 0
    common.say(f"{server}: the token works; it is kept in {file}")
    for one in teams:
        common.say(f"  team {one['slug']}")
    first = teams[0]["slug"] if teams else "TEAM"
    common.say(f"next: spak run {first}/SPEC --server {server} --files . --wait")
    return 0


def _secret(server: str) -> str:
    from spak.client.connection import MAX_TOKEN

    if sys.stdin is None:
        raise UsageError("client.token", "standard input is closed", "spak login URL < FILE")
    if sys.stdin.isatty():
        common.say(f"A token of yours: {server}/me/")
        return str(click.prompt("token", hide_input=True, err=True)).strip()
    return sys.stdin.buffer.readline(MAX_TOKEN + 2).decode("utf-8", "replace").strip()
