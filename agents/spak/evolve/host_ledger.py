"""Ledgers of experiments and campaigns: chains of records that the host writes, the plan first.

Makes records with the current time, and creates and reads a ledger by its name. What its records mean is for
the callers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spak.errors import LedgerError, OuterError
from spak.ledger.files import FileLedger, FileLedgers
from spak.records import Authority, Kind, Record


def record(kind: str, body: Mapping[str, Any]) -> Record:
    """A record of the host, made now."""
    return Record(kind, Authority.HOST, body, at=time.time_ns() // 1_000_000)


def create(root: Path, name: str, plan: Mapping[str, Any]) -> str:
    """Make a ledger that begins with the plan; gives the hash of that record.

    Raises: LedgerError where one of this name exists.
    """
    with FileLedgers(root).create(name, record(Kind.GENESIS, plan)) as ledger:
        return ledger.head


def reader(root: Path, name: str, unknown: OuterError) -> FileLedger:
    """The ledger of this name. Raises: `unknown` where there is none; LedgerError where it is damaged."""
    try:
        return FileLedgers(root).reader(name)
    except LedgerError as error:
        if error.code not in ("ledger.unknown_run", "ledger.run_id"):
            raise
        raise unknown from error
