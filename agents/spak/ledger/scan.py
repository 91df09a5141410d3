"""A ledger file from end to end: every line checked, nothing kept.

Takes the path of a `trace.jsonl`; gives how many whole records it has, the last hash, and what is torn. Lines
up to a place that is known already may be left out: their bytes are compared as a whole (`hash_of`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from spak import canon
from spak.ledger.chain import follow, next_previous, read_lines, tampered
from spak.ledger.faults import typed

TRACE = "trace.jsonl"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Scan:
    """Whole records, the hash of the last, their bytes, and the bytes after them that are no whole line."""

    count: int
    head: str
    size: int
    torn: int


START = Scan(0, canon.ZERO, 0, 0)


def scan_file(path: Path, run: str, known: Scan = START, hashing: hashlib._Hash | None = None) -> Scan:
    """Check every line of a ledger file while streaming, from where it is `known`; `hashing` takes in the
    lines that are whole.

    Raises: LedgerError `ledger.tampered`; a last line without its newline is only counted in `torn`.
    """
    torn, count, head, size = 0, known.count, known.head, known.size

    def whole(lines: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal torn
        for line in lines:
            if not line.endswith(b"\n"):
                torn += len(line)
                return
            yield line

    try:
        with path.open("rb") as file:
            file.seek(size)
            for record, line in follow(whole(read_lines(file)), run, count, head):
                count, head, size = count + 1, record.hash, size + len(line)
                if hashing is not None:
                    hashing.update(line)
    except OSError as error:
        raise typed(error, "reading the ledger", path) from error
    if count == 0:
        raise tampered(run, 0, "there is no genesis")
    return Scan(count, head, size, torn)


def hash_of(path: Path, size: int) -> hashlib._Hash | None:
    """SHA-256 over the first `size` bytes of a file; None when it is shorter."""
    hashing, left = hashlib.sha256(), size
    try:
        with path.open("rb", buffering=0) as file:
            while left > 0 and (data := file.read(min(_CHUNK, left))):
                hashing.update(data)
                left -= len(data)
    except OSError as error:
        raise typed(error, "reading the ledger", path) from error
    return None if left else hashing


def offset_of(file: BinaryIO, seq: int, known: Iterable[tuple[int, int]]) -> int:
    """Where record `seq` begins in a ledger file, looked for from the nearest of the places that are known:
    numbers of records with their bytes."""
    count, size = min(known, key=lambda place: abs(place[0] - seq))
    if count <= seq:
        file.seek(size)
        return size + sum(len(line) for _, line in zip(range(seq - count), read_lines(file), strict=False))
    ends = count - seq + 1  # newlines, from the one before `size` to the one before the record
    while size > 0:
        begin = max(size - _CHUNK, 0)
        file.seek(begin)
        data = file.read(size - begin)
        found = data.count(b"\n")
        if found >= ends:
            at = len(data)
            for _ in range(ends):
                at = data.rfind(b"\n", 0, at)
            return begin + at + 1
        ends, size = ends - found, begin
    return 0


def head_at(path: Path, size: int) -> str:
    """The hash that the line which ends at `size` says of itself; empty when none does."""
    try:
        with path.open("rb") as file:
            length = _CHUNK
            while True:
                start = max(size - length, 0)
                file.seek(start)
                data = file.read(size - start)
                at = data.rfind(b"\n", 0, max(len(data) - 1, 0)) + 1
                if at or not start:
                    return next_previous(data[at:], "")
                length *= 2
    except OSError as error:
        raise typed(error, "reading the ledger", path) from error


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
