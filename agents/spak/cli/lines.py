"""Where the lines of a ledger come from: a run folder, or a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from spak.cli import common
from spak.errors import LedgerError, UsageError
from spak.ledger.export import is_record_line
from spak.records import Record, decode


def is_file(selector: str) -> bool:
    """Whether a selector means a file rather than a run."""
    return selector.endswith(".jsonl") or os.path.isfile(selector)  # noqa: PTH113  (an odd name is no error)


def open_file(selector: str) -> Iterator[bytes]:
    """The lines of a file, streamed. Raises: UsageError `usage.file`."""
    try:
        with Path(selector).open("rb") as file:
            yield from file
    except OSError as error:
        raise UsageError("usage.file", f"{selector}: {error.strerror}", "check the path") from error


def records(selector: str, runs_dir: Path | None) -> Iterator[Record]:
    """The records of a run or an exported file; a torn last line is left out."""
    if is_file(selector):
        for line in open_file(selector):
            if not line.endswith(b"\n"):
                return
            if is_record_line(line):
                yield decode(line)
        return
    from spak.cli.reading import records_of

    root, name = common.find_run(selector, runs_dir)
    found = False
    for record in records_of(root, name):
        found = True
        yield record
    if not found:
        raise LedgerError("ledger.empty", f"run {name} has no records", "")
