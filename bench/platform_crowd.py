"""A crowd that watches one run: CROWD streams over PROCESSES web processes, from commit to receipt.

The web processes serve as `manage.py serve` starts them on several hosts: one database, hints by Redis. Every
second watcher has a socket and offers compression as browsers do, the others have server-sent events. The
clients read bytes and look for the time in them, so that they cost little beside what is measured.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import resource
import statistics
import time
import zlib
from contextlib import ExitStack
from typing import Any

from bench import platform_stream as streams
from bench.sizes import sized

CROWD, PROCESSES = sized(5000, 20), 2
EACH, PAUSE_S = sized(6, 2), sized(4.0, 0.5)
"""Records for each of them, and the time between two of these."""
OPENING = 50
"""Connections that are being opened at once."""
_SENT = re.compile(rb'"sent":"(\d+)"')
PATH = "/t/bench/runs/watched/events"


def crowd() -> dict[str, Any]:
    """Times from commit to receipt, what was not received, and the CPU that the web processes used."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the web processes inherit it
    cookies, ledger = streams.people(CROWD), streams.ledger_of_bench()
    with ExitStack() as serving:
        webs = [serving.enter_context(streams.serving()) for _ in range(PROCESSES)]
        return asyncio.run(_watched(webs, cookies, ledger))


async def _watched(webs: list[streams.Web], cookies: list[str], ledger: Any) -> dict[str, Any]:
    waits: list[float] = []
    opening = asyncio.Semaphore(OPENING)
    began = time.monotonic()
    clients = [_Socket(waits) if number % 4 < 2 else _Events(waits) for number in range(CROWD)]
    await asyncio.gather(
        *(
            _opened(client, webs[number % PROCESSES].port, cookies[number % len(cookies)], opening)
            for number, client in enumerate(clients)
        )
    )
    opened_s = time.monotonic() - began
    spent = sum(web.cpu() for web in webs)
    mine = time.process_time()
    for number in range(EACH):
        await asyncio.sleep(PAUSE_S)
        await asyncio.to_thread(streams.commit, ledger, number)
    ends = time.monotonic() + 20
    while len(waits) < CROWD * EACH and time.monotonic() < ends:
        await asyncio.sleep(0.1)
    spent, mine = sum(web.cpu() for web in webs) - spent, time.process_time() - mine
    wrong = sum(client.got != list(range(1, EACH + 1)) for client in clients)
    kinds = {
        kind.__name__: statistics.median(
            wait for client in clients if isinstance(client, kind) for wait in client.mine
        )
        for kind in (_Socket, _Events)
    }
    for client in clients:
        client.transport.abort()
    await asyncio.to_thread(ledger.close)
    return {
        "p50": statistics.median(waits), "p95": statistics.quantiles(waits, n=20)[18],
        "lost": CROWD * EACH - len(waits), "wrong": wrong, "opened_s": opened_s,
        "us": 1e6 * spent / (CROWD * EACH), "client_us": 1e6 * mine / (CROWD * EACH), **kinds,
        "held": max(web.held() for web in webs),
    }  # fmt: skip


async def _opened(client: _Client, port: int, cookie: str, opening: asyncio.Semaphore) -> None:
    async with opening:
        client.port, client.cookie = port, cookie
        await asyncio.get_running_loop().create_connection(lambda: client, "127.0.0.1", port)
        await asyncio.wait_for(client.ready, 120)


class _Client(asyncio.Protocol):
    """One watcher: `got` has the seqs of the records after the first one, in the order in which they came."""

    def __init__(self, waits: list[float]) -> None:
        self.waits, self.mine, self.got = waits, list[float](), list[int]()
        self.ready = asyncio.get_running_loop().create_future()
        self.rest = b""
        self.port, self.cookie = 0, ""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        lines = [f"GET {PATH} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Cookie: sessionid={self.cookie}"]
        transport.write("\r\n".join([*lines, *self.headers(), "", ""]).encode())

    def headers(self) -> list[str]:
        return []

    def seen(self, seq: int, sent_ns: int) -> None:
        self.mine.append((time.monotonic_ns() - sent_ns) / 1e6)
        self.waits.append(self.mine[-1])
        self.got.append(seq)


class _Events(_Client):
    """By server-sent events: a record is the line that begins with `data: {"#"`."""

    def data_received(self, data: bytes) -> None:
        data = self.rest + data
        at, end = 0, data.rfind(b"\n\n")
        while (at := data.find(b"id: ", at, max(end, 0))) >= 0:
            seq = int(data[at + 4 : data.index(b"\n", at)])
            if seq == 0 and not self.ready.done():
                self.ready.set_result(None)
            elif found := _SENT.search(data, at):
                self.seen(seq, int(found[1]))
            at = data.index(b"\n\n", at)
        self.rest = data[end + 2 :] if end >= 0 else data


class _Socket(_Client):
    """By a socket: frames of a server, which are not masked."""

    inflating: Any = None
    upgraded = False

    def headers(self) -> list[str]:
        key = base64.b64encode(os.urandom(16)).decode()
        return [
            "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            f"Origin: http://127.0.0.1:{self.port}", "Sec-WebSocket-Extensions: permessage-deflate",
        ]  # fmt: skip

    def data_received(self, data: bytes) -> None:
        data = self.rest + data
        if not self.upgraded:
            head, ended, rest = data.partition(b"\r\n\r\n")
            self.rest = data
            if not ended:
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            self.upgraded, data = True, rest
            if b"permessage-deflate" in head.lower():
                self.inflating = zlib.decompressobj(-15)
        while len(data) >= 2:
            size, begin = data[1] & 127, 2
            if size >= 126:
                width = 2 if size == 126 else 8
                size, begin = int.from_bytes(data[2 : 2 + width], "big"), 2 + width
            if len(data) < begin + size:
                break
            self._frame(data[0], data[begin : begin + size])
            data = data[begin + size :]
        self.rest = data

    def _frame(self, first: int, payload: bytes) -> None:
        if first & 15 == 9:  # a ping: who does not answer it is cut off
            self.transport.write(bytes([0x8A, 0x80 | len(payload), 0, 0, 0, 0]) + payload)
        if first & 15 != 1:
            return
        if first & 64:
            payload = self.inflating.decompress(payload + b"\x00\x00\xff\xff")
        if not payload.startswith(b'{"type":"records"'):
            return
        for record in json.loads(payload)["records"]:
            if record["seq"]:
                self.seen(record["seq"], record["at"])
            elif not self.ready.done():
                self.ready.set_result(None)
