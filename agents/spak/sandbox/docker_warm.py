"""A warm container: one workspace, one user, one job at a time; kept for the next job that fits it.

It lives as long as its standard input is held here. What a job leaves in its scratch folders is removed by
the guest after each; a container in which anything else was left, or that ended oddly, is thrown away.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spak import data
from spak.cancel import TURN_S, Cancel, apart, check
from spak.ports import Heard, Limits
from spak.sandbox import chain, slots
from spak.sandbox import docker_engine as engine
from spak.sandbox.awake import Awake
from spak.sandbox.docker_engine import EngineError, engine_errors
from spak.sandbox.docker_wire import Frames, Held, Report, report
from spak.sandbox.quota import DiskWatch
from spak.sandbox.streams import Collector

START_S = 30.0
"""How long the engine may take to begin a step; apart from the job's own time, for machines that are busy."""

NOTICE = ".spak-masked"
IDLE_S = 30.0
_CHUNK = 1 << 18
_LAST_WORDS_S = 1.0


@dataclass(frozen=True, slots=True)
class Key:
    """What a container is made for; a job goes only into one that fits exactly."""

    image: str
    user: str
    workspace: Path
    writable: bool
    binds: tuple[Path, ...]
    memory_bytes: int
    processes: int
    more: str
    """The rest of its host configuration, as text."""
    closed: tuple[int, int] | None = None
    """Device and inode of the `.git` that it shows read-only."""
    masked: tuple[tuple[str, bool, int, int], ...] = ()
    """What it masks: path, whether a folder, device and inode."""
    home: str = ""
    """Where the workspace is found too."""
    shown: tuple[tuple[str, str, bool], ...] = ()
    """Folders of the host, where the workspace has them, and whether they are writable."""


class Ended(Exception):
    """The engine or the container went away before the guest had said how the job ended."""


@dataclass(slots=True)
class Step:
    """What came of one job."""

    report: Report | None
    out: Collector
    err: Collector
    wall_ms: int
    trouble: str = ""
    full: str = ""
    """How it went over its quota."""


@dataclass
class Warm:
    """A container that runs, until `close`."""

    client: Any
    key: Key
    number: str
    hold: Any
    heard: engine.Heard
    watcher: engine.Watcher
    slot: slots.Slot | None
    place: tuple[int, int]
    """Device and inode of the workspace that it shows."""
    counter: Path | None
    _timer: threading.Timer | None = None
    _closed: bool = False
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def step(
        self,
        packed: bytes,
        nonce: str,
        stdin: bytes,
        limits: Limits,
        heard: Heard | None = None,
        cancel: Cancel | None = None,
    ) -> Step:
        """Run one job to its end. Raises: Ended when it could not even be begun; Cancelled, and then it runs
        until `close`."""
        out, err = (Collector(limits.output_bytes, number, heard) for number in (1, 2))
        held, frames = Held(err), Frames()
        began = time.monotonic()
        watch = None
        if limits.quota is not None and self.key.writable:
            watch = DiskWatch(self.key.workspace, limits.quota)
        try:
            stream = apart(self._begin, cancel, late=engine.drop)
        except EngineError as error:
            raise Ended(f"the engine did not begin the job: {error}") from error
        line = engine.line(stream)
        trouble = full = ""
        try:
            until = START_S + limits.wall_s
            full = self._carry(line, memoryview(packed + stdin), frames, out, held, until, watch, cancel)
        except OSError as error:
            trouble = f"the engine went away: {error}"
        except TimeoutExpired:
            trouble = f"still there {START_S:g} s after its time"
        finally:
            engine.drop(stream)
        wall_ms = int(1000 * (time.monotonic() - began))
        found = report(held.last, nonce)
        if found is None:
            held.let_go()
            trouble = trouble or "the container ended before the job did"
        return Step(found, out, err, wall_ms, trouble, full)

    def _begin(self) -> Any:
        """The engine's stream to a guest that waits for a job. Raises: EngineError."""
        with engine_errors():
            made = self.client.exec_create(
                self.number, ["/opt/spak/guest", "step"], stdin=True, stdout=True, stderr=True
            )
            return self.client.exec_start(made["Id"], socket=True)

    def _carry(
        self,
        line: socket.socket,
        rest: memoryview,
        frames: Frames,
        out: Collector,
        err: Held,
        until: float,
        watch: DiskWatch | None,
        cancel: Cancel | None,
    ) -> str:
        """Bytes both ways until the engine closes its side, for `until` seconds at most, or until the job is
        over its quota, and then why."""
        line.setblocking(False)
        clock, ended = Awake(), False
        outputs: Mapping[int, Callable[[bytes], None]] = {1: out.feed, 2: err.feed}
        while True:
            check(cancel)
            left = until - clock.now()
            if left <= 0 and ended:
                return ""
            if left <= 0:
                raise TimeoutExpired
            if watch is not None and (why := watch.over()):
                return why
            readable, writable, _ = select.select([line], [line] if rest else [], [], min(left, TURN_S))
            if not (ended or readable or writable) and (self.heard.ended.is_set() or self.out_of_memory(0)):
                ended, until = True, clock.now() + _LAST_WORDS_S  # gVisor leaves the stream open then
            if writable:
                try:
                    rest = rest[line.send(rest[:_CHUNK]) :]
                except BlockingIOError:
                    pass
                except BrokenPipeError:
                    rest = rest[:0]
                if not rest:
                    with suppress(OSError):
                        line.shutdown(socket.SHUT_WR)
            if readable:
                try:
                    data = line.recv(_CHUNK)
                except BlockingIOError:
                    continue
                if not data:
                    return ""
                for number, piece in frames.feed(data):
                    if number in outputs:
                        outputs[number](piece)

    def out_of_memory(self, within_s: float) -> bool:
        """Whether it ran out of memory; the engine's word of it may take a moment."""
        return engine.oom_kills(self.counter) > 0 or self.heard.oom.wait(within_s)

    def kill(self) -> None:
        """End everything inside now; the container goes with it."""
        engine.remove(self.client, self.number)

    def close(self) -> None:
        """Remove it and give its user back; idempotent."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
        self.watcher.forget(self.number)
        engine.drop(self.hold)
        engine.remove(self.client, self.number)
        if self.slot is not None:
            self.slot.release()


class TimeoutExpired(Exception):
    """The guest did not keep the time."""


class Pool:
    """The idle containers of this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._idle: dict[Key, list[Warm]] = {}
        self._pid = os.getpid()

    def take(self, key: Key) -> Warm | None:
        """A warm container of that kind, if one is kept; it is nobody else's from now on."""
        with self._guard:
            self._forget_parents()
            kept = self._idle.get(key)
            found = kept.pop() if kept else None
        if found is not None and found._timer is not None:
            found._timer.cancel()
        return found

    def give(self, warm: Warm) -> None:
        """Keep it for a while; afterwards it is closed."""
        timer = threading.Timer(IDLE_S, self._close, (warm,))
        timer.daemon = True
        warm._timer = timer
        with self._guard:
            self._idle.setdefault(warm.key, []).append(warm)
        timer.start()

    def close(self) -> None:
        """Close all that are idle."""
        with self._guard:
            self._forget_parents()
            found = [warm for kept in self._idle.values() for warm in kept]
            self._idle = {}
        for warm in found:
            if warm._timer is not None:
                warm._timer.cancel()
            warm.close()

    def _forget_parents(self) -> None:
        """A fork has its parent's containers in memory, and may neither use nor end them."""
        if self._pid != os.getpid():
            self._idle, self._pid = {}, os.getpid()

    def _close(self, warm: Warm) -> None:
        with self._guard:
            kept = self._idle.get(warm.key, [])
            if warm not in kept:
                return
            kept.remove(warm)
            if not kept:
                del self._idle[warm.key]
        warm.close()


def _created(client: Any, key: Key, labels: Mapping[str, str], more: Mapping[str, Any], notice: Path) -> str:
    body = engine.container(
        key.image, key.user, key.workspace, key.writable, key.binds, key.memory_bytes, key.processes,
        labels, more, key.closed is not None, [one[:2] for one in key.masked], notice,
        key.home, key.shown,
    )  # fmt: skip
    with engine_errors():
        return str(client.create_container_from_config(body, f"spak-{secrets.token_hex(8)}")["Id"])


def _notice_for_engine(workspace: Path, notice: Path) -> Path:
    """A copy of the notice where the engine sees it: a worker in a container has other files than the engine,
    but for the folder of the runs."""
    copy = workspace.parent / NOTICE
    aside = copy.with_name(f"{NOTICE}-{secrets.token_hex(8)}")
    aside.write_bytes(notice.read_bytes())
    aside.chmod(0o444)
    aside.replace(copy)
    return copy


def open_container(
    client: Any,
    watcher: engine.Watcher,
    key: Key,
    slot: slots.Slot | None,
    labels: Mapping[str, str],
    more: Mapping[str, Any],
) -> Warm:
    """Start a container for the key. Raises: EngineError; then nothing of it is left."""
    info = key.workspace.stat()
    place = (info.st_dev, info.st_ino)
    notice = data.path(chain.MASK)
    try:
        number = _created(client, key, labels, more, notice)
    except EngineError as error:
        if not key.masked or str(notice) not in str(error):
            raise
        number = _created(client, key, labels, more, _notice_for_engine(key.workspace, notice))
    hold = None
    try:
        heard = watcher.watch(number)
        with engine_errors():
            hold = client.attach_socket(number, params={"stdin": 1, "stream": 1})
            client.start(number)
    except BaseException:
        watcher.forget(number)
        if hold is not None:
            engine.drop(hold)
        engine.remove(client, number)
        raise
    counter = engine.oom_counter(client, number)
    return Warm(client, key, number, hold, heard, watcher, slot, place, counter)
