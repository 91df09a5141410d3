"""Runs on the platform: 200 at once beside the bare group commit, and how soon a watcher sees a record.

`steps`: 200 runs of 20 steps in one process, each step made durable by itself (three records), with leases,
projections and news as a worker has them; the tool only answers. Floor: platform_floor.py on the same
database, before each round; the best round of each. `worker`: two processes share the same. Cost per step by
the length of a run is CPU time. Streams are in platform_stream.py; a killed worker in platform_recovery.py,
with the longest that is promised for a floor. Databases (PostgreSQL on a Unix socket) and Redis are made for
the run and thrown away; what is not installed is said. bench_peers.py compares with other systems; `whole`
and `begun` are its parts.

    python -m bench.bench_platform PART     one of PARTS, in a process of its own
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench import platform_crowd as crowds
from bench import platform_recovery as recovering
from bench import platform_stream as streams
from bench.sizes import VARIABLE, sized

RUNS, STEPS, ROUNDS = sized(200, 8), sized(20, 3), sized(3, 1)
WORKERS = 2
THREADS = sized(32, 4)
"""Of the floor, and of the systems that bench_peers compares."""
DATABASE = "spak.sqlite3"
LENGTHS = sized((100, 1000, 5000), (10, 30))
ROOT = Path(__file__).resolve().parents[1]
SPEC = """
AGENT Bench LEVEL 5 {{
  CONFIG {{ BUDGET {{ steps: {steps} elapsed_s: 100000 }} }}
  START -> t
  TASK t {{ step a: tool.costly {{ text: "a" }} NEXT {{ success -> t }} }}
}}
"""


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        folder = Path(name)
        found = _steps_rows("SQLite", folder / "lite", "", 1000)
        found += _latency_rows("one socket, embedded", part("socket", folder / "socket"), 100)
        found += _recovery_rows(part("recovery", folder / "recovery"))
        with server("Postgres", folder / "pg") as running:
            if running:
                local = f"postgresql://spak@{quote(str(running.folder), safe='')}:{running.port}/postgres"
                found += _steps_rows("PostgreSQL", folder / "pg-data", local, 1500)
            else:
                found += [absent("PostgreSQL", f"{RUNS} runs of {STEPS} steps", ">= 1500")]
        with server("Redis", folder / "redis") as running:
            if running:
                found += _redis_rows(folder, {"SPAK_WEB_REDIS_URL": running.url})
            else:
                found += [absent("Redis", f"{streams.CLIENTS:,} SSE clients and sockets", "<= 300")]
    return found


def _steps_rows(name: str, folder: Path, address: str, least: int) -> list[dict[str, Any]]:
    more = {"SPAK_WEB_DATABASE_URL": address} if address else {}
    seen = part("steps", folder, **more)
    ours, floor = seen["ours"], seen["floor"]
    title = f"{name}: {RUNS} runs of {STEPS} steps"
    found = [
        row(f"{title}, beside the bare group commit", ours, floor, "steps/s", ">= 0.4 of floor"),
        row(f"{title}, at least", ours, floor, "steps/s", f">= {least}"),
    ]
    if address:
        both = _workers(folder, more)
        found.append(row(f"{title}, by {WORKERS} workers", both, floor, "steps/s", f">= {least}"))
    return [
        *found,
        row(f"{name}: steps of one transaction", seen["batch"], 1, "steps", ""),
        row(f"{name}: CPU per step, {RUNS} runs", seen["each_ms"], seen["bare_ms"], "ms", ""),
        *(
            row(f"{name}: CPU per step, run of {length:,}", seen["cpu_ms"][str(length)], 0, "ms", "")
            for length in LENGTHS
        ),
        row(
            f"{name}: CPU per step, {LENGTHS[-1]:,} over {LENGTHS[0]}",
            seen["cpu_ms"][str(LENGTHS[-1])] / seen["cpu_ms"][str(LENGTHS[0])], 1.0, "ratio", "<= 1.25",
        ),
    ]  # fmt: skip


def _workers(folder: Path, more: dict[str, str]) -> float:
    """Steps a second of the same runs, shared by processes that have a group commit each."""
    words = [sys.executable, "-m", "bench.bench_platform", "worker"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": ROOT, "text": True}
    parts = [
        subprocess.Popen([*words, str(number)], **pipes, env=_environment(folder, more))
        for number in range(WORKERS)
    ]
    for part in parts:
        assert part.stdout is not None and part.stdout.readline() == "ready\n"
    for part in parts:
        assert part.stdin is not None
        part.stdin.write("go\n")
        part.stdin.flush()
    times: list[list[float]] = [json.loads(part.communicate()[0]) for part in parts]
    return RUNS * STEPS / (max(end for _, end in times) - min(begin for begin, _ in times))


def _redis_rows(folder: Path, more: dict[str, str]) -> list[dict[str, Any]]:
    found = _latency_rows(f"{streams.CLIENTS:,} SSE clients, Redis", part("sse", folder / "sse", **more), 300)
    bare = part("bare", folder / "bare", **more)
    ours = part("sockets", folder / "sockets", **more)
    cuts = part("cuts", folder / "cuts", **more)
    sockets = f"{streams.CLIENTS:,} sockets, Redis"
    return [
        *found,
        row(
            f"{sockets}: commit to receipt, p50, beside bare Channels",
            ours["p50"],
            bare["p50"],
            "ms",
            "<= 1.2 of floor",
        ),
        row(f"{sockets}: records not received", ours["lost"], bare["lost"], "records", "<= 0"),
        row(
            f"{streams.CUT} clients (SSE, sockets) cut off {streams.CUTS} times each: cuts",
            cuts["cuts"],
            0,
            "cuts",
            f">= {streams.CUT * streams.CUTS}",
        ),
        row("the same: records lost, twice or out of order", cuts["wrong"], 0, "records", "<= 0"),
    ]


def _latency_rows(name: str, seen: dict[str, Any], most: int) -> list[dict[str, Any]]:
    return [
        row(f"{name}: commit to receipt, p50", seen["p50"], 0, "ms", f"<= {most}"),
        row(f"{name}: commit to receipt, p95", seen["p95"], 0, "ms", ""),
        row(f"{name}: records not received", seen["lost"], 0, "records", "<= 0"),
    ]


def _recovery_rows(seen: dict[str, Any]) -> list[dict[str, Any]]:
    name = f"embedded: a run goes on after its worker was killed, {recovering.KILLS} times"
    most = recovering.AIM_S
    return [
        row(f"{name}, slowest", seen["slowest"], most, "s", f"<= {most:g}"),
        row(f"{name}, mean", seen["mean"], most, "s", ""),
    ]


def row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    """A floor of 0 stands for none."""
    beside = round(floor, 3) if floor else None
    return {"name": name, "ours": round(ours, 3), "floor": beside, "unit": unit, "aim": aim}


def absent(package: str, name: str, aim: str) -> dict[str, Any]:
    """The row of what could not be measured."""
    name = f"{package} is not installed: {name}"
    return {"name": name, "ours": None, "floor": None, "unit": "", "aim": aim}


def part(name: str, data: Path, *, module: str = "bench.bench_platform", **more: str) -> dict[str, Any]:
    """The figures of one part, in a process of its own with that data folder and those settings."""
    if "SPAK_WEB_DATABASE_URL" not in more and not data.exists():
        data.mkdir(parents=True)
        (data / DATABASE).write_bytes(_empty_database())
    done = subprocess.run(
        [sys.executable, "-m", module, name], cwd=ROOT, stdout=subprocess.PIPE, check=True,
        env=_environment(data, more),
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return found


@cache
def _empty_database() -> bytes:
    """SQLite's file with its tables: making them takes longer than some parts."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        words = [sys.executable, "manage.py", "migrate", "-v", "0"]
        subprocess.run(words, cwd=ROOT, check=True, env=_environment(Path(name), {}))
        return (Path(name) / DATABASE).read_bytes()


def _environment(data: Path, more: dict[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key == VARIABLE or not key.startswith("SPAK_")}
    return {**kept, "SPAK_WEB_DATA": str(data), "DJANGO_SETTINGS_MODULE": "spakweb.settings", **more}


# ---- steps


def worker() -> list[float]:
    """One of several: begins its share of the runs, waits for the word, and says when it began and ended."""
    import django

    django.setup()
    from spakweb.ground.teams.models import Team

    number, team = int(sys.argv[2]), Team.objects.get(slug="bench")
    work = [_going(_begun(team, f"worker{number}-{run}", STEPS)) for run in range(RUNS // WORKERS)]
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    _together(work)
    return [began, time.monotonic()]


def steps() -> dict[str, Any]:
    team = team_of_bench()
    from spakweb.store.ledger import writer

    floors, rounds = [], []
    for turn in range(ROUNDS):
        floors.append(_floor())
        work = [_going(_begun(team, f"run{turn}-{number}", STEPS)) for number in range(RUNS)]
        before, spent = writer.writer.transactions, time.process_time()
        took = _together(work)
        cpu = 1000 * (time.process_time() - spent) / (RUNS * STEPS)
        rounds.append((RUNS * STEPS / took, cpu, RUNS * STEPS / (writer.writer.transactions - before)))
    ours, each, batch = max(rounds)
    floor, bare = max(floors)
    lengths = {}
    for length in LENGTHS:
        run = _begun(team, f"length{length}", length)
        began = time.process_time()
        _going(run)()
        lengths[length] = 1000 * (time.process_time() - began) / length
    return {
        "ours": ours, "floor": floor, "batch": batch, "each_ms": each, "bare_ms": bare, "cpu_ms": lengths,
    }  # fmt: skip


def whole() -> dict[str, float]:
    """Runs that each of 32 threads begins and takes to their end."""
    team = team_of_bench()
    return _pooled(lambda number: _going(_begun(team, f"run{number}", STEPS))())


def begun() -> dict[str, float]:
    """The same runs, begun before the clock starts."""
    team = team_of_bench()
    work = {number: _going(_begun(team, f"run{number}", STEPS)) for number in range(-1, RUNS)}
    return _pooled(lambda number: work[number]())


def _pooled(one: Callable[[int], None]) -> dict[str, float]:
    """Steps a second after a first run, number -1, that is not counted."""
    with ThreadPoolExecutor(THREADS) as pool:
        one(-1)
        began = time.perf_counter()
        list(pool.map(one, range(RUNS)))
        return {"steps_per_s": RUNS * STEPS / (time.perf_counter() - began)}


def team_of_bench() -> Any:
    import django

    django.setup()
    from django.core.management import call_command

    from spakweb.ground.teams.models import Team

    call_command("migrate", verbosity=0)
    return Team.objects.create(name="Bench", slug="bench")


def _floor() -> tuple[float, float]:
    """Steps a second of the bare group commit on the database that this process has, and CPU of each."""
    from django.conf import settings

    from bench import platform_floor as bare

    address = os.environ.get("SPAK_WEB_DATABASE_URL", "")
    kind = bare.postgres(address) if address else bare.sqlite(Path(settings.DATA_DIR) / "bare.sqlite3")
    return bare.floor(*kind, THREADS, RUNS * STEPS // THREADS)


def _begun(team: Any, key: str, length: int) -> Any:
    """A run in this process's hands, begun, with a tool that only answers."""
    from bench.bench_run import NO_LAW, Answer
    from spak.lang.catalog import Catalog
    from spak.runner import Host, Run
    from spak.runner.genesis import genesis
    from spakweb.store.ledger.store import DatabaseLedgers
    from spakweb.store.ledger.workspaces import workspace_of
    from spakweb.store.runs.models import Run as Row

    tools = {"costly": Answer("costly", "costly")}
    catalog = Catalog(tools={name: tool.entry for name, tool in tools.items()})
    place = workspace_of(key)
    text = SPEC.format(steps=length)
    body = genesis(text, catalog, {}, place.snapshot(), 1, {"run": key}, law=NO_LAW)
    ledgers = DatabaseLedgers(lambda key: Row(team=team, key=key, name=key, mode="full_auto"))
    runner: Any = Run.create(ledgers, key, body, Host(tools=tools), place)
    return runner.ledger.row, runner, length


def _going(begun: Any) -> Callable[[], None]:
    from django.db import connection

    from spakweb.work.worker.held_run import HeldRun

    row, runner, length = begun
    holding = HeldRun(row, runner)

    def work() -> None:
        holding.go(3600)
        assert runner.state.r1.steps == length, runner.state.r7.codes
        connection.close()

    return work


def _together(work: Sequence[Callable[[], None]]) -> float:
    """Seconds until all of it is done, each in a thread of its own."""
    failed: list[BaseException] = []

    def one(do: Callable[[], None]) -> None:
        try:
            do()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=one, args=(do,)) for do in work]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    assert not failed, failed[0]
    return took


@contextmanager
def server(kind: str, folder: Path) -> Iterator[Any]:
    """A server of our own; None when it is not installed."""
    sys.path.insert(0, str(ROOT / "tests"))
    import servers_kit

    made = getattr(servers_kit, kind)
    if not servers_kit.binary(made.needs):
        yield None
        return
    with made(folder) as running:
        yield running


PARTS: dict[str, Callable[[], Any]] = {
    "steps": steps,
    "worker": worker,
    "whole": whole,
    "begun": begun,
    "socket": streams.socket,
    "sse": streams.sse,
    "sockets": streams.sockets,
    "bare": streams.bare,
    "cuts": streams.cuts,
    "crowd": crowds.crowd,
    "recovery": recovering.recovery,
}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]]()))
