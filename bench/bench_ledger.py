"""What a durable step costs: our ledger beside the least that any store must pay, in the same minutes.

`rows()` gives the figures; run as a program, it prints them. Each store writes the same steps of three
records (act, route, permit) of about 100 bytes of output, each step made durable by itself; the floors chain
SHA-256 hashes too. Fsyncs are counted by standing in for os.fsync and os.fdatasync (SQLite's cannot be seen
from here; its one per commit is what WAL with synchronous=FULL does). CPU time, not wall time.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import statistics
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench.sizes import sized
from spak.ledger import FileLedgers
from spak.records import Record
from spak.workspace import Workspace

STEPS = sized(1000, 50)
ROUNDS = sized(3, 1)
SIZES = sized((100, 1000, 5000), (20, 50))


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    ours, raw, sqlite = _interleaved()
    cpu, sync, size = (statistics.median(item[n] for item in ours) for n in range(3))
    floor = statistics.median(item[0] for item in raw)
    lite = statistics.median(item[0] for item in sqlite)
    shared = _ours(STEPS, flush_every=200)
    bytes_by_length = {steps: _ours(steps, flush_every=200)[2] for steps in SIZES}
    growth = bytes_by_length[SIZES[-1]] / bytes_by_length[SIZES[0]]
    effect = _workspace_step()
    return [
        _row("durable step, CPU beyond raw append + fdatasync", cpu - floor, floor, "ms", "<= 0.5"),
        _row("durable step, CPU beyond a SQLite WAL FULL insert", cpu - lite, lite, "ms", "<= 0.5"),
        _row("durable step, ledger fsyncs", sync, 1.0, "per step", "<= 1.1"),
        _row("pure steps that share, ledger fsyncs", shared[1], 1.0, "per step", "<= 0.1"),
        _row("durable step, bytes", size, statistics.median(item[2] for item in raw), "B", "<= 1024"),
        _row(f"bytes per step, {SIZES[-1]:,} steps against {SIZES[0]}", growth, 1.0, "x", "<= 1.05"),
        _row("writing step, two files: workspace fsyncs (counted apart)", effect[1], 1.0, "per step", ""),
        _row("writing step, two files of 52: workspace CPU", effect[0], floor, "ms", ""),
    ]


def _row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 3), "floor": round(floor, 3), "unit": unit, "aim": aim}


_Figures = tuple[float, float, float]
"""CPU ms, fsyncs and bytes per step."""


def _interleaved() -> tuple[list[_Figures], list[_Figures], list[_Figures]]:
    ours, raw, sqlite = [], [], []
    for _ in range(ROUNDS):
        ours.append(_ours(STEPS))
        raw.append(_raw(STEPS))
        sqlite.append(_sqlite(STEPS))
    return ours, raw, sqlite


def _records(number: int) -> list[Record]:
    name = urlsafe_b64encode(hashlib.sha256(number.to_bytes(8, "big")).digest())[:43].decode()
    at = 1_700_000_000_000 + number
    output = f"{number:06d} " + "compiled, no warnings; " * 4
    act = {"exit": 0, "key": name, "of": name, "out": output[:100], "outcome": "exited"}
    route = {"key": name, "signal": "success", "to": "s3"}
    permit = {"act": "run", "allow": True, "args": {"cmd": ["tool", str(number)]}}
    return [
        Record("act", "proposal", act, "Main", "s2", number, at=at, side={"ms": 6}),
        Record("route", "commit", route, "Main", "s2", number, at=at),
        Record("permit", "commit", permit, "Main", "s3", number + 1, at=at),
    ]


def _ours(steps: int, flush_every: int = 1) -> _Figures:
    prepared = [_records(number) for number in range(steps)]
    with tempfile.TemporaryDirectory() as place, _counted() as syncs:
        ledger = FileLedgers(Path(place)).create("r1", Record("genesis", "proposal", {"rules": {}}))
        path = Path(place, "r1", "trace.jsonl")
        before = path.stat().st_size
        syncs.clear()

        def work() -> None:
            for number, records in enumerate(prepared):
                ledger.append(records)
                if number % flush_every == flush_every - 1:
                    ledger.flush()

        cpu = _cpu_ms(work) / steps
        figures = (cpu, len(syncs) / steps, (path.stat().st_size - before) / steps)
        ledger.close()
    return figures


def _raw(steps: int) -> _Figures:
    """Append one hashed line of the same content and sync it: no records, no checks, no way to read it."""
    lines = [repr(_records(number)).encode()[:700] for number in range(steps)]
    with tempfile.TemporaryDirectory() as place, _counted() as syncs:
        fd = os.open(Path(place, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def work() -> None:
            head = b""
            for line in lines:
                head = hashlib.sha256(head + line).digest()
                os.write(fd, urlsafe_b64encode(head) + line + b"\n")
                os.fdatasync(fd)

        cpu = _cpu_ms(work) / steps
        figures = (cpu, len(syncs) / steps, os.fstat(fd).st_size / steps)
        os.close(fd)
    return figures


def _sqlite(steps: int) -> _Figures:
    lines = [repr(_records(number)).encode()[:700] for number in range(steps)]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "log.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as base:
            base.execute("PRAGMA journal_mode=WAL")
            base.execute("PRAGMA synchronous=FULL")
            base.execute(
                "CREATE TABLE record (seq INTEGER PRIMARY KEY, hash BLOB NOT NULL, line BLOB NOT NULL)"
            )

            def work() -> None:
                head = b""
                for number, line in enumerate(lines):
                    head = hashlib.sha256(head + line).digest()
                    base.execute("BEGIN IMMEDIATE")
                    base.execute("INSERT INTO record VALUES (?, ?, ?)", (number, head, line))
                    base.execute("COMMIT")

            cpu = _cpu_ms(work) / steps
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = path.stat().st_size / steps
    return cpu, 1.0, size


def _workspace_step(steps: int = 200) -> tuple[float, float]:
    """CPU ms and workspace fsyncs of begin, commit and settle where a step writes two small files."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "ws")
        space = Workspace(folder, Path(place, "store"))
        space.snapshot()
        for number in range(50):
            (folder / f"kept-{number}").write_bytes(b"unchanged")
        space.begin("first")
        space.commit()
        space.settle()
        before, spent = space.fsyncs, 0.0
        for number in range(steps):
            spent += _cpu_ms(lambda name=f"e{number}": space.begin(name))  # type: ignore[misc]
            (folder / "kernel.c").write_bytes(b"int n = %d;\n" % number * 100)
            (folder / "kernel.bin").write_bytes(number.to_bytes(8, "big") * 1000)
            spent += _cpu_ms(space.commit)
            spent += _cpu_ms(space.settle)
        return spent / steps, (space.fsyncs - before) / steps


def _cpu_ms(work: Callable[[], object]) -> float:
    started = time.process_time_ns()
    work()
    return (time.process_time_ns() - started) / 1e6


@contextmanager
def _counted() -> Iterator[list[str]]:
    """Stand in for the two calls and note each of them."""
    full, data = os.fsync, os.fdatasync
    calls: list[str] = []

    def fsync(fd: int) -> None:
        calls.append("fsync")
        full(fd)

    def fdatasync(fd: int) -> None:
        calls.append("fdatasync")
        data(fd)

    os.fsync, os.fdatasync = fsync, fdatasync  # type: ignore[assignment]
    try:
        yield calls
    finally:
        os.fsync, os.fdatasync = full, data  # type: ignore[assignment]


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row['name']:<52} {row['ours']:>10} {row['unit']:<9} floor {row['floor']:>8}  aim {row['aim']}"
        )
