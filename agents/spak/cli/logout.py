"""`spak logout URL`: forget the token that `spak login` kept."""

from __future__ import annotations

import click

from spak.cli import common


@click.command()
@click.argument("url")
@common.json_option
def command(url: str, as_json: bool) -> int:
    """Delete the stored token for the platform at URL. It stays valid there until the account page
    revokes it."""
    from spak.client import servers
    from spak.client.connection import origin

    server = origin(url)
    known = servers.forget(server)
    if as_json:
        common.emit({"server": server, "known": known})
        return 0
    common.say(f"{server}: {'forgotten' if known else 'no token was kept'}")
    if known:
        common.say(f"next: revoke it, if nothing else uses it: {server}/me/")
    return 0
