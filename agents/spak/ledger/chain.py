"""One line of a ledger against the line before it: shape, hash, order.

Takes exact lines in order; gives their records or the one problem that each has. It reads no whole file and
writes nothing; stores, `verify` and `import` all judge lines by this module alone.

Codes of problems: `line` (not a record), `chain` (hash does not follow from the line before), `order` (wrong
sequence number), `genesis` (the first record, and only the first, is a genesis), `authority` (of nobody).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from spak import canon
from spak.errors import LedgerError
from spak.records import AUTHORITIES, HASH_FIELD, Kind, Record, chain_hash, decode

MAX_LINE = 256 << 20
"""Bytes after which a line is no line: nothing that SPAK writes is longer."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_BLOB = re.compile(rb'"(?:\$?blob|proof)":"([A-Za-z0-9_-]{43})"')


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a ledger; `seq` is the position of the record, counted from 0."""

    seq: int
    code: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """The problem as commands print it."""
        return {"seq": self.seq, "code": self.code, "message": self.message}


def check_run_id(run: str) -> str:
    """The run id itself. Raises: LedgerError `ledger.run_id` when it could not be a folder's name."""
    if not _RUN_ID.fullmatch(run):
        raise LedgerError(
            "ledger.run_id",
            f"not a run id: {run!r}",
            "1 to 128 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
        )
    return run


def check_line(line: bytes, seq: int, previous: str) -> tuple[Record | None, Problem | None]:
    """The record of a whole line (newline included) at position `seq`, and what is wrong with it, if any."""
    try:
        record = decode(line)
    except LedgerError as error:
        return None, Problem(seq, "line", error.message)
    if chain_hash(line, previous) != record.hash or not _opens_with(line, record.hash):
        return record, Problem(
            seq, "chain", "the line's hash does not follow from the line before and its text"
        )
    if record.seq != seq:
        return record, Problem(seq, "order", f"record {record.seq} is where record {seq} belongs")
    if (record.kind == Kind.GENESIS) != (seq == 0):
        return record, Problem(seq, "genesis", "the first record, and no other, must be the genesis")
    if record.authority not in AUTHORITIES:
        return record, Problem(seq, "authority", f"unknown authority {record.authority!r}")
    return record, None


def next_previous(line: bytes, fallback: str) -> str:
    """The hash that the next line hangs on: what a damaged line still says of itself, else `fallback`."""
    stored = line[6 : HASH_FIELD - 2]
    return stored.decode("ascii", "replace") if line.startswith(b'{"#":"') and len(stored) == 43 else fallback


def follow(
    lines: Iterator[bytes], run: str, start: int = 0, head: str = canon.ZERO
) -> Iterator[tuple[Record, bytes]]:
    """Records with their lines, each checked against the one before; the first is record `start`, and the one
    before it has the hash `head`.

    Raises: LedgerError `ledger.tampered`, naming the first record that is not as it was written.
    """
    for seq, line in enumerate(lines, start):
        record, problem = check_line(line, seq, head)
        if problem is not None or record is None:
            raise tampered(run, seq, problem.message if problem else "no record")
        head = record.hash
        yield record, line


def tampered(run: str, seq: int, why: str) -> LedgerError:
    """The error of a record that is not as it was written."""
    return LedgerError(
        "ledger.tampered",
        f"record {seq} of run {run} is not as it was written: {why}",
        "`spak ledger verify` lists all that is wrong; take the run from a copy or `spak import` an export",
    )


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file as they stand, one at a time; the last may lack its newline."""
    while line := file.readline(MAX_LINE):
        yield line


def is_record_line(line: bytes) -> bool:
    """True for a line of the chain, False for the blobs and the footer of an exported file."""
    return line.startswith(b'{"#":')


def named_blobs(line: bytes) -> list[str]:
    """Digests of the blobs that a record names by a member `blob`, `$blob` or `proof` (text is escaped)."""
    return [found.decode() for found in _BLOB.findall(line)]


def _opens_with(line: bytes, digest: str) -> bool:
    return line[:HASH_FIELD] == b'{"#":"' + digest.encode() + b'",'
