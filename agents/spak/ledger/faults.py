"""What the operating system refused, as a ledger error that says what to do.

Takes an OSError and what was being done; gives the LedgerError to raise from it. It decides nothing else.
"""

from __future__ import annotations

import errno
from pathlib import Path

from spak.errors import LedgerError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_READONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def typed(error: OSError, doing: str, path: Path) -> LedgerError:
    """`ledger.full`, `ledger.readonly` or `ledger.io` for what went wrong while `doing` that to `path`."""
    why = error.strerror or str(error)
    if error.errno in _FULL:
        return LedgerError(
            "ledger.full",
            f"no space while {doing}: {path} ({why})",
            "free some space (or raise the limit) and continue with `spak resume`; nothing recorded is lost",
        )
    if error.errno in _READONLY:
        return LedgerError(
            "ledger.readonly",
            f"not allowed while {doing}: {path} ({why})",
            "make the folder writable or name another with --runs-dir; show, replay and verify only read",
        )
    return LedgerError(
        "ledger.io",
        f"the store failed while {doing}: {path} ({why})",
        "check the disk, then `spak ledger verify` and `spak resume`; what was flushed is still there",
    )
