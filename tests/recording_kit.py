"""Data files of coverage.py, written row by row: what each context ran."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

SCHEMA = """
CREATE TABLE coverage_schema (version integer);
CREATE TABLE meta (key text, value text, unique (key));
CREATE TABLE file (id integer primary key, path text, unique (path));
CREATE TABLE context (id integer primary key, context text, unique (context));
CREATE TABLE line_bits (file_id integer, context_id integer, numbits blob, unique (file_id, context_id));
CREATE TABLE arc (file_id integer, context_id integer, fromno integer, tono integer);
"""
Ran = Mapping[str, Mapping[str, Iterable[int]]]


def bits(lines: Iterable[int]) -> bytes:
    """A set of lines as coverage.py packs it."""
    found = bytearray(max(lines, default=0) // 8 + 1)
    for line in lines:
        found[line // 8] |= 1 << line % 8
    return bytes(found)


def write(path: Path, root: Path, contexts: Ran, *, version: int = 7, arcs: bool = False) -> Path:
    """A recording of files below the root: lines by file and context. It is younger than they are."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(SCHEMA)
        db.execute("INSERT INTO coverage_schema VALUES (?)", (version,))
        files = {
            name: number for number, name in enumerate({at for rows in contexts.values() for at in rows}, 1)
        }
        db.executemany(
            "INSERT INTO file VALUES (?, ?)", [(number, str(root / at)) for at, number in files.items()]
        )
        for number, (context, rows) in enumerate(contexts.items(), 1):
            db.execute("INSERT INTO context VALUES (?, ?)", (number, context))
            for at, lines in rows.items():
                if arcs:
                    ends = zip([-1, *lines], [*lines, -1], strict=True)
                    db.executemany(
                        "INSERT INTO arc VALUES (?, ?, ?, ?)", [(files[at], number, *e) for e in ends]
                    )
                else:
                    db.execute("INSERT INTO line_bits VALUES (?, ?, ?)", (files[at], number, bits([*lines])))
    later = max((file.stat().st_mtime for file in root.rglob("*.py")), default=0) + 5
    os.utime(path, (later, later))
    return path
