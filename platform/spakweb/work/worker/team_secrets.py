"""The secrets that a team's runs may name, `secret://NAME`: files of the operator's, on the worker's host.

    SPAK_WEB_SECRETS/<team's address>/<NAME>

Takes the host of a run and its team; gives the host with that team's secrets and a redactor that knows them.
Values are read when a worker takes a run up; no record, row, log or page ever has one. No person can set or
read one through the platform.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from spak import config
from spak.errors import RunError
from spak.llm.settings import read_key
from spak.runner import Host
from spak.runner.secrets import Secrets
from spak.secrets.redact import MIN_SECRET, Redactor
from spak.secrets.secret import Secret

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def knowing(host: Host, team: str) -> Host:
    """Raises: UnavailableError `llm.key_file`: others may read it, or it is no key; RunError `web.secret`."""
    found = of_team(team)
    if not found:
        return host
    known = [*config.settings().llm.secrets(), *found.values()]
    return replace(host, secrets=Secrets(found), redactor=Redactor(known))


def of_team(team: str) -> dict[str, Secret]:
    """The secrets that the operator gave a team, by name."""
    folder = Path(settings.SECRETS_DIR) / team if settings.SECRETS_DIR else None
    if folder is None or not folder.is_dir():
        return {}
    found = {path.name: read_key(path) for path in sorted(folder.iterdir()) if NAME.fullmatch(path.name)}
    for name, value in found.items():
        if len(value.reveal()) < MIN_SECRET:
            raise RunError(
                "web.secret",
                f"the secret {name} is so short that it cannot be kept out of records",
                f"ask who runs this platform for one of at least {MIN_SECRET} characters",
            )
    return found
