"""Facts and links in one SQLite file: a cache that may be deleted at any time.

    content   the facts of a file's bytes, by SHA-256, language and extractor: for every tree and branch
    symbol    what a content defines, to be found by name
    tree      one folder that was indexed
    file      the files of a tree, with the stamp at which their content was read
    link, site, dep   the edges of a file, what it could not follow, and what both depend on: names at the top
              of files, and words of imports, whose target is the tree's number below zero
    recorded  the Python files of a tree when coverage was recorded, with the text of those that tests ran
    test_covers   the lines of such a text that a test ran
    name      ids of symbols as text, `py:agents/spak/canon.py#dumps`

Takes and gives rows; the meaning is that of `spak.world.index` and `spak.world.ask`. A file that is no
database, or of another version, is made anew. Everything that one update writes is one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spak.errors import UsageError
from spak.world.facts import EXTRACTOR

VERSION = 6
"""Raise it when the tables change, or when the linker finds other edges: the file is then made anew."""
BUSY_S = 30.0
_CHUNK = 500
_TABLES = """
CREATE TABLE content (id INTEGER PRIMARY KEY, hash TEXT, language TEXT, extractor INTEGER, face BLOB,
                      body BLOB, UNIQUE (hash, language, extractor));
CREATE TABLE symbol (content INTEGER, qual TEXT, name TEXT, kind TEXT, seen TEXT, line INTEGER, end INTEGER,
                     sign TEXT, PRIMARY KEY (content, qual)) WITHOUT ROWID;
CREATE INDEX symbol_name ON symbol (name);
CREATE TABLE tree (id INTEGER PRIMARY KEY, root TEXT UNIQUE, state TEXT);
CREATE TABLE file (id INTEGER PRIMARY KEY, tree INTEGER, path TEXT, language TEXT, hash TEXT, content INTEGER,
                   size INTEGER, mtime INTEGER, ctime INTEGER, inode INTEGER, seen INTEGER, test INTEGER,
                   reason TEXT, errors INTEGER, UNIQUE (tree, path));
CREATE INDEX file_content ON file (content);
CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT UNIQUE);
CREATE TABLE link (tree INTEGER, callee INTEGER, caller INTEGER, how TEXT, role TEXT, lines TEXT,
                   PRIMARY KEY (tree, callee, caller, how, role)) WITHOUT ROWID;
CREATE INDEX link_caller ON link (tree, caller);
CREATE TABLE site (tree INTEGER, name TEXT, caller INTEGER, line INTEGER,
                   PRIMARY KEY (tree, name, caller, line)) WITHOUT ROWID;
CREATE INDEX site_caller ON site (tree, caller);
CREATE TABLE dep (target INTEGER, name TEXT, file INTEGER, PRIMARY KEY (target, name, file)) WITHOUT ROWID;
CREATE INDEX dep_file ON dep (file);
CREATE TABLE recorded (id INTEGER PRIMARY KEY, tree INTEGER, path TEXT, hash TEXT, text BLOB, outside TEXT,
                       UNIQUE (tree, path));
CREATE TABLE test_covers (file INTEGER, test INTEGER, lines TEXT, PRIMARY KEY (file, test)) WITHOUT ROWID;
"""


class Store:
    """One open store."""

    def __init__(self, path: Path) -> None:
        """Raises: UsageError `world.store` where no such file can be made."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.db = self._opened()
        except (OSError, sqlite3.Error) as error:
            raise _trouble(path, error) from error
        self._names: dict[str, int] = {}

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    def _opened(self) -> sqlite3.Connection:
        try:
            db = self._connected()
            if db.execute("PRAGMA user_version").fetchone()[0] == VERSION * 1000 + EXTRACTOR:
                return db
            fresh = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            fresh = False
        if not fresh:
            for end in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + end).unlink(missing_ok=True)
            db = self._connected()
        db.execute("BEGIN EXCLUSIVE")
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION * 1000 + EXTRACTOR}")
        db.execute("COMMIT")
        return db

    def _connected(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -65536")
        return db

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction; another process waits for it. Raises: UsageError `world.store`, `world.busy`."""
        try:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.db.execute("ROLLBACK")
                self._names.clear()
                raise
            self.db.execute("COMMIT")
        except sqlite3.Error as error:
            raise _trouble(self.path, error) from error

    def rows(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a question. Raises: UsageError `world.store`."""
        try:
            return self.db.execute(sql, tuple(values)).fetchall()
        except sqlite3.Error as error:
            raise _trouble(self.path, error) from error

    def tree(self, root: Path) -> int:
        """The id of an indexed folder, 0 where it was never indexed."""
        found = self.rows("SELECT id FROM tree WHERE root = ?", [str(root)])
        return int(found[0][0]) if found else 0

    def numbers(self, texts: Iterable[str]) -> dict[str, int]:
        """The numbers of symbols' ids; those that have none get one. Other ids may be in the answer."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._names]
        self.db.executemany("INSERT OR IGNORE INTO name (text) VALUES (?)", [(text,) for text in missing])
        for part in parts(missing):
            self._names.update(
                self.db.execute(f"SELECT text, id FROM name WHERE text IN ({marks(part)})", part).fetchall()
            )
        return self._names


def parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """As many values at a time as one question may hold."""
    for at in range(0, len(values), _CHUNK):
        yield values[at : at + _CHUNK]


def marks(part: Sequence[Any]) -> str:
    """A `?` for each value."""
    return ",".join("?" * len(part))


def _trouble(path: Path, error: Exception) -> UsageError:
    if "locked" in str(error) or "busy" in str(error):
        return UsageError("world.busy", f"{path} is being written by another process", "try again")
    return UsageError("world.store", f"{path}: {error}", "check its rights and the space; it may be deleted")
