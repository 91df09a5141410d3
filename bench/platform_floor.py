"""The least that a group commit costs: nothing but the database's driver, threads and a queue.

Threads each chain three lines of 350 bytes with SHA-256 per step, hand them to one writer and wait; the
writer takes what is there, inserts it into a table of its own (run, seq, hash, line; no other index, no
trigger, no foreign key) in one transaction and commits. SQLite as the platform opens it (WAL, FULL),
PostgreSQL with its default, synchronous_commit=on. Gives steps a second and CPU per step.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

LINES, BYTES, MOST = 3, 350, 500

Row = tuple[int, int, str, bytes]
Item = tuple[list[Row], "Future[None]"]


def sqlite(file: Path) -> tuple[Callable[[], Any], Callable[[Any, list[Row]], None]]:
    import sqlite3

    def connect() -> Any:
        base = sqlite3.connect(file, isolation_level=None)
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA synchronous=FULL")
        base.execute("CREATE TABLE IF NOT EXISTS bare (run, seq, hash, line, PRIMARY KEY (run, seq))")
        base.execute("DELETE FROM bare")
        return base

    def insert(base: Any, rows: list[Row]) -> None:
        base.execute("BEGIN IMMEDIATE")
        base.executemany("INSERT INTO bare VALUES (?, ?, ?, ?)", rows)
        base.execute("COMMIT")

    return connect, insert


def postgres(address: str) -> tuple[Callable[[], Any], Callable[[Any, list[Row]], None]]:
    import psycopg

    def connect() -> Any:
        base = psycopg.connect(address, autocommit=True)
        base.execute(
            "CREATE TABLE IF NOT EXISTS bare "
            "(run bigint, seq integer, hash text, line bytea, PRIMARY KEY (run, seq))"
        )
        base.execute("TRUNCATE bare")
        return base

    def insert(base: Any, rows: list[Row]) -> None:
        columns = [list(column) for column in zip(*rows, strict=True)]
        base.execute(
            "INSERT INTO bare SELECT * FROM unnest(%s::bigint[], %s::integer[], %s::text[], %b::bytea[])",
            columns,
        )

    return connect, insert


def floor(
    connect: Callable[[], Any], insert: Callable[[Any, list[Row]], None], runs: int, steps: int
) -> tuple[float, float]:
    """Steps a second, and milliseconds of CPU in this process for each."""
    queue: SimpleQueue[Item | None] = SimpleQueue()
    failed: list[BaseException] = []

    def write() -> None:
        base = connect()
        opened.set()
        going = True
        while going:
            taken = [queue.get()]
            try:
                while len(taken) < MOST:
                    taken.append(queue.get_nowait())
            except Empty:
                pass
            going = None not in taken
            items = [item for item in taken if item is not None]
            if items:
                insert(base, [row for rows, _ in items for row in rows])
                for _, done in items:
                    done.set_result(None)
        base.close()

    def one(run: int) -> None:
        try:
            head, text = "", os.urandom(BYTES - 44)
            for step in range(steps):
                rows = []
                for line in range(LINES):
                    digest = hashlib.sha256(head.encode() + text)
                    head = digest.hexdigest()[:43]
                    rows.append((run, LINES * step + line, head, head.encode() + text))
                done: Future[None] = Future()
                queue.put((rows, done))
                done.result()
        except BaseException as error:
            failed.append(error)
            raise

    opened = threading.Event()
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    opened.wait(30)
    threads = [threading.Thread(target=one, args=(run,)) for run in range(runs)]
    cpu, began = time.process_time(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, spent = time.perf_counter() - began, time.process_time() - cpu
    queue.put(None)
    writer.join()
    assert not failed, failed[0]
    return runs * steps / took, 1000 * spent / (runs * steps)
