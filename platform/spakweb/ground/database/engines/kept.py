"""Connections to the database that one thread is done with and the next one goes on with.

A worker has a thread for each run, and a run holds no connection while it works: it would open one several
times, which takes as long as a few steps. After `keep(most)` a connection that Django closes is kept instead,
at most so many of a process, and Django gets the one kept last where it would open one. Without `keep`
nothing is kept.

Never kept: what had an error, or is inside a transaction. Never given: what the server has said goodbye to,
what does not answer (asked where it was kept for more than ASK_S), what a forked process had from its parent.
Closed: what nobody took for IDLE_S, and what is older than AGE_S. So whoever gets one that is broken all the
same is as badly off as with one that was just opened. Sessions are alike: no code of ours changes one beyond
the end of a transaction.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ASK_S = 1.0
IDLE_S = 10.0
AGE_S = 1800.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Kept:
    """A connection of the driver, and when it was opened and handed in, by a clock that nobody sets."""

    connection: Any
    opened: float
    since: float


class Shelf:
    """The connections of one process that are not in use; any thread takes and gives."""

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self.given = 0
        """How often one was taken from here."""
        self._lock = threading.Lock()
        self._kept: dict[str, list[Kept]] = {}

    def take(self, name: str, lives: Callable[[Any, bool], bool]) -> Kept | None:
        """The one of that database that was handed in last and that `lives(connection, ask)`, which may ask
        the server if it must; None where there is none."""
        while True:
            with self._lock:
                kept = self._kept.get(name)
                found = kept.pop() if kept else None
            if found is None:
                return None
            idle_s = time.monotonic() - found.since
            if idle_s < IDLE_S and lives(found.connection, idle_s > ASK_S):
                self.given += 1
                return found
            _shut(found.connection)

    def give(self, name: str, connection: Any, opened: float) -> bool:
        """Keep a connection that is in order; False where it is to be closed."""
        now = time.monotonic()
        if now - opened > AGE_S:
            return False
        with self._lock:
            if sum(map(len, self._kept.values())) >= self.most:
                return False
            self._kept.setdefault(name, []).append(Kept(connection, opened, now))
        return True

    def close_idle(self, idle_s: float = IDLE_S) -> int:
        """Close those that nobody took for so long; gives how many."""
        before = time.monotonic() - idle_s
        with self._lock:
            old = [one for kept in self._kept.values() for one in kept if one.since <= before]
            self._kept = {
                name: [one for one in kept if one.since > before] for name, kept in self._kept.items()
            }
        for one in old:
            _shut(one.connection)
        return len(old)

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._kept.values()))


shelf = Shelf()
_of_parents: list[Shelf] = []
"""Never closed here: that would end the session of the parent."""


def keep(most: int) -> None:
    """Keep up to so many connections of this process from now on; 0 closes them all."""
    shelf.most = most
    if not most:
        shelf.close_idle(0.0)


def _shut(connection: Any) -> None:
    try:
        connection.close()
    except Exception as error:  # it is of no use to anybody, whatever the driver says
        log.debug("a kept connection was not closed: %s", error)


def _after_fork() -> None:
    global shelf
    _of_parents.append(shelf)
    shelf = Shelf(shelf.most)


os.register_at_fork(after_in_child=_after_fork)
