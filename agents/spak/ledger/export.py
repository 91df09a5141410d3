"""A run as one file, and back, byte for byte.

    the record lines, exactly as in the ledger
    {"blob":"<digest>","data":"<base64>"}            one line per blob, in order of digest
    {"blobs":n,"count":n,"footer":1,"head":"...","run":"..."}      one footer, the last line

Every line is canonical and ends with a newline, so that the same run always gives the same file, and a file
cut anywhere is found. A pack (spak.ledger.pack) has one line more, before the others. An import is checked
while it is read and becomes a run as a whole or leaves nothing behind.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

from spak.errors import LedgerError
from spak.ledger.chain import is_record_line, read_lines
from spak.ledger.verify import Footer, Walk
from spak.ports import Blobs, Ledger, Ledgers
from spak.records import Record

__all__ = ["ImportingLedgers", "Intake", "export", "import_", "is_record_line"]

PIECE = 3 << 18
"""Bytes of a blob that are written at a time; three of them are four letters."""


class Intake(Protocol):
    """A run in the making."""

    def line(self, line: bytes) -> None:
        """Take the next line of the ledger."""

    def blob(self, data: bytes) -> None:
        """Take a blob."""

    def keep(self, run: str, count: int, head: str) -> None:
        """Raises: LedgerError `ledger.exists` when the id belongs to other content."""

    def drop(self) -> None:
        """Forget all that was taken."""


class ImportingLedgers(Ledgers, Protocol):
    """A store that can take whole runs."""

    def intake(self) -> Intake:
        """A place for a run that is coming in; it exists once it is kept."""


class Lines(Protocol):
    """What takes the bytes of an export."""

    def write(self, data: bytes, /) -> object:
        """Take the next bytes."""


def export(ledger: Ledger, stream: Lines, see: Callable[[Record], None] | None = None) -> Footer:
    """Write the run to `stream`; gives the footer written. `see` is shown every record.

    Raises: LedgerError `ledger.blob` when a blob is damaged, `ledger.line` when a record is; what an unable
    stream raises comes through as it is.
    """
    run, count, blobs = "", 0, 0
    for record, line in ledger.read():
        if count == 0:
            run = _run_of(record.body.get("host"), ledger.run)
        if see is not None:
            see(record)
        stream.write(line)
        count += 1
    for name in _names(ledger.blobs):
        _write_blob(name, ledger.blobs.get(name), stream)
        blobs += 1
    footer = Footer(run, count, ledger.head, blobs)
    stream.write(footer.line())
    return footer


def _write_blob(name: str, data: bytes, stream: Lines) -> None:
    """The line of a blob, piece by piece: base64 is its own canonical form, and a blob may be large."""
    stream.write(b'{"blob":"%s","data":"' % name.encode())
    for at in range(0, len(data), PIECE):
        stream.write(b64encode(data[at : at + PIECE]))
    stream.write(b'"}\n')


def import_(stream: BinaryIO, ledgers: ImportingLedgers) -> str:
    """Take an exported run into `ledgers`; gives its run id.

    The same run twice is fine. Raises: LedgerError `ledger.import` when the file is damaged, cut or no
    export; `ledger.exists` when the id is taken by other content. Nothing is left behind then.
    """
    walk, intake = Walk(exported=True), ledgers.intake()
    try:
        for line in read_lines(stream):
            kind = walk.feed(line)
            _refuse(walk)
            if kind == "record":
                intake.line(line)
            elif kind == "blob":
                intake.blob(walk.blob)
        walk.report()
        _refuse(walk)
        intake.keep(walk.run, walk.count, walk.head)
    except BaseException:
        intake.drop()
        raise
    return walk.run


def _refuse(walk: Walk) -> None:
    if walk.problems:
        first = walk.problems[0]
        raise LedgerError(
            "ledger.import",
            f"nothing was imported; record {first.seq}: {first.message} ({first.code})",
            "`spak ledger verify FILE` lists all that is wrong; export the run again where it lives",
        )


def _run_of(host: object, otherwise: str) -> str:
    """The run's own name: what its genesis says, whatever its folder is called by now."""
    run = host.get("run") if isinstance(host, dict) else None
    return run if isinstance(run, str) and run else otherwise


def _names(blobs: Blobs) -> Iterator[str]:
    names = getattr(blobs, "names", None)
    if names is None:
        raise LedgerError("ledger.import", "this store cannot list its blobs", "export from another store")
    yield from names()
