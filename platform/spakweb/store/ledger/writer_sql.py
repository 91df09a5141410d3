"""The statements of the group commit, in the words of SQLite and of PostgreSQL.

Takes a cursor of `writing` and rows as tuples; many rows are one call. SQLite takes them one after the other
(executemany), PostgreSQL as arrays of columns in one statement (unnest). Never executemany there: psycopg
makes a pipeline of it, and a process that is stopped inside a pipeline keeps its locks for ever (none of the
server's limits runs between two statements of one). What may be written writer.py says; `append` compares
fences and counts, so that PostgreSQL can do it where it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection

from spakweb.ground.unsafe_text import plain_json
from spakweb.store.jobs.leases import MOST_LEASE
from spakweb.store.runs.models import ENDED, Run, RunBlob, RunRecord, RunSnapshot

RecordRow = tuple[int, int, str, str, str, str, int, bytes]
"""run, seq, kind, authority, task, step, at, line."""
BlobRow = tuple[int, str, int]
"""run, digest, size."""
SnapshotRow = tuple[int, int, str, bytes]
"""run, count, head, data."""


class Taking(NamedTuple):
    """A lease that a process takes of a run without records."""

    holder: str
    choosing: str
    """What the process called itself when it chose the run."""
    seconds: float
    mode: str
    """With `takes_in`, the other specs, what the run begins with."""
    takes_in: Any


class Head(NamedTuple):
    """Where the ledger of a run is moved to."""

    run: int
    fence: int
    before: int
    """How many records the run must have, and how many it has then."""
    records: int
    head: str


class Held(NamedTuple):
    """A run whose row is locked."""

    fence: int
    records: int
    head: str
    wanted: str
    """What people want of it."""


PROJECTED = ("state", "task", "reason", "started_at", "ended_at", "summary", "projected")

_RUNS = Run._meta.db_table
_RECORD = {
    "run_id": "bigint", "seq": "integer", "kind": "text", "authority": "text", "task": "text", "step": "text",
    "at": "bigint", "line": "bytea",
}  # fmt: skip
_SNAPSHOT = {"run_id": "bigint", "count": "integer", "head": "text", "data": "bytea"}
_BLOB = {"run_id": "bigint", "digest": "text", "size": "bigint"}
_HEAD = {"id": "bigint", "fence": "bigint", "before": "integer", "count": "integer", "head": "text"}
_APPENDED = (
    f"WITH held AS (SELECT id, fence, count, head, wanted FROM {_RUNS} WHERE id = ANY(%s) ORDER BY id "
    f"FOR NO KEY UPDATE), moved AS (UPDATE {_RUNS} AS r SET count = v.count, head = v.head "
    f"FROM unnest({', '.join(f'%s::{kind}[]' for kind in _HEAD.values())}) AS v({', '.join(_HEAD)}) "
    "JOIN held AS h ON h.id = v.id AND h.fence = v.fence AND h.count = v.before "
    "WHERE r.id = v.id RETURNING r.id), "
    f"added AS (INSERT INTO {RunRecord._meta.db_table} ({', '.join(_RECORD)}) SELECT n.* "
    f"FROM unnest({', '.join(f'%s::{kind}[]' for kind in _RECORD.values())}) AS n({', '.join(_RECORD)}) "
    "JOIN moved AS m ON m.id = n.run_id) "
    "SELECT h.id, h.fence, h.count, h.head, h.wanted, m.id FROM held AS h LEFT JOIN moved AS m USING (id)"
)
"""Locks rows in order, compares, moves and inserts. A row that another transaction changed while this one
waited for it is compared and moved as it is by then."""
_SHOWN = (
    f"UPDATE {_RUNS} SET {', '.join(f'{name} = %s' for name in PROJECTED)}, "
    "wanted = CASE WHEN wanted = %s OR %s THEN '' ELSE wanted END "
    "WHERE id = %s AND fence = %s AND count >= %s"
)
"""Not of records that the database did not take: the run would read ended, and nobody would go on with it."""
_SHOWN_TYPES = (
    "text", "text", "text", "timestamptz", "timestamptz", "jsonb", "integer", "text", "boolean", "bigint",
    "bigint", "integer",
)  # fmt: skip
_SHOWN_TOGETHER = (
    f"UPDATE {_RUNS} AS r SET {', '.join(f'{name} = v.{name}' for name in PROJECTED)}, "
    "wanted = CASE WHEN r.wanted = v.done OR v.ended THEN '' ELSE r.wanted END "
    f"FROM unnest({', '.join(f'%s::{kind}[]' for kind in _SHOWN_TYPES)}) "
    f"AS v({', '.join(PROJECTED)}, done, ended, id, fence, least) "
    "WHERE r.id = v.id AND r.fence = v.fence AND r.count >= v.least"
)
_TAKEN = (
    f"UPDATE {_RUNS} SET fence = fence + 1, holder = %s, lease_until = %s, left_at = 0, mode = %s, "
    "takes_in = %s "
    "WHERE id = %s AND fence = %s AND count = 0 AND (holder IN ('', %s) OR lease_until IS NULL "
    f"OR lease_until < %s OR lease_until > %s) AND state NOT IN ({', '.join(['%s'] * len(ENDED))})"
)
_RENEWED = f"UPDATE {_RUNS} SET holder = %s, lease_until = %s WHERE id = %s AND fence = %s"
_RENEWED_TOGETHER = (
    f"UPDATE {_RUNS} AS r SET holder = v.holder, lease_until = v.until "
    "FROM unnest(%s::text[], %s::timestamptz[], %s::bigint[], %s::bigint[]) AS v(holder, until, id, fence) "
    "WHERE r.id = v.id AND r.fence = v.fence"
)
_FREED = f"UPDATE {_RUNS} SET holder = '', lease_until = NULL, left_at = NULL WHERE id = %s AND fence = %s"
_FREED_TOGETHER = (
    f"UPDATE {_RUNS} AS r SET holder = '', lease_until = NULL, left_at = NULL "
    "FROM unnest(%s::bigint[], %s::bigint[]) AS v(id, fence) WHERE r.id = v.id AND r.fence = v.fence"
)


def writing() -> Any:
    """A cursor for the statements below. On PostgreSQL values go beside a statement, in binary: Django's own
    cursor writes them into it as text, two fifths of the writer's CPU."""
    if connection.vendor != "postgresql":
        return connection.cursor()
    import psycopg

    connection.ensure_connection()
    return connection.make_cursor(psycopg.Cursor(connection.connection))


def append(
    cursor: Any, runs: Sequence[int], heads: Sequence[Head], rows: Sequence[RecordRow]
) -> tuple[dict[int, Held], set[tuple[int, int]]]:
    """Move heads whose runs still have that fence and count, and insert the rows of those runs, of no others.
    Gives what `held` gives for `runs`, all that the transaction changes, and (run, fence) of what is written.
    That includes a run that has the new count and head already, under its fence: they were written before by
    a statement whose answer was lost. On PostgreSQL it is one statement, and no round trip for each part."""
    if heads and connection.vendor == "postgresql":
        cursor.execute(_APPENDED, [list(runs), *_columns(heads), *_columns(rows)])
        found = cursor.fetchall()
        known: dict[int, Held] = {run: Held(*values) for run, *values, _ in found}
        moved = {run for *_, run in found if run is not None}
    else:
        known = held(cursor, runs) if runs else {}
        moving = [
            (count, head, run)
            for run, fence, before, count, head in heads
            if known.get(run, ())[:2] == (fence, before)
        ]
        moved = {run for *_, run in moving}
        if moving:
            cursor.executemany(f"UPDATE {_RUNS} SET count = %s, head = %s WHERE id = %s", moving)
            add_records(cursor, [row for row in rows if row[0] in moved])
    return known, {
        (run, fence)
        for run, fence, _, count, head in heads
        if run in moved or known.get(run, ())[:3] == (fence, count, head)
    }


def held(cursor: Any, runs: Sequence[int]) -> dict[int, Held]:
    """Fence, count and head of runs, and what people want of them, which nobody else changes until the
    transaction ends. Who locks more than one run locks in the order of their ids, or two could wait for each
    other."""
    found = f"SELECT id, fence, count, head, wanted FROM {_RUNS} WHERE id"
    if connection.vendor == "postgresql":
        cursor.execute(f"{found} = ANY(%s) ORDER BY id FOR NO KEY UPDATE", [list(runs)])
    else:
        marks = ", ".join(["%s"] * len(runs))
        cursor.execute(f"{found} IN ({marks})", runs)
    return {run: Held(*values) for run, *values in cursor.fetchall()}


def begun(cursor: Any, run: int, fence: int, count: int, head: str, holder: str) -> bool:
    """Whether a run has exactly these values."""
    cursor.execute(
        f"SELECT 1 FROM {_RUNS} WHERE id = %s AND fence = %s AND count = %s AND head = %s AND holder = %s",
        [run, fence, count, head, holder],
    )
    return cursor.fetchone() is not None


def fences(cursor: Any, runs: Sequence[int]) -> dict[int, int]:
    """The newest fence of runs, as committed; nothing is locked."""
    marks = ", ".join(["%s"] * len(runs))
    cursor.execute(f"SELECT id, fence FROM {_RUNS} WHERE id IN ({marks})", list(runs))
    return dict(cursor.fetchall())


def add_records(cursor: Any, rows: Sequence[RecordRow]) -> None:
    """Insert rows of records."""
    _insert(cursor, RunRecord._meta.db_table, _RECORD, rows)


def add_blobs(cursor: Any, rows: Sequence[BlobRow]) -> None:
    """What a run has already stays."""
    _insert(cursor, RunBlob._meta.db_table, _BLOB, rows, " ON CONFLICT DO NOTHING")


def keep(cursor: Any, rows: Sequence[SnapshotRow]) -> None:
    """Put snapshots in place of those that their runs have."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in ("count", "head", "data"))
    more = f" ON CONFLICT (run_id) DO UPDATE SET {changed}"
    _insert(cursor, RunSnapshot._meta.db_table, _SNAPSHOT, rows, more)


def drop(cursor: Any, runs: Sequence[int]) -> None:
    """Remove the snapshots of runs."""
    marks = ", ".join(["%s"] * len(runs))
    cursor.execute(f"DELETE FROM {RunSnapshot._meta.db_table} WHERE run_id IN ({marks})", list(runs))


def show(cursor: Any, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write projections of runs that are still held, and whose records are there: rows of `shown`."""
    _change(cursor, _SHOWN, _SHOWN_TOGETHER, list(rows))


def take(cursor: Any, now: datetime, run: int, fence: int, taking: Taking) -> bool:
    """Take the lease of a run that has no records, if it is free and nobody took it since `fence` became its
    next one; whether it was taken."""
    others = Run._meta.get_field("takes_in").get_db_prep_save(taking.takes_in, connection)
    until = Run._meta.get_field("lease_until").get_db_prep_save
    ends, begins, most = (
        until(time, connection) for time in (now + timedelta(seconds=taking.seconds), now, now + MOST_LEASE)
    )
    values = [taking.holder, ends, taking.mode, others, run, fence - 1, taking.choosing, begins, most]
    cursor.execute(_TAKEN, [*values, *sorted(ENDED)])
    return bool(cursor.rowcount == 1)


def renew(cursor: Any, now: datetime, rows: Iterable[tuple[int, int, str, float]]) -> None:
    """Hold leases that are still held for longer: (run, fence, holder, seconds)."""
    until = Run._meta.get_field("lease_until").get_db_prep_save
    changed = [
        (holder, until(now + timedelta(seconds=more), connection), run, fence)
        for run, fence, holder, more in rows
    ]
    _change(cursor, _RENEWED, _RENEWED_TOGETHER, changed)


def free(cursor: Any, rows: Iterable[tuple[int, int]]) -> None:
    """Give leases back that are still held: (run, fence)."""
    _change(cursor, _FREED, _FREED_TOGETHER, list(rows))


def shown(row: Run, fence: int, done: str) -> tuple[Any, ...]:
    """The projected columns of a row as the database takes them; `done` is the request that was fulfilled. Of
    one that ended nothing is wanted any more."""
    values = (
        _document(getattr(row, name))
        if name == "summary"
        else _FIELDS[name].get_db_prep_save(getattr(row, name), connection)
        for name in PROJECTED
    )
    return (*values, done, row.ended, row.pk, fence, row.projected)


def _document(value: Any) -> Any:
    """A JSON value as the database takes it. Django's field writes it several times as slowly."""
    text = plain_json(value)
    if connection.vendor != "postgresql":
        return text.decode()
    from psycopg.types.json import Jsonb

    return Jsonb(None, dumps=lambda ignored: text)


_FIELDS: dict[str, Any] = {name: Run._meta.get_field(name) for name in PROJECTED}


def _change(cursor: Any, each: str, together: str, rows: list[tuple[Any, ...]]) -> None:
    if connection.vendor == "postgresql":
        cursor.execute(together, _columns(rows))
    else:
        cursor.executemany(each, rows)


def _insert(
    cursor: Any, table: str, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]], more: str = ""
) -> None:
    names = ", ".join(columns)
    if connection.vendor == "postgresql":
        arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
        cursor.execute(f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}){more}", _columns(rows))
    else:
        marks = ", ".join(["%s"] * len(columns))
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks}){more}", rows)


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
