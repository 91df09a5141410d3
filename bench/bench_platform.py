"""Runs on the platform: 200 at once beside the bare group commit, and how soon a watcher sees a record.

`steps`: 200 runs of 20 steps in one process, each step made durable by itself (three records), with leases,
projections and news as a worker has them; the tool only answers. Floor: platform_floor.py with as many
threads, on the same database, round about; the best round of each. Cost per step by the length of a run is
CPU time. `stream`: a writer process commits, watchers in another hear of it;
the time is from commit to receipt on one clock. Databases and servers are made for the run and thrown away;
what is not installed is left out. Beside it LangGraph with its SQLite saver, where it is installed.

    python -m bench.bench_platform steps|socket|sse|peer     one part, in a process of its own
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RUNS, STEPS, ROUNDS = 200, 20, 3
LENGTHS = (100, 1000, 5000)
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
        found = _steps_rows("SQLite", _part("steps", folder / "lite"), 1000)
        found += _latency_rows("one socket, embedded", _part("socket", folder / "socket"), 100)
        with _server("Postgres", folder / "pg") as address:
            if address:
                seen = _part("steps", folder / "pg-data", SPAK_WEB_DATABASE_URL=address)
                found += _steps_rows("PostgreSQL", seen, 1500)
        with _server("Redis", folder / "redis") as address:
            if address:
                seen = _part("sse", folder / "sse", SPAK_WEB_REDIS_URL=address)
                found += _latency_rows("1,000 SSE clients, Redis", seen, 300)
        if importlib.util.find_spec("langgraph"):
            peer = _part("peer", folder / "peer")["steps_per_s"]
            ours = found[0]["ours"]
            found.append(_row("steps/s over LangGraph's, in memory", ours / peer, peer, "x", ""))
    return found


def _steps_rows(name: str, seen: dict[str, Any], least: int) -> list[dict[str, Any]]:
    ours, floor = seen["ours"], seen["floor"]
    title = f"{name}: {RUNS} runs of {STEPS} steps"
    return [
        _row(f"{title}, beside the bare group commit", ours, floor, "steps/s", ">= 0.4 of floor"),
        _row(f"{title}, at least", ours, floor, "steps/s", f">= {least}"),
        _row(f"{name}: steps of one transaction", seen["batch"], 1, "steps", ""),
        _row(f"{name}: CPU per step, {RUNS} runs", seen["each_ms"], seen["bare_ms"], "ms", ""),
        *(
            _row(f"{name}: CPU per step, run of {length:,}", seen["cpu_ms"][str(length)], 0, "ms", "")
            for length in LENGTHS
        ),
        _row(
            f"{name}: CPU per step, {LENGTHS[-1]:,} over {LENGTHS[0]}",
            seen["cpu_ms"][str(LENGTHS[-1])] / seen["cpu_ms"][str(LENGTHS[0])], 1.0, "ratio", "<= 1.25",
        ),
    ]  # fmt: skip


def _latency_rows(name: str, seen: dict[str, Any], most: int) -> list[dict[str, Any]]:
    return [
        _row(f"{name}: commit to receipt, p50", seen["p50"], 0, "ms", f"<= {most}"),
        _row(f"{name}: commit to receipt, p95", seen["p95"], 0, "ms", ""),
        _row(f"{name}: records not received", seen["lost"], 0, "records", "<= 0"),
    ]


def _row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 3), "floor": round(floor, 3), "unit": unit, "aim": aim}


def _part(part: str, data: Path, **more: str) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPAK_")}
    done = subprocess.run(
        [sys.executable, "-m", "bench.bench_platform", part], cwd=ROOT, stdout=subprocess.PIPE, check=True,
        env={**environment, "SPAK_WEB_DATA": str(data), "DJANGO_SETTINGS_MODULE": "spakweb.settings", **more},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return found


# ---- steps


def steps() -> dict[str, Any]:
    team = _team()
    from spakweb.runs import writer

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


def _team() -> Any:
    import django

    django.setup()
    from django.core.management import call_command

    from spakweb.teams.models import Team

    call_command("migrate", verbosity=0)
    return Team.objects.create(name="Bench", slug="bench")


def _floor() -> tuple[float, float]:
    """Steps a second of the bare group commit on the database that this process has, and CPU of each."""
    from django.conf import settings

    from bench import platform_floor as bare

    address = os.environ.get("SPAK_WEB_DATABASE_URL", "")
    kind = bare.postgres(address) if address else bare.sqlite(Path(settings.DATA_DIR) / "bare.sqlite3")
    return bare.floor(*kind, RUNS, STEPS)


def _begun(team: Any, key: str, length: int) -> Any:
    """A run in this process's hands, begun, with a tool that only answers."""
    from bench.bench_run import NO_LAW, Answer
    from spak.lang.catalog import Catalog
    from spak.runner import Host, Run
    from spak.runner.genesis import genesis
    from spakweb.runs.execute import workspace_of
    from spakweb.runs.ledger import DatabaseLedgers
    from spakweb.runs.models import Run as Row

    tools = {"costly": Answer("costly", "costly")}
    catalog = Catalog(tools={name: tool.entry for name, tool in tools.items()})
    row = Row.objects.create(team=team, key=key, name=key, mode="full_auto")
    place = workspace_of(key)
    text = SPEC.format(steps=length)
    body = genesis(text, catalog, {}, place.snapshot(), 1, {"run": key}, law=NO_LAW)
    return row, Run.create(DatabaseLedgers(), key, body, Host(tools=tools), place), length


def _going(begun: Any) -> Callable[[], None]:
    from django.db import connection

    from spakweb.runs.execute import Holding

    row, runner, length = begun
    holding = Holding(row, runner)

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


# ---- streams


def socket_part() -> dict[str, Any]:
    """One watcher; a record every 150 ms, so that each is a leading edge."""
    return _watched(clients=1, records=100, pause_s=0.15, sse=False)


def sse() -> dict[str, Any]:
    return _watched(clients=1000, records=8, pause_s=4.0, sse=True)


def _watched(*, clients: int, records: int, pause_s: float, sse: bool) -> dict[str, Any]:
    """Serve in another process, watch from here, write from a thread; a record holds when it was written."""
    team = _team()
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    from spakweb.runs import stream
    from spakweb.teams.models import Membership, User

    cookies = []
    for number in range(-(-clients // stream.MOST_EACH)):
        user = User.objects.create_user(f"u{number}", f"u{number}@spak.example", "a long secret")
        Membership.objects.create(team=team, user=user, role="viewer")
        session = SessionStore()
        session[SESSION_KEY], session[HASH_SESSION_KEY] = str(user.pk), user.get_session_auth_hash()
        session[BACKEND_SESSION_KEY] = "allauth.account.auth_backends.AuthenticationBackend"
        session.save()
        cookies.append(str(session.session_key))
    ledger = _ledger(team)
    with _serving() as port:
        return asyncio.run(_watching(port, cookies, clients, records, pause_s, ledger, sse=sse))


def _ledger(team: Any) -> Any:
    from spak.records import Record
    from spakweb.runs.ledger import DatabaseLedgers
    from spakweb.runs.models import Run

    genesis = Record("genesis", "proposal", {"rules": {}, "host": {}}, at=1)
    return DatabaseLedgers(lambda key: Run(team=team, key=key, name=key)).create("watched", genesis)


@contextmanager
def _serving() -> Iterator[int]:
    """The web part on a free port, as `manage.py up` starts it."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    reading, writing = os.pipe()
    server = subprocess.Popen(
        [sys.executable, "-m", "spakweb.home.serve", str(reading), str(listening.fileno())],
        pass_fds=(reading, listening.fileno()), stdout=sys.stderr,
    )  # fmt: skip
    try:
        yield int(listening.getsockname()[1])
    finally:
        os.close(writing)
        server.wait(20)
        listening.close()


async def _watching(
    port: int, cookies: list[str], clients: int, records: int, pause_s: float, ledger: Any, *, sse: bool
) -> dict[str, Any]:
    waits: list[float] = []
    got = [0] * clients
    ready = asyncio.Semaphore(0)

    def seen(client: int, sent_ns: int) -> None:
        waits.append((time.monotonic_ns() - sent_ns) / 1e6)
        got[client] += 1

    opening = asyncio.Semaphore(50)
    watcher = _by_events if sse else _by_socket
    tasks = [
        asyncio.create_task(watcher(port, cookies[n % len(cookies)], n, seen, ready, opening))
        for n in range(clients)
    ]
    for _ in range(clients):
        await asyncio.wait_for(ready.acquire(), 120)
    for number in range(records):
        await asyncio.sleep(pause_s)
        await asyncio.to_thread(_commit, ledger, number)
    ends = time.monotonic() + 20
    while sum(got) < clients * records and time.monotonic() < ends:
        await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.to_thread(ledger.close)
    return {
        "p50": statistics.median(waits), "p95": statistics.quantiles(waits, n=20)[18],
        "lost": clients * records - sum(got),
    }  # fmt: skip


def _commit(ledger: Any, number: int) -> None:
    """The time stands in the record, just before its commit: what is measured has the commit in it."""
    from spak.records import Record

    sent = time.monotonic_ns()
    ledger.append([Record("act", "proposal", {"of": "x", "sent": str(sent)}, "t", "s", number, at=sent)])
    ledger.flush()


async def _by_events(
    port: int, cookie: str, client: int, seen: Callable[[int, int], None], ready: Any, opening: Any
) -> None:
    async with opening:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        asked = (
            "GET /runs/watched/events HTTP/1.1",
            "Host: 127.0.0.1",
            f"Cookie: sessionid={cookie}",
            "",
            "",
        )
        writer.write("\r\n".join(asked).encode())
        while b'"kind":"genesis"' not in await reader.readline():
            pass
    ready.release()
    while line := await reader.readline():
        if line.startswith(b'data: {"#"'):
            seen(client, int(json.loads(line[6:])["body"]["sent"]))


async def _by_socket(
    port: int, cookie: str, client: int, seen: Callable[[int, int], None], ready: Any, opening: Any
) -> None:
    from websockets.asyncio.client import connect

    headers = {"Cookie": f"sessionid={cookie}", "Origin": f"http://127.0.0.1:{port}"}
    async with connect(f"ws://127.0.0.1:{port}/ws/runs/watched/", additional_headers=headers) as page:
        await page.recv()
        ready.release()
        async for text in page:
            message = json.loads(text)
            for record in message.get("records", ()):
                seen(client, record["at"])


@contextmanager
def _server(kind: str, folder: Path) -> Iterator[str]:
    """The address of a server of our own; empty when it is not installed."""
    sys.path.insert(0, str(ROOT / "tests"))
    import servers_kit

    made = getattr(servers_kit, kind)
    if not servers_kit.binary(made.needs):
        yield ""
        return
    with made(folder) as server:
        yield server.url


# ---- a peer


def peer() -> dict[str, Any]:
    """LangGraph: a thread of 20 steps at a time, its checkpoints in memory (its SQLite saver is apart)."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(dict)
    graph.add_node("step", lambda state: {"n": state["n"] + 1, "text": os.urandom(50).hex()})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: END if state["n"] >= STEPS else "step")
    app = graph.compile(checkpointer=InMemorySaver())
    began = time.perf_counter()
    for number in range(RUNS // 4):
        options = {"configurable": {"thread_id": str(number)}, "recursion_limit": 2 * STEPS + 5}
        assert app.invoke({"n": 0}, options)["n"] == STEPS
    return {"steps_per_s": RUNS // 4 * STEPS / (time.perf_counter() - began)}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "steps": steps,
    "socket": socket_part,
    "sse": sse,
    "peer": peer,
}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]]()))
