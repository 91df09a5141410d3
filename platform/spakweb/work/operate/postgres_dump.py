"""A dump of the PostgreSQL database and its way back, by PostgreSQL's own programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from django.db import connection

from spakweb.ground.database.settings import OF_TLS
from spakweb.ground.errors import Refused


def tables() -> list[str]:
    """The names of all tables."""
    return connection.introspection.table_names()


def dump(to: Path) -> None:
    """Raises: Refused `web.backup`."""
    _run("web.backup", "pg_dump", "-Fc", "--no-owner", "-f", str(to))
    to.chmod(0o600)


def load(source: Path, replace: bool) -> None:
    """All of it or nothing; `replace` drops the tables that are there. Raises: Refused `web.restore`."""
    drop = ("--clean", "--if-exists") if replace else ()
    _run("web.restore", "pg_restore", "--single-transaction", "--no-owner", *drop, "-d", "", str(source))


def _run(code: str, program: str, *words: str) -> None:
    found = shutil.which(program)
    if found is None:
        raise Refused(
            code, f"there is no {program} here", "docs/deploy.md, Backups, has the commands of the server"
        )
    about = connection.settings_dict
    named = {
        "PGHOST": "HOST",
        "PGPORT": "PORT",
        "PGUSER": "USER",
        "PGPASSWORD": "PASSWORD",
        "PGDATABASE": "NAME",
    }
    env = {name: str(about[key]) for name, key in named.items() if about[key]}
    env |= {f"PG{name.upper()}": str(about["OPTIONS"][name]) for name in OF_TLS if name in about["OPTIONS"]}
    words = tuple(str(about["NAME"]) if word == "" else word for word in words)
    done = subprocess.run(
        [found, *words], env={**os.environ, **env}, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        raise Refused(code, f"{program}: {lines[0]}", "its version must not be older than the server's")
