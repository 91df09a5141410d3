"""The calls of the product at which the baton may be handed on: those of the disk and of the database.

`install()` puts a point before each of them, for simulated threads alone. What a fault does to a call is
asked of `Faulty`, which `simulate.faults` fills in. A database that is locked is asked again in virtual time,
so SQLite itself never waits.
"""

from __future__ import annotations

import builtins
import io
import os
import sqlite3
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from django.db.backends.sqlite3 import base

from simulate.threads import Here, mine
from spakweb.ground.database.engines.sqlite3.base import DatabaseWrapper

WRITES = ("write", "pwrite", "fsync", "fdatasync", "rename", "replace", "unlink", "remove", "mkdir", "rmdir",
          "link", "symlink", "ftruncate")  # fmt: skip
BUSY_S = 0.05
"""How often a database that is locked is asked again."""


class Faulty:
    """What faults do to the calls of a simulated thread; each may raise."""

    disk: Callable[[str, tuple[Any, ...]], None] = staticmethod(lambda name, args: None)
    statvfs: Callable[[Any], Any] = staticmethod(lambda found: found)
    sql: Callable[[str, Any], None] = staticmethod(lambda what, raw: None)
    committed: Callable[[Any], None] = staticmethod(lambda raw: None)
    """Called after each commit."""


def install() -> None:
    """Once in a process; without a simulation the calls are as ever."""
    for name in (*WRITES, "open", "scandir"):
        setattr(os, name, _disk(name, getattr(os, name)))
    opened = _disk("open", builtins.open)
    builtins.open = io.open = opened
    real = os.statvfs

    def statvfs(path: Any) -> Any:
        found = real(path)
        if not mine():
            return found
        return Faulty.statvfs(found)

    os.statvfs = statvfs
    cursor = base.SQLiteCursorWrapper
    cursor.execute = _statement(cursor.execute)
    cursor.executemany = _statement(cursor.executemany)
    DatabaseWrapper._commit = _commit
    DatabaseWrapper.get_new_connection = _connecting(DatabaseWrapper.get_new_connection)


def roomless(found: Any) -> Any:
    """What `statvfs` gives of a disk that is full."""
    names = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_files", "f_ffree", "f_favail")
    return SimpleNamespace(**{name: getattr(found, name) for name in names}, f_bavail=0)


def _disk(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **more: Any) -> Any:
        if mine():
            Here.scheduler.point("disk", name)
            Faulty.disk(name, args)
        return real(*args, **more)

    return call


def _statement(real: Callable[..., Any]) -> Callable[..., Any]:
    def execute(self: Any, query: str, *given: Any) -> Any:
        if not mine():
            return real(self, query, *given)
        task = Here.scheduler.current
        assert task is not None
        if query.startswith("PRAGMA busy_timeout"):
            task.busy_s = int(query.rpartition("=")[2]) / 1000
            return None
        raw = self.connection
        task.process.raws[id(raw)] = raw, task
        Here.scheduler.point("sql", query[:6])
        Faulty.sql(query, raw)
        ends = Here.scheduler.now + task.busy_s
        while True:
            try:
                return real(self, query, *given)
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or Here.scheduler.now >= ends:
                    raise
            Here.scheduler.sleep(BUSY_S)
            Faulty.sql(query, raw)

    return execute


def _commit(self: Any) -> None:
    raw = self.connection
    if raw is None:
        return
    with self.wrap_database_errors:
        if mine():
            try:
                Here.scheduler.point("sql", "COMMIT")
                Faulty.sql("COMMIT", raw)
            except BaseException:  # else Django's return to autocommit would commit
                if raw.in_transaction:
                    raw.rollback()
                raise
        raw.commit()
        if mine():
            Faulty.committed(raw)


def _connecting(real: Callable[..., Any]) -> Callable[..., Any]:
    def connect(self: Any, parameters: Any) -> Any:
        if not mine():
            return real(self, parameters)
        Here.scheduler.point("sql", "connect")
        Faulty.sql("connect", None)
        raw = real(self, parameters)
        task = Here.scheduler.current
        assert task is not None
        task.process.raws[id(raw)] = raw, task
        task.busy_s = 20.0
        return raw

    return connect
