"""What the product uses of `threading`, `queue`, `time` and futures, with the baton in place of waiting.

`installed(modules)` puts these names into modules of the product in the place of the library's. In a thread
that is not simulated they do what the library's do, as far as one thread alone needs it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from simulate.baton import Process, Scheduler

EPOCH_S = 1_800_000_000.0
"""The date at which virtual time begins."""


class Here:
    """The simulation of this process; one at a time."""

    scheduler: Scheduler = Scheduler(0)
    jump_s = 0.0
    """By so much the date of all machines was set wrong."""


def mine() -> bool:
    """Whether the caller is a simulated thread."""
    return Here.scheduler.mine()


def process() -> Process:
    """The simulated process of the caller; that of the preparation where it is in none."""
    found = Here.scheduler.process if mine() else None
    return OUTSIDE if found is None else found


OUTSIDE = Process("outside")


# ---- time


def monotonic() -> float:
    """Virtual seconds."""
    return Here.scheduler.now + 1000.0 if mine() else time.monotonic()


def wall() -> float:
    """The date as this simulated host has it, in seconds."""
    if not mine():
        return EPOCH_S
    return EPOCH_S + Here.scheduler.now + Here.jump_s + process().skew_s


def sleep(seconds: float) -> None:
    """Wait in virtual time."""
    if mine():
        Here.scheduler.sleep(seconds)


class Clock:
    """Stands for the module `time`."""

    monotonic = staticmethod(monotonic)
    time = staticmethod(wall)
    sleep = staticmethod(sleep)

    @staticmethod
    def time_ns() -> int:
        """As `time`, in nanoseconds."""
        return int(wall() * 1e9)

    @staticmethod
    def perf_counter() -> float:
        """As `monotonic`."""
        return monotonic()

    @staticmethod
    def perf_counter_ns() -> int:
        """As `monotonic`, in nanoseconds."""
        return int(monotonic() * 1e9)

    monotonic_ns = perf_counter_ns
    thread_time_ns = process_time_ns = perf_counter_ns  # what a step used is in its record
    thread_time = process_time = perf_counter

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


# ---- locks


class Lock:
    """A lock, or one that its owner may take again."""

    def __init__(self, again: bool = False, places: int = 1) -> None:
        self._again, self._places = again, places
        self._holders: list[Any] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not mine():
            return True
        scheduler = Here.scheduler
        me = scheduler.current
        if self._again and me in self._holders:
            self._holders.append(me)
            return True
        self._forget_dead()
        if len(self._holders) >= self._places:
            if not blocking:
                return False
            if not scheduler.wait(self._is_free, None if timeout < 0 else timeout):
                return False
        self._holders.append(me)
        return True

    def _is_free(self) -> bool:
        self._forget_dead()
        return len(self._holders) < self._places

    def _forget_dead(self) -> None:
        """Of a process that was killed nobody gives it back."""
        if any(task.ended for task in self._holders):
            self._holders = [task for task in self._holders if not task.ended]

    def release(self) -> None:
        if not mine():
            return
        me = Here.scheduler.current
        if me in self._holders:
            self._holders.remove(me)
        elif self._holders:
            self._holders.pop()

    def locked(self) -> bool:
        return len(self._holders) >= self._places

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Event:
    """A flag that can be waited for."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not mine():
            return self._set
        Here.scheduler.wait(self.is_set, timeout)
        return self._set


class Condition:
    """A lock with a wait for news."""

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = lock or Lock(again=True)
        self._news = 0
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        seen = self._news
        self._lock.release()
        came = Here.scheduler.wait(lambda: self._news != seen, timeout)
        self._lock.acquire()
        return came

    def notify(self, n: int = 1) -> None:
        self._news += 1

    notify_all = notify


class Thread:
    """A thread of the simulated process that makes it."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self._target, self._args, self._kwargs = target, args, kwargs or {}
        self.name, self.daemon = name or "thread", daemon
        self._task: Any = None

    def start(self) -> None:
        owner = process()
        self._task = Here.scheduler.spawn(f"{owner.name} {self.name}", owner, self.run)

    def run(self) -> None:
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.ended

    def join(self, timeout: float | None = None) -> None:
        if self._task is not None:
            Here.scheduler.wait(lambda: bool(self._task.ended), timeout)


class Queue:
    """Stands for SimpleQueue."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        if mine():
            Here.scheduler.point("queue", "put")
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._items and block and mine():
            Here.scheduler.wait(lambda: bool(self._items), timeout)
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def empty(self) -> bool:
        return not self._items


class Threading:
    """Stands for the module `threading`."""

    Lock = staticmethod(lambda: Lock())
    RLock = staticmethod(lambda: Lock(again=True))
    Semaphore = BoundedSemaphore = staticmethod(lambda value=1: Lock(places=value))
    Event, Condition, Thread = Event, Condition, Thread

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


def patient(real: Callable[..., Any]) -> Callable[..., Any]:
    """`Future.result` or `.exception`, with the baton handed on until it is done."""

    def waited(self: Future[Any], timeout: float | None = None) -> Any:
        if mine() and not self.done():
            Here.scheduler.wait(self.done, timeout)
        elif mine() and process().dead:
            Here.scheduler.point("future", "result")
        return real(self, 0 if mine() else timeout)

    return waited


CLOCK, THREADING = Clock(), Threading()
_STANDS_FOR: list[tuple[str, Any, Any]] = [
    ("threading", threading, THREADING),
    ("time", time, CLOCK),
    ("SimpleQueue", queue.SimpleQueue, Queue),
]


def install(modules: dict[str, Any]) -> None:
    """Put these names into modules of the product."""
    for module in modules.values():
        names = vars(module)
        for name, real, stand_in in _STANDS_FOR:
            if names.get(name) is real:
                names[name] = stand_in
    if not hasattr(Future.result, "__wrapped__"):
        for name in ("result", "exception"):
            made = patient(getattr(Future, name))
            made.__wrapped__ = True  # type: ignore[attr-defined]
            setattr(Future, name, made)
