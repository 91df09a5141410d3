"""The database that an address names: PostgreSQL, or SQLite beside the data when there is none.

Takes the address and the data folder; gives the dictionary that Django wants. It opens nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from spakweb.environment import BadSetting

EXPECTED = "postgresql://user:password@host:5432/name?sslmode=verify-full, or nothing for SQLite"
OF_TLS = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl"})
"""What may stand after the question mark, for PostgreSQL's own client."""


def database(address: str, data: Path) -> dict[str, Any]:
    if not address:
        return sqlite(data / "spak.sqlite3")
    try:
        parts = urlsplit(address)
        port = parts.port
        more = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise _bad("is no address") from error
    if parts.scheme in ("postgres", "postgresql") and parts.path.strip("/"):
        if more.keys() - OF_TLS:
            raise _bad(f"has something else than {', '.join(sorted(OF_TLS))} after the question mark")
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.strip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or ""),
            "PORT": str(port or ""),
            "CONN_MAX_AGE": 0,  # ASGI: a connection kept by a thread is not seen again
            "OPTIONS": {"connect_timeout": 10, **more},
        }
    if parts.scheme == "sqlite" and parts.path.startswith("/") and len(parts.path) > 1:
        return sqlite(Path(unquote(parts.path)))
    raise _bad("has another form")


def sqlite(file: Path) -> dict[str, Any]:
    """WAL, so that readers and writer do not wait for each other; FULL, so that what was told as saved is;
    IMMEDIATE, so that a transaction that reads first can also write."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(file),
        "TEST": {"NAME": str(file.with_name("test.sqlite3"))},  # in memory, threads would lock each other out
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;",
        },
    }


def _bad(problem: str) -> BadSetting:
    return BadSetting("SPAK_WEB_DATABASE_URL", problem, EXPECTED, "mend it; percent-encode the password")
