"""Hints that a run has news: from whatever process wrote it to every process that has watchers.

`publish(key, count)` is called after commits by the writer, by workers that wrote a projection, by actions.
It returns at once; one thread per process sends: a run's first hint without delay, then at most ten a second,
several runs in one message. Embedded, a hint is a datagram to the sockets in the data folder (`key count`
lines); distributed, a message of the channel layer. A hint may be lost, repeated and out of order: readers
read the ledger, and look by themselves now and then. It holds nothing but the newest count of each run.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypedDict

from channels.layers import get_channel_layer
from django.conf import settings

GROUP = "runs.news"
PACE_S = 0.1
DATAGRAM = 4096
REMEMBERED = 2000
"""Runs whose last hint's time is known; of others the next hint goes at once."""

log = logging.getLogger(__name__)


class News(TypedDict):
    """Runs that have new records, and how many they have now."""

    type: Literal["runs.news"]
    heads: dict[str, int]


class Sender:
    """Started with the first hint."""

    def __init__(self) -> None:
        self.pending: dict[str, int] = {}
        self._sent: dict[str, float] = {}
        self._some = threading.Condition()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._quiet = self._closing = False

    def close(self) -> None:
        """Send what is left, within a second or two: a thread must not be inside a library when the process
        ends."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            with self._some:
                self._closing = True
                self._some.notify()
            thread.join(2)

    def publish(self, heads: Iterable[tuple[str, int]]) -> None:
        """Send the numbers of records soon, from a thread of its own."""
        with self._some:
            for key, count in heads:
                self.pending[key] = max(count, self.pending.get(key, 0))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="run-news", daemon=True)
                self._thread.start()
            self._some.notify()

    def _work(self) -> None:
        while True:
            with self._some:
                heads, wait = self._due(time.monotonic())
                if not heads and not self.pending and self._closing:
                    return
                if not heads:
                    self._some.wait(wait)
                    continue
            try:
                self._send(heads)
                self._quiet = False
            except Exception as error:  # hints may be lost, and the thread must live on
                if not self._quiet:
                    log.warning("news of runs was not sent: %s", type(error).__name__)
                self._quiet = True

    def _due(self, now: float) -> tuple[dict[str, int], float | None]:
        """What may be sent now, else how long to wait."""
        due = {key: count for key, count in self.pending.items() if now - self._sent.get(key, 0) >= PACE_S}
        for key in due:
            del self.pending[key]
            self._sent[key] = now
        if len(self._sent) > REMEMBERED:
            self._sent = {key: at for key, at in self._sent.items() if now - at < PACE_S}
        if due or not self.pending:
            return due, None
        return {}, max(0.001, PACE_S - (now - min(self._sent[key] for key in self.pending)))

    def _send(self, heads: Mapping[str, int]) -> None:
        if not settings.REDIS_URL:
            _datagrams(heads)
            return
        layer = get_channel_layer()
        if layer is None:
            return
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        message: News = {"type": "runs.news", "heads": dict(heads)}
        self._loop.run_until_complete(layer.group_send(GROUP, message))


sender = Sender()


def _after_fork() -> None:
    global sender
    sender = Sender()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: sender.close())


def publish(key: str, count: int) -> None:
    """Report that a run has so many records."""
    sender.publish([(key, count)])


def committed(heads: list[tuple[str, int]]) -> None:
    """What the writer calls after each commit."""
    sender.publish(heads)


# ---- datagrams


def folder() -> Path:
    """Where news are exchanged without Redis."""
    return Path(settings.DATA_DIR) / "news"


@contextlib.contextmanager
def _near(path: Path) -> Iterator[str]:
    """A short name of the folder: an address of a socket has at most 107 bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def listen() -> tuple[socket.socket, Path]:
    """A socket that hears the hints of this data folder, and its file; whoever closes it removes the file."""
    folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    with _near(folder()) as near:
        made.bind(f"{near}/{name}")
    return made, folder() / name


def heard(data: bytes) -> dict[str, int]:
    """The heads of a datagram; what is not one is nothing."""
    found = {}
    for line in data.decode("utf-8", "replace").splitlines():
        key, _, count = line.partition(" ")
        if key and count.isdecimal() and len(count) < 12:
            found[key] = int(count)
    return found


def _datagrams(heads: Mapping[str, int]) -> None:
    if not folder().is_dir():
        return
    parts, part = [], b""
    for key, count in heads.items():
        line = f"{key} {count}\n".encode()
        if len(part) + len(line) > DATAGRAM:
            parts.append(part)
            part = b""
        part += line
    parts.append(part)
    with _near(folder()) as near, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.setblocking(False)
        for name in os.listdir(near):  # noqa: PTH208  once per hint: names are enough
            for part in parts:
                try:
                    out.sendto(part, f"{near}/{name}")
                except ConnectionRefusedError:  # who bound it is gone
                    with contextlib.suppress(FileNotFoundError):
                        Path(near, name).unlink()
                    break
                except OSError:  # full, or just gone: its reader looks by itself
                    break
