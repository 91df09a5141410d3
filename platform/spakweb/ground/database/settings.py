"""The database that an address names: PostgreSQL, or SQLite beside the data when there is none.

Takes the address, the data folder and the limits of a connection; gives the dictionary that Django wants. It
opens nothing. The limits keep a process that was stopped, or whose host is gone, from holding up all others:
PostgreSQL itself gives up on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from spakweb.ground.environment import BadSetting

DATABASE = "spak.sqlite3"
"""The name of SQLite's file in the data folder."""
EXPECTED = "postgresql://user:password@host:5432/name?sslmode=verify-full, or nothing for SQLite"
OF_TLS = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl"})
"""What may stand after the question mark, for PostgreSQL's own client."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each connection to PostgreSQL, in seconds; 0 is none."""

    lock_s: int = 5
    """How long a statement waits for a lock that another connection holds."""
    statement_s: int = 60
    idle_s: int = 8
    """How long a transaction may be open while nothing is asked in it. Less than twice `lock_s`: who tries a
    second time after a lock did not come finds it free."""
    silent_s: int = 30
    """How long the other end may be silent before the connection counts as gone."""

    def options(self) -> dict[str, Any]:
        """The limits as options of a PostgreSQL connection."""
        names = {
            "lock_timeout": self.lock_s,
            "statement_timeout": self.statement_s,
            "idle_in_transaction_session_timeout": self.idle_s,
        }
        asked = {name: f"{1000 * value}" for name, value in names.items() if value}
        found: dict[str, Any] = {}
        if self.silent_s:
            step = max(1, self.silent_s // 6)
            found = {"keepalives_idle": 3 * step, "keepalives_interval": step, "keepalives_count": 3}
            found["tcp_user_timeout"] = 1000 * self.silent_s
            # the same on the server's side, for a host that is gone without a word
            asked |= {"tcp_keepalives_idle": f"{3 * step}", "tcp_keepalives_interval": f"{step}"}
            asked |= {"tcp_keepalives_count": "3", "tcp_user_timeout": f"{1000 * self.silent_s}"}
        if asked:
            found["options"] = " ".join(f"-c {name}={value}" for name, value in asked.items())
        return found


LIMITS = Limits()


def database(address: str, data: Path, limits: Limits = LIMITS) -> dict[str, Any]:
    """The settings of the database at an address; SQLite in the data folder without one."""
    if not address:
        return sqlite(data / DATABASE)
    try:
        parts = urlsplit(address)
        port = parts.port
        more = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise _bad("is not an address") from error
    if parts.scheme in ("postgres", "postgresql") and parts.path.strip("/"):
        if more.keys() - OF_TLS:
            raise _bad(f"has something else than {', '.join(sorted(OF_TLS))} after the question mark")
        return {
            "ENGINE": "spakweb.ground.database.engines.postgresql",
            "NAME": unquote(parts.path.strip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or ""),
            "PORT": str(port or ""),
            "CONN_MAX_AGE": 0,  # where threads come back, ground/database/engines/kept.py hands them on
            "OPTIONS": {"connect_timeout": 10, **limits.options(), **more},
        }
    if parts.scheme == "sqlite" and parts.path.startswith("/") and len(parts.path) > 1:
        return sqlite(Path(unquote(parts.path)))
    raise _bad("has another form")


def sqlite(file: Path) -> dict[str, Any]:
    """WAL, so that readers and writer do not wait for each other; FULL, so that what was told as saved is;
    IMMEDIATE, so that a transaction that reads first can also write."""
    return {
        "ENGINE": "spakweb.ground.database.engines.sqlite3",
        "NAME": str(file),
        "TEST": {"NAME": str(file.with_name("test.sqlite3"))},  # in memory, threads would lock each other out
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;",
        },
    }


def _bad(problem: str) -> BadSetting:
    return BadSetting("SPAK_WEB_DATABASE_URL", problem, EXPECTED, "fix it; percent-encode the password")
