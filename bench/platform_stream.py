"""Streams of the platform, measured from the commit of a record to its receipt by watchers.

The web part serves in a process of its own, as `manage.py up` starts it. From here a thread writes records
and one event loop watches, all on one clock: each record holds the time just before its commit. `bare` does
the same commits and sends a message of the same size to a group of Channels (platform_bare.py). `cuts` ends
each watcher's connection 20 times at random moments while records come; it connects again with the last id it
has. Every second one watches by a socket, the others by server-sent events.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket as sockets_of_os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.sizes import sized

CLIENTS, EACH, PAUSE_S = sized(1000, 10), sized(6, 2), sized(4.0, 0.5)
"""Watchers at once, records for each of them, and the time between two of these."""
CUT, CUTS, WHILE = sized(50, 4), sized(20, 2), sized(400, 30)
"""Watchers that are cut off, how often each, and the records that come meanwhile."""


def socket() -> dict[str, Any]:
    """One watcher; a record every 150 ms, so that each is a leading edge."""
    return _watched(_by_socket, clients=1, records=sized(100, 5), pause_s=0.15)


def sse() -> dict[str, Any]:
    return _watched(_by_events, clients=CLIENTS, records=EACH, pause_s=PAUSE_S)


def sockets() -> dict[str, Any]:
    return _watched(_by_socket, clients=CLIENTS, records=EACH, pause_s=PAUSE_S)


def bare() -> dict[str, Any]:
    """The floor of sockets: the same commits, and after each a message to the group."""
    return _watched(_by_bare_socket, clients=CLIENTS, records=EACH, pause_s=PAUSE_S, bare=True)


def cuts() -> dict[str, Any]:
    """CUT watchers, each cut off CUTS times while WHILE records come."""
    cookies, ledger = people(WHILE), ledger_of_bench()
    with serving() as web:
        return asyncio.run(_cutting(web.port, cookies, ledger, clients=CUT, records=WHILE))


Seen = Callable[[int, int], None]
Watcher = Callable[[int, str, int, Seen, asyncio.Semaphore, asyncio.Semaphore], Coroutine[Any, Any, None]]


def _watched(
    watcher: Watcher, *, clients: int, records: int, pause_s: float, bare: bool = False
) -> dict[str, Any]:
    cookies, ledger = people(clients), ledger_of_bench()
    with serving(*(["bench.platform_bare"] if bare else [])) as web:
        told = _tell_group() if bare else lambda sent: None
        return asyncio.run(_watching(watcher, web.port, cookies, clients, records, pause_s, ledger, told))


def people(clients: int) -> list[str]:
    """Sessions of members of the team, enough of them for so many streams."""
    from bench.bench_platform import team_of_bench

    team = team_of_bench()
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    from spakweb.face.streams import stream
    from spakweb.ground.teams.models import Membership, User

    cookies = []
    for number in range(-(-clients // stream.MOST_EACH)):
        user = User.objects.create_user(f"u{number}", f"u{number}@spak.example", "a long secret")
        Membership.objects.create(team=team, user=user, role="viewer")
        session = SessionStore()
        session[SESSION_KEY], session[HASH_SESSION_KEY] = str(user.pk), user.get_session_auth_hash()
        session[BACKEND_SESSION_KEY] = "allauth.account.auth_backends.AuthenticationBackend"
        session.save()
        cookies.append(str(session.session_key))
    return cookies


def _tell_group() -> Callable[[int], None]:
    """What sends the time of a record, and as many bytes as a row of ours has, to the group."""
    from bench.platform_bare import GROUP, layer

    loop, channels = asyncio.new_event_loop(), layer()

    def tell(sent: int) -> None:
        text = json.dumps({"sent": sent, "more": "x" * 300})
        loop.run_until_complete(channels.group_send(GROUP, {"type": "bare", "text": text}))

    return tell


def ledger_of_bench() -> Any:
    from spak.records import Record
    from spakweb.ground.teams.models import Team
    from spakweb.store.ledger.store import DatabaseLedgers
    from spakweb.store.runs.models import Run

    team = Team.objects.get(slug="bench")
    genesis = Record("genesis", "proposal", {"rules": {}, "host": {}}, at=1)
    return DatabaseLedgers(lambda key: Run(team=team, key=key, name=key)).create("watched", genesis)


@dataclass(frozen=True, slots=True)
class Web:
    """A web process, by its port and its id."""

    port: int
    pid: int

    def cpu(self) -> float:
        """The CPU seconds that it used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def held(self) -> int:
        """The most bytes that it held."""
        return 1024 * int(Path(f"/proc/{self.pid}/status").read_text().split("VmHWM:")[1].split()[0])


@contextmanager
def serving(module: str = "spakweb.work.operate.serve") -> Iterator[Web]:
    """A web part on a free port, as `manage.py up` starts the platform's."""
    listening = sockets_of_os.create_server(("127.0.0.1", 0), backlog=2048)
    reading, writing = os.pipe()
    server = subprocess.Popen(
        [sys.executable, "-m", module, str(reading), str(listening.fileno())],
        pass_fds=(reading, listening.fileno()), stdout=sys.stderr,
    )  # fmt: skip
    try:
        yield Web(int(listening.getsockname()[1]), server.pid)
    finally:
        os.close(writing)
        server.wait(20)
        listening.close()


async def _watching(
    watcher: Watcher,
    port: int,
    cookies: list[str],
    clients: int,
    records: int,
    pause_s: float,
    ledger: Any,
    told: Callable[[int], None],
) -> dict[str, Any]:
    waits: list[float] = []
    got = [0] * clients
    ready = asyncio.Semaphore(0)

    def seen(client: int, sent_ns: int) -> None:
        waits.append((time.monotonic_ns() - sent_ns) / 1e6)
        got[client] += 1

    opening = asyncio.Semaphore(50)
    tasks = [
        asyncio.create_task(watcher(port, cookies[n % len(cookies)], n, seen, ready, opening))
        for n in range(clients)
    ]
    for _ in range(clients):
        await asyncio.wait_for(ready.acquire(), 120)
    for number in range(records):
        await asyncio.sleep(pause_s)
        await asyncio.to_thread(lambda seq: told(commit(ledger, seq)), number)
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


def commit(ledger: Any, number: int) -> int:
    """The time stands in the record, just before its commit: what is measured has the commit in it."""
    from spak.records import Record

    sent = time.monotonic_ns()
    ledger.append([Record("act", "proposal", {"of": "x", "sent": str(sent)}, "t", "s", number, at=sent)])
    ledger.flush()
    return sent


async def _opened(
    port: int, cookie: str, after: int = -1
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = ["GET /t/bench/runs/watched/events HTTP/1.1", "Host: 127.0.0.1", f"Cookie: sessionid={cookie}"]
    lines += [f"Last-Event-ID: {after}"] if after >= 0 else []
    writer.write("\r\n".join([*lines, "", ""]).encode())
    return reader, writer


async def _by_events(
    port: int, cookie: str, client: int, seen: Seen, ready: asyncio.Semaphore, opening: asyncio.Semaphore
) -> None:
    async with opening:
        reader, _ = await _opened(port, cookie)
        while b'"kind":"genesis"' not in await reader.readline():
            pass
    ready.release()
    while line := await reader.readline():
        if line.startswith(b'data: {"#"'):
            seen(client, int(json.loads(line[6:])["body"]["sent"]))


async def _by_socket(
    port: int, cookie: str, client: int, seen: Seen, ready: asyncio.Semaphore, opening: asyncio.Semaphore
) -> None:
    async for message in _messages(port, "/t/bench/runs/watched/events", cookie, ready, opening):
        for record in message.get("records", ()):
            seen(client, record["at"])


async def _by_bare_socket(
    port: int, cookie: str, client: int, seen: Seen, ready: asyncio.Semaphore, opening: asyncio.Semaphore
) -> None:
    async for message in _messages(port, "/", cookie, ready, opening):
        seen(client, message["sent"])


async def _messages(
    port: int, path: str, cookie: str, ready: asyncio.Semaphore, opening: asyncio.Semaphore
) -> AsyncIterator[dict[str, Any]]:
    async with opening:
        page = await _socket(port, path, cookie)
        await page.recv()
    ready.release()
    async for text in page:
        yield json.loads(text)


async def _cutting(port: int, cookies: list[str], ledger: Any, clients: int, records: int) -> dict[str, Any]:
    """Each watcher must have every seq once and in order when the last record is there."""
    got: list[list[int]] = [[] for _ in range(clients)]
    opening = asyncio.Semaphore(20)
    made = 0

    async def watch(client: int) -> None:
        nonlocal made
        chance = random.Random(client)
        left, seqs = CUTS, got[client]
        connected = _seqs_of_socket if client % 2 else _seqs_of_events
        while seqs[-1:] != [records]:
            async with opening:
                coming, abort = await connected(port, cookies[client % len(cookies)], max(seqs, default=-1))
            try:
                async with asyncio.timeout(chance.uniform(0.02, 3) if left else None):
                    async for seq in coming:
                        seqs.append(seq)
                        if seq == records:
                            return
                await asyncio.sleep(chance.uniform(0.5, 2))  # it was refused: no place for the moment
            except TimeoutError:
                left, made = left - 1, made + 1
            finally:
                abort()

    tasks = [asyncio.create_task(watch(client)) for client in range(clients)]
    for number in range(records):
        await asyncio.sleep(0.15)
        await asyncio.to_thread(commit, ledger, number)
    done, late = await asyncio.wait(tasks, timeout=120)
    for task in late:
        task.cancel()
    for task in done:
        task.result()
    await asyncio.to_thread(ledger.close)
    expected = list(range(records + 1))
    return {"cuts": made, "wrong": sum(abs(len(one) - len(expected)) or one != expected for one in got)}


Coming = tuple[AsyncIterator[int], Callable[[], None]]
"""What comes over a connection, as seqs, and how to cut it off."""


async def _seqs_of_events(port: int, cookie: str, after: int) -> Coming:
    reader, writer = await _opened(port, cookie, after)
    await reader.readline()

    async def seqs() -> AsyncIterator[int]:
        while line := await reader.readline():
            if line.startswith(b'data: {"#"'):
                yield int(json.loads(line[6:])["seq"])

    return seqs(), lambda: writer.transport.abort()  # a writer that nobody holds closes its transport


async def _seqs_of_socket(port: int, cookie: str, after: int) -> Coming:
    from websockets.exceptions import ConnectionClosed

    query = f"?after={after}" if after >= 0 else ""
    page = await _socket(port, f"/t/bench/runs/watched/events{query}", cookie)

    async def seqs() -> AsyncIterator[int]:
        with contextlib.suppress(ConnectionClosed):
            while True:
                for record in json.loads(await page.recv()).get("records", ()):
                    yield int(record["seq"])

    return seqs(), page.transport.abort


async def _socket(port: int, path: str, cookie: str) -> Any:
    from websockets.asyncio.client import connect

    headers = {"Cookie": f"sessionid={cookie}", "Origin": f"http://127.0.0.1:{port}"}
    return await connect(f"ws://127.0.0.1:{port}{path}", additional_headers=headers, open_timeout=60)
