"""Faults of the host as the platform meets them: those of `spak.files.faults`, and those of its database.

A disk that is full, fails or is read-only, and a lack of descriptors, processes or memory: nothing is decided
by them, requests that meet one are answered 507, and what waits goes on when it has passed.
"""

from __future__ import annotations

from django.db import DatabaseError

from spak.errors import UserError
from spak.files import faults
from spak.files.disk import refusal, short_of

SQLITE = (7, 8, 10, 13, 14)
"""NOMEM, READONLY, IOERR, FULL, CANTOPEN: the lower byte of its codes."""
POSTGRES = ("53", "58", "25006")
"""Insufficient resources, system errors, read-only: how its codes begin."""
NO_ROOM = ("disk is full", "No space left on device")
"""How SQLite and PostgreSQL say it."""


def is_fault(error: BaseException) -> bool:
    """Whether it is a fault of the host."""
    return faults.is_fault(error) or (isinstance(error, DatabaseError) and _of_database(error))


def is_full(error: BaseException) -> bool:
    """Whether a disk of the host had no room for it."""
    if isinstance(error, DatabaseError):
        return any(word in str(error) for word in NO_ROOM)
    return faults.is_full(error)


def typed(error: BaseException) -> UserError:
    """A fault of the host as an error that says what to do."""
    if isinstance(error, UserError):
        return error
    if isinstance(error, OSError):
        return refusal(OSError(error.errno, error.strerror), "working")  # without the path that it names
    return short_of(f"the worker is short of something: {type(error).__name__}: {error}")


def _of_database(error: DatabaseError) -> bool:
    cause = error.__cause__
    if getattr(cause, "sqlite_errorcode", 0) & 0xFF in SQLITE:
        return True
    state = getattr(cause, "sqlstate", None) or ""
    return state.startswith(POSTGRES) or is_full(error) or bool(faults.named(str(error), faults.SHORT))
