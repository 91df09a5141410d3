"""Slots of this worker: so many runs are computed at the same time; waits for a model hold none.

`open_slots(most)` when a worker begins. `use(work)` does the work in a thread of its own and comes back when
it has ended or, sooner, when it waits for a model for the first time: the thread of the worker's pool is then
free for another message. Back from the model the work waits for a slot again. Where no slots were opened
(tests, commands), `use` does the work in place. A process that ends loses what is away as it loses what it
computes: leases end, and other workers go on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from spak.files.faults import is_fault
from spakweb.ground.database.engines import kept

MOST_WAITING = 64
"""How many runs of a worker may wait for models; those beyond keep their slots."""
LOOK_S = 0.1
OTHERS, CONNECTIONS = 2, 16
"""Threads beside the slots that use the database now and then, and how many unused connections are kept at
most. A slot gives its own back while it works."""

log = logging.getLogger(__name__)


class Slots:
    """How many runs this process advances at a time."""

    def __init__(self, most: int) -> None:
        self._free, self._waiting = most, 0
        self._changed = threading.Condition()
        self._pool = ThreadPoolExecutor(most + MOST_WAITING, "run")
        start_threads(self._pool, most)

    def take(self, leave: Callable[[], bool] = bool) -> None:
        """Wait for a slot; not any longer once `leave` says so."""
        with self._changed:
            while self._free <= 0 and not leave():
                self._changed.wait(LOOK_S)
            self._free -= 1

    def give(self) -> None:
        """Give a slot back."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def goes(self) -> bool:
        """Whether one more may wait without a slot; gives its slot back."""
        with self._changed:
            if self._waiting >= MOST_WAITING:
                return False
            self._waiting += 1
        self.give()
        return True

    def comes(self, leave: Callable[[], bool]) -> None:
        """Take a slot again after waiting outside of one; `leave` says when to wait no longer."""
        with self._changed:
            self._waiting -= 1
        self.take(leave)

    def use(self, work: Callable[[], None]) -> None:
        """Raises: what the work raised before it waited for a model."""
        self.take()
        turn = Turn(self)
        try:
            self._pool.submit(turn.run, work)
        except RuntimeError as error:
            if not is_fault(error):
                raise  # else it is queued all the same, for one of the threads that there are
        turn.over.wait()
        if turn.error is not None:
            raise turn.error


class Turn:
    """One piece of work and the thread that does it."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.over = threading.Event()
        """The worker's thread is free: the work has ended, or waits."""
        self.error: BaseException | None = None

    def run(self, work: Callable[[], None]) -> None:
        """Do the work in a slot and keep its error."""
        from django.db import connections

        _here.turn = self
        try:
            work()
        except BaseException as error:
            if self.over.is_set():
                log.exception("a run was left where it is")
            self.error = error
        finally:
            _here.turn = None
            connections.close_all()
            self.slots.give()
            self.over.set()


def start_threads(pool: ThreadPoolExecutor, many: int) -> None:
    """Start so many threads of a pool now: later the host may have none left."""
    met = threading.Barrier(many)
    for done in [pool.submit(met.wait) for _ in range(many)]:
        done.result()


_here = threading.local()
_slots: Slots | None = None


def open_slots(most: int) -> None:
    """Let this process have so many slots; their threads hand their connections to the database on."""
    global _slots
    kept.keep(min(most + OTHERS, CONNECTIONS))
    _slots = Slots(most)


def use(work: Callable[[], None]) -> None:
    """Do some work in a slot, or at once where there are none."""
    if _slots is None:
        work()
    else:
        _slots.use(work)


@contextmanager
def without_slot(leave: Callable[[], bool]) -> Iterator[None]:
    """Around a call of a model; `leave` says that the run is to stop, and needs no slot for that."""
    turn: Turn | None = getattr(_here, "turn", None)
    if turn is None or not turn.slots.goes():
        yield
        return
    turn.over.set()
    try:
        yield
    finally:
        turn.slots.comes(leave)
