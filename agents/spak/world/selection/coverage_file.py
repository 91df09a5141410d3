"""Reading a data file of coverage.py: which lines each context ran.

Takes a path that a user named; gives rows. The file may come from anywhere, so it is opened read-only and
unchanging, only plain tables of the one schema that is known are asked, and no value may be long. The format
is documented (coverage.py, "SQLite schema"); a set of lines is a bit field, lowest bit first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from spak.errors import UsageError

SCHEMA = 7
MAX_BYTES = 1 << 30
MAX_VALUE = 1 << 20
"""Bytes of one value: lines up to eight million."""
MAX_NAMES, MAX_ROWS = 500_000, 20_000_000
_TABLES = ("coverage_schema", "meta", "file", "context", "line_bits", "arc")
_AGAIN = "record again: COVERAGE_CORE=ctrace pytest --cov=. --cov-context=test"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a file holds. `begun` is in seconds since 1970; the lines of a context are by path, as written."""

    begun: float
    paths: frozenset[str]
    contexts: Mapping[str, Mapping[str, frozenset[int]]]


def read(path: Path) -> Recorded:
    """The recording. Raises: UsageError `world.recording`, `world.recording_contexts`."""
    try:
        if not path.is_file():
            raise _not(path, "there is no such file" if not path.exists() else "it is not a file")
        if path.stat().st_size > MAX_BYTES:
            raise _not(path, f"it has more than {MAX_BYTES >> 20} MiB")
        place = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(place, uri=True)) as db:
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            db.text_factory = lambda data: data.decode("utf-8", "replace")
            db.execute("PRAGMA trusted_schema = OFF")
            return _read(path, db)
    except (sqlite3.Error, OSError, ValueError) as error:
        raise _not(path, f"it cannot be read: {error}") from error


def _read(path: Path, db: sqlite3.Connection) -> Recorded:
    kinds = {
        name: (kind, sql)
        for name, kind, sql in db.execute("SELECT name, type, sql FROM sqlite_master WHERE type != 'index'")
    }
    for name in _TABLES:
        kind, sql = kinds.get(name, ("", ""))
        if kind != "table" or not str(sql).startswith("CREATE TABLE"):  # a view could run for ever
            raise _not(path, f"it has no table {name}")
    if db.execute("SELECT version FROM coverage_schema").fetchall() != [(SCHEMA,)]:
        raise _not(path, f"its schema is not version {SCHEMA}")
    files, contexts = (_names(path, db, sql) for sql in ("SELECT id, path FROM file", _CONTEXTS))
    if not any(contexts.values()):
        raise UsageError("world.recording_contexts", f"{path} does not say which test ran a line", _AGAIN)
    found: dict[str, dict[str, set[int]]] = {name: {} for name in contexts.values()}
    for file, context, lines in _rows(path, db):
        if file not in files or context not in contexts:
            raise _not(path, "a row names no file or context of it")
        found[contexts[context]].setdefault(files[file], set()).update(lines)
    when = dict(db.execute("SELECT key, value FROM meta LIMIT 100")).get("when")
    begun = path.stat().st_mtime
    with suppress(TypeError, ValueError, OverflowError):
        begun = time.mktime(time.strptime(str(when), "%Y-%m-%d %H:%M:%S"))
    return Recorded(
        begun,
        frozenset(files.values()),
        {name: {at: frozenset(lines) for at, lines in rows.items()} for name, rows in found.items()},
    )


_CONTEXTS = "SELECT id, context FROM context"


def _names(path: Path, db: sqlite3.Connection, sql: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for number, name in db.execute(sql):
        if not isinstance(name, str) or len(found) >= MAX_NAMES:
            raise _not(path, "a name is no text" if not isinstance(name, str) else "it has too many names")
        found[number] = name
    return found


def _rows(path: Path, db: sqlite3.Connection) -> Iterator[tuple[int, int, list[int]]]:
    count = 0
    for file, context, bits in db.execute("SELECT file_id, context_id, numbits FROM line_bits"):
        if not isinstance(bits, bytes):
            raise _not(path, "a value is no set of lines")
        lines = [at * 8 + bit for at, byte in enumerate(bits) if byte for bit in range(8) if byte >> bit & 1]
        count = _counted(path, count + len(lines))
        yield file, context, lines
    for file, context, *ends in db.execute("SELECT file_id, context_id, fromno, tono FROM arc"):
        if not all(isinstance(end, int) for end in ends):
            raise _not(path, "a line is no number")
        count = _counted(path, count + 1)
        yield file, context, [end for end in ends if end > 0]


def _counted(path: Path, count: int) -> int:
    if count > MAX_ROWS:
        raise _not(path, f"it has more than {MAX_ROWS:,} lines of tests")
    return count


def _not(path: Path, why: str) -> UsageError:
    return UsageError("world.recording", f"{path} is no data file of coverage.py: {why}", _AGAIN)
