"""Faults of the host: a disk that is full or fails, and a lack of descriptors, processes or memory.

They pass or an operator mends them, and nobody else is to blame: whoever meets one decides nothing by it and
tries again. Takes an error, or the text of a program that met one.
"""

from __future__ import annotations

import errno
import os

from spak.errors import OF_HOST, SpakError

FULL = (errno.ENOSPC, errno.EDQUOT)
SHORT = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""What the host has too little of: descriptors, processes, memory."""
FAILING = (errno.EIO, errno.EROFS, errno.ESTALE, errno.EUCLEAN, errno.EREMOTEIO)
NO_THREAD = "can't start new thread"
"""How Python says EAGAIN where it starts a thread."""
FULL_CODES = frozenset({"workspace.full", "ledger.full"})
CODES = OF_HOST - {"workspace.busy", "ledger.busy"} | {"unavailable.host"}
"""Codes of errors that are such a fault. `spak.errors.of_host` is wider: all that says nothing of a spec, as
a model that is away or a run that somebody else has."""


def is_full(error: BaseException) -> bool:
    """Whether a disk of the host had no room for it."""
    if isinstance(error, SpakError):
        return error.code in FULL_CODES
    return isinstance(error, OSError) and error.errno in FULL


def is_fault(error: BaseException | None) -> bool:
    """Whether it is a fault of the host, or was raised for one."""
    while error is not None:
        if isinstance(error, SpakError) and error.code in CODES:
            return True
        if isinstance(error, OSError) and error.errno in (*FULL, *SHORT, *FAILING):
            return True
        if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and NO_THREAD in str(error)):
            return True
        error = error.__cause__
    return False


def named(text: str, numbers: tuple[int, ...]) -> str:
    """The first of these errors of the operating system that the text names in its words; else empty."""
    text = text.casefold()
    return next((word for word in map(os.strerror, numbers) if word.casefold() in text), "")


def starting(text: str) -> str:
    """The fault of the host for which something did not start, by what it said; else empty."""
    return NO_THREAD if NO_THREAD in text else named(text, (*FULL, *SHORT, errno.EIO))
