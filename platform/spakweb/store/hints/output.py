"""What the tools of running runs put out just now: from the worker that runs them to whoever looks on.

A worker hands in the newest end of it (`spak.runner.live`), a few times a second and only while there is any;
`read` gives it to pages and streams. Embedded it lies in a file of the run's folder, distributed under a key
of Redis that ends by itself. It is never written to the database and costs no step anything. It may be lost
and is never needed: what a tool put out is in its record when it ends. What is old, of another holder of the
run or of a step that has its record is not given, so that what a dead worker left is never shown.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from spak.ports import Heard, Redacting
from spak.runner.live import Live, Shown
from spakweb.store.hints import news

PACE_S = 0.25
FIRST_S = 0.1
"""A tool that ends within it is never shown while it runs, and costs next to nothing."""
REPEAT_S = 1.0
"""How often it is said again that a tool still runs which puts out nothing more."""
SHARE = 4
"""So many times as long as it worked the thread rests, whatever the tools put out: steps come first."""
HOLDS_S = 3.0
"""How long it is true without being said again."""
REDIS_S, UNAVAILABLE_S = 0.5, 5.0
"""How long Redis is waited for; how long it is not asked after it did not answer."""
LINE = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Output:
    """`seq` is that of the record which the tool's result will be; `size` counts all bytes so far."""

    seq: int
    text: str
    size: int

    @property
    def hint(self) -> dict[str, Any]:
        """What streams say of it."""
        line = self.text.rstrip("\n").rpartition("\n")[2][-LINE:]
        return {"type": "output", "seq": self.seq, "size": self.size, "line": line}


def read(key: str, fence: int, count: int) -> Output | None:
    """What the tool puts out that runs under this fence behind so many records, if it put out anything."""
    try:
        found = json.loads(_get(key) or b"{}")
        if (found["fence"], found["seq"]) != (fence, count):
            return None
        return Output(found["seq"], found["text"], found["size"])
    except (OSError, ValueError, KeyError, TypeError):  # not there, or not whole
        return None


@dataclass(eq=False, slots=True)
class Tool:
    """One call of a tool. It is known to the thread from the first byte that it puts out."""

    key: str
    fence: int
    seq: int
    live: Live | None = None
    shown: Shown | None = None
    sent_at: float = 0.0
    over: bool = False

    def payload(self) -> bytes:
        """What watchers get of the output so far, as JSON."""
        assert self.shown is not None
        found = {"fence": self.fence, "seq": self.seq, "text": self.shown.text, "size": self.shown.size}
        return json.dumps(found).encode()


class Sender:
    """One thread of a process, started with the first output: it looks, and hands in."""

    def __init__(self) -> None:
        self._tools: dict[Tool, None] = {}
        self._some = threading.Condition()
        self._thread: threading.Thread | None = None
        self._quiet = False

    @contextlib.contextmanager
    def hearing(self, key: str, fence: int, seq: int, redactor: Redacting | None) -> Iterator[Heard]:
        """Around the call of a tool of that run, whose result will be the record `seq`."""
        tool = Tool(key, fence, seq)

        def heard(number: int, chunk: bytes) -> None:
            if tool.live is None:
                tool.sent_at = time.monotonic() + FIRST_S - PACE_S
                tool.live = Live(redactor, lambda: self._wake(tool))
            tool.live.heard(number, chunk)

        try:
            yield heard
        finally:
            if tool.live is not None:
                tool.over = True
                self._wake(tool)

    def _wake(self, tool: Tool) -> None:
        with self._some:
            self._tools[tool] = None
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="run-output", daemon=True)
                self._thread.start()
            self._some.notify()

    def _work(self) -> None:
        while True:
            with self._some:
                tools = list(self._tools)
                now = time.monotonic()
                over = [tool for tool in tools if tool.over]
                due = [tool for tool in tools if not tool.over and _due(tool) <= now]
                for tool in over:
                    del self._tools[tool]
                if not over and not due:
                    left = min((_due(tool) for tool in tools), default=None)
                    self._some.wait(None if left is None else left - now)
                    continue
            try:
                for tool in over:
                    if tool.shown is not None:
                        _remove(tool.key)
                for tool in due:
                    self._hand_in(tool)
                self._quiet = False
            except Exception as error:  # it may be lost, and the thread must live on
                if not self._quiet:
                    log.warning("the output of running tools is not shown: %s", type(error).__name__)
                self._quiet = True
            time.sleep(min(PACE_S, SHARE * (time.monotonic() - now)))

    def _hand_in(self, tool: Tool) -> None:
        assert tool.live is not None
        tool.sent_at = time.monotonic()
        if tool.live.news or tool.shown is None:
            tool.shown = tool.live.look()
        _put(tool.key, tool.payload())
        news.publish(tool.key, tool.seq)


def _due(tool: Tool) -> float:
    assert tool.live is not None
    return tool.sent_at + (PACE_S if tool.live.news else REPEAT_S)


sender = Sender()


def _after_fork() -> None:
    global sender
    sender = Sender()
    _redis.cache_clear()


os.register_at_fork(after_in_child=_after_fork)


# ---- where it lies


def _file(key: str) -> Path:
    return Path(settings.DATA_DIR) / "runs" / key / "output"


def _name(key: str) -> str:
    return f"spak:output:{key}"


@lru_cache(maxsize=1)
def _redis(url: str) -> Any:
    """Impatient: nobody may wait for what is never needed. Only who has a Redis loads its client."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(
        url, socket_timeout=REDIS_S, socket_connect_timeout=REDIS_S, retry=Retry(NoBackoff(), 0)
    )


_unavailable_at = float("-inf")


def _get(key: str) -> bytes | None:
    global _unavailable_at
    if settings.REDIS_URL:
        from redis.exceptions import RedisError

        if time.monotonic() - _unavailable_at < UNAVAILABLE_S:
            return None
        try:
            found: bytes | None = _redis(settings.REDIS_URL).get(_name(key))
        except RedisError:
            _unavailable_at = time.monotonic()
            return None
        return found
    file = _file(key)
    try:
        fresh = abs(time.time() - file.stat().st_mtime) < HOLDS_S
        return file.read_bytes() if fresh else None
    except FileNotFoundError:
        return None


def _put(key: str, data: bytes) -> None:
    if settings.REDIS_URL:
        _redis(settings.REDIS_URL).set(_name(key), data, px=int(1000 * HOLDS_S))
        return
    file = _file(key)
    new = file.with_suffix(".new")
    new.write_bytes(data)
    new.replace(file)


def _remove(key: str) -> None:
    if settings.REDIS_URL:
        _redis(settings.REDIS_URL).delete(_name(key))
    else:
        _file(key).unlink(missing_ok=True)
