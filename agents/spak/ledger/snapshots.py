"""The snapshot of a run folder: a cache of the run's state, and the proof that the ledger begins as it did.

    <root>/<run>/snapshot    a line of JSON {count, head, size, prefix, data}, then the bytes

`size` bytes of the ledger hold its first `count` records, and `prefix` is their SHA-256: where it still is,
these lines are byte for byte the ones that were checked when the snapshot was written, and only those after
them are checked one by one. `data` is the SHA-256 of the bytes that follow. The file is written aside and
renamed, and never synced: one that is lost, cut or of other records is not used.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spak import canon
from spak.errors import LedgerError, UserError
from spak.inputs import open_input
from spak.kernel.snapshot import Snapshot
from spak.ledger.private import open_file
from spak.ledger.scan import START, TRACE, Scan, hash_of, head_at, scan_file

FILE = "snapshot"
_SHAPE = {"count": int, "head": str, "size": int, "prefix": str, "data": str}


class Opened(NamedTuple):
    """A ledger file that was checked: what it holds, the hash of its whole lines, its snapshot."""

    scan: Scan
    hashing: hashlib._Hash
    known: Scan
    """Up to where the snapshot is."""
    snapshot: Snapshot | None
    trouble: LedgerError | None
    """Why there is a snapshot that is not used."""


def opened(folder: Path, run: str) -> Opened:
    """Check the ledger of a run folder; what a snapshot knows of it is compared as a whole.

    Raises: LedgerError `ledger.tampered`, `ledger.io`.
    """
    path, trouble = folder / TRACE, None
    try:
        found = _read(folder / FILE)
        if found is not None:
            snapshot, known, prefix = found
            hashing = hash_of(path, known.size)
            if hashing is None or hashing.hexdigest() != prefix or head_at(path, known.size) != known.head:
                raise discarded(run, "it is of other records")
            return Opened(scan_file(path, run, known, hashing), hashing, known, snapshot, None)
    except LedgerError as error:
        if error.code == "ledger.io":
            raise
        trouble = error if error.code == DISCARDED else discarded(run, "it is of other records")
    except (OSError, UserError, ValueError):
        trouble = discarded(run, "it is damaged")
    hashing = hashlib.sha256()
    return Opened(scan_file(path, run, START, hashing), hashing, START, None, trouble)


def found(folder: Path, run: str) -> Snapshot | None:
    """The snapshot of a run folder, whatever its ledger holds.

    Raises: LedgerError `ledger.snapshot_discarded` when it cannot be read.
    """
    try:
        read = _read(folder / FILE)
    except (OSError, UserError, ValueError) as error:
        raise discarded(run, "it is damaged") from error
    return None if read is None else read[0]


def write(folder: Path, snapshot: Snapshot, size: int, hashing: hashlib._Hash) -> bool:
    """Write it in place of the one before; False when it could not be."""
    head = {
        "count": snapshot.count,
        "head": snapshot.head,
        "size": size,
        "prefix": hashing.hexdigest(),
        "data": canon.digest(snapshot.data),
    }
    aside = folder / f".{FILE}.new"
    try:
        with open_file(aside, "wb") as file:
            file.write(canon.dumps(head) + b"\n" + snapshot.data)
        aside.replace(folder / FILE)
    except OSError:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        return False
    return True


def drop(folder: Path) -> None:
    """Delete the snapshot, if there is one and it can be deleted."""
    with suppress(OSError):
        (folder / FILE).unlink(missing_ok=True)


DISCARDED = "ledger.snapshot_discarded"


def discarded(run: str, why: str) -> LedgerError:
    """The error of a snapshot that does not belong to the records."""
    return LedgerError(
        DISCARDED,
        f"the snapshot of run {run} was discarded: {why}",
        "nothing is lost: its records were replayed from the first one",
    )


def _read(path: Path) -> tuple[Snapshot, Scan, str] | None:
    """The snapshot in a file, the part of the ledger that it knows and the hash of that. None: no file.

    Raises: OSError, UserError, ValueError: it cannot be read.
    """
    try:
        with open_input(path) as file:
            head = canon.loads(file.readline())
            data = file.read()
    except FileNotFoundError:
        return None
    if not isinstance(head, dict) or any(type(head.get(name)) is not kind for name, kind in _SHAPE.items()):
        raise ValueError("its first line")
    if canon.digest(data) != head["data"] or head["count"] < 1 or head["size"] < 1:
        raise ValueError("its hash")
    known = Scan(head["count"], head["head"], head["size"], 0)
    return Snapshot(head["count"], head["head"], data), known, head["prefix"]
