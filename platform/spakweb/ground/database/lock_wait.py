"""How long a person waits for a lock in the database that somebody else holds, and what is reported then.

`short_lock_wait()` is a transaction whose statements wait at most a second for a lock, so that a click is
answered: done, or refused. `locked(error)` and `passing(error)` say what an error of the database means. On
SQLite a writer waits for the one before it, and nobody can take the lock from a process that was stopped.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction

WAIT_MS = 1000
NO_LOCK, IDLE = "55P03", "25P03"
"""PostgreSQL's lock_not_available and idle_in_transaction_session_timeout."""


@contextmanager
def short_lock_wait() -> Iterator[None]:
    """A transaction that waits WAIT_MS for a lock at most."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:  # else it has the only lock there is
        usual = round(1000 * connection.settings_dict["OPTIONS"]["timeout"])
        _set(f"PRAGMA busy_timeout = {WAIT_MS}")
        try:
            with transaction.atomic():
                yield
        finally:
            _set(f"PRAGMA busy_timeout = {usual}")
        return
    with transaction.atomic():
        if connection.vendor == "postgresql":
            _set(f"SET LOCAL lock_timeout = {WAIT_MS}")
        yield


def _set(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def locked(error: DatabaseError) -> bool:
    """A lock did not come in time."""
    code = getattr(error.__cause__, "sqlite_errorcode", 0)
    return getattr(error.__cause__, "sqlstate", "") == NO_LOCK or code & 0xFF == sqlite3.SQLITE_BUSY


def passing(error: DatabaseError) -> bool:
    """The same may go well on a new connection: a lock that did not come, a connection that has gone, or one
    that the server gave up because this process was stopped in the middle of a transaction."""
    idle = getattr(error.__cause__, "sqlstate", "") == IDLE
    return idle or isinstance(error, OperationalError | InterfaceError)
