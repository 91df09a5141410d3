"""The law of one guarded session: the files of --policy and the hosts of --allow-host join the law.

Takes what the command line says; gives the law. What is added lifts no prohibition. In a session of one's own
it may permit more, as a team's rules may; under a platform's law of a team it only narrows, but for hosts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.policy.law import Law

HOSTS = "allow-host.mg"


def law(teams: Law | None, policies: Iterable[Path], hosts: Iterable[str], of_servers: bool = False) -> Law:
    """The law of new runs here, or a team's of a platform, with what was added; with the rules about tools of
    MCP servers where the session has some, so that what is added is held to them too.

    Raises: UsageError `usage.file`, `usage.arguments`; PolicyError with the place where it does not load."""
    from spak import config
    from spak.cli import common
    from spak.runner import genesis

    files: dict[str, str] = {}
    for file in policies:
        files[file.name if file.name not in files else str(file)] = common.read_text(file)
    rows = [_row(item) for group in hosts for item in group.split(",") if item.strip()]
    found = config.law() if teams is None else teams
    found = genesis.of_servers(found) if of_servers else found
    found = found.joined(files, "team" if teams is None else "spec")
    return found.joined({HOSTS: "".join(dict.fromkeys(rows))} if rows else {}, "team")


def _row(item: str) -> str:
    """A host at 443, or a host with the port that is named."""
    from spak.policy import urls

    url = urls.parse(f"tunnel://{item.strip()}")
    if isinstance(url, urls.Trouble) or url.path or url.port >= 1 << 16:
        why = url.detail if isinstance(url, urls.Trouble) else "no host and port"
        hint = "a full host name, as api.example.org, or with a port, as api.example.org:8443"
        raise UsageError("usage.arguments", f"--allow-host {item.strip()!a}: {why}", hint)
    host = json.dumps(url.host)
    return f"allowed_port({host}, {url.port}).\n" if url.port else f"allowed_host({host}).\n"
