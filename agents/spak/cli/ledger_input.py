"""Where the lines of a ledger come from: a run folder, a file, or standard input (`-`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from pathlib import Path

from spak.cli import common
from spak.errors import LedgerError, UsageError
from spak.inputs import open_input
from spak.ledger.chain import follow
from spak.ledger.statement import is_header
from spak.records import Record


def is_file(selector: str) -> bool:
    """Whether a selector means a file rather than a run."""
    return selector == "-" or selector.endswith(".jsonl") or os.path.isfile(selector)  # noqa: PTH113  (an odd name is no error)


def open_file(selector: str) -> Iterator[bytes]:
    """The lines of a file, streamed. Raises: UsageError `usage.file`."""
    if selector == "-":
        yield from sys.stdin.buffer if sys.stdin is not None else ()
        return
    try:
        with open_input(Path(selector)) as file:
            yield from file
    except OSError as error:
        raise UsageError("usage.file", f"{selector}: {error.strerror}", "check the path") from error


def records(selector: str, runs_dir: Path | None) -> Iterator[Record]:
    """The records of a run or an exported file, each checked against the one before; a torn tail is left out.

    Raises: LedgerError `ledger.tampered` (naming the first record that is not as written), `ledger.empty`.
    """
    if is_file(selector):
        name, found = selector, _of_file(selector)
    else:
        from spak.cli.reading import records_of

        root, name = common.find_run(selector, runs_dir)
        found = records_of(root, name)
    empty = True
    for record in found:
        empty = False
        yield record
    if empty:
        raise LedgerError("ledger.empty", f"{name} has no records", "name a run or an exported file")


def _of_file(path: str) -> Iterator[Record]:
    whole = dropwhile(is_header, takewhile(lambda line: line.endswith(b"\n"), open_file(path)))
    chained = takewhile(lambda line: not line.startswith((b'{"blob":', b'{"blobs":')), whole)
    for record, _ in follow(chained, path):
        yield record
