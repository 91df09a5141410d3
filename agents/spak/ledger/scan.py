"""A ledger file from end to end: every line checked, nothing kept.

Takes the path of a `trace.jsonl`; gives how many whole records it has, the last hash, and what is torn.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spak import canon
from spak.ledger.chain import follow, read_lines, tampered
from spak.ledger.faults import typed

TRACE = "trace.jsonl"


@dataclass(frozen=True, slots=True)
class Scan:
    """Whole records, the hash of the last, their bytes, and the bytes after them that are no whole line."""

    count: int
    head: str
    size: int
    torn: int


def scan_file(path: Path, run: str) -> Scan:
    """Check every line of a ledger file while streaming.

    Raises: LedgerError `ledger.tampered`; a last line without its newline is only counted in `torn`.
    """
    torn, count, head, size = 0, 0, canon.ZERO, 0

    def whole(lines: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal torn
        for line in lines:
            if not line.endswith(b"\n"):
                torn += len(line)
                return
            yield line

    try:
        with path.open("rb") as file:
            for record, line in follow(whole(read_lines(file)), run):
                count, head, size = count + 1, record.hash, size + len(line)
    except OSError as error:
        raise typed(error, "reading the ledger", path) from error
    if count == 0:
        raise tampered(run, 0, "there is no genesis")
    return Scan(count, head, size, torn)


def fsync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
