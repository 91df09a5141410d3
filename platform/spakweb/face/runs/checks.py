"""Checks of ledgers that take longer than a page: one at a time, in one thread, with progress.

`begin(run)` gives the Check that is under way, or a new one of the run as it is now; whoever asks waits a
moment for its `result` and else shows `share`. A result is kept in the cache too, and shown for as long as no
record came after it (pages.checked_key). A process that ends forgets what it was about.
"""

from __future__ import annotations

import logging
import threading
from queue import SimpleQueue
from typing import Any

from django.core.cache import cache
from django.db import connection

from spakweb.face.runs import run_parts
from spakweb.store.ledger import export
from spakweb.store.runs.models import Run

KEPT_S, KEPT = 24 * 3600, 100
WAIT_S = 1.5
"""How long an answer waits for a check before it tells how far it is."""
FAILED = {"broken": True, "problems": ["The log of the server has the details."]}

log = logging.getLogger(__name__)


class Check:
    """One check of a run's ledger that several requests wait for."""

    def __init__(self, run: Run) -> None:
        self.run, self.key = run, run_parts.checked_key(run)
        self.done = threading.Event()
        self.result: dict[str, Any] | None = None
        self.seen = 0

    @property
    def share(self) -> str:
        """How far it is, in words."""
        return f"{self.seen:,} of {self.run.count:,} records checked" if self.seen else "waiting for its turn"

    def wait(self) -> dict[str, Any] | None:
        """The result, None after WAIT_S seconds without one."""
        self.done.wait(WAIT_S)
        return self.result

    def work(self) -> None:
        """Check the ledger; a failure of ours is a result too."""
        try:
            self.result = export.checked(self.run, self._progress)
            cache.set(self.key, self.result, KEPT_S)
        except Exception:
            log.exception("run %s was not checked", self.run.key)
            self.result = FAILED
        finally:
            connection.close()
            self.done.set()

    def _progress(self, seen: int) -> None:
        self.seen = seen


_going: dict[int, Check] = {}
"""The last check of each run, also one that has ended: whoever waits comes again for its result."""
_lock = threading.Lock()
_line: SimpleQueue[Check] = SimpleQueue()
_thread: threading.Thread | None = None
"""Deriving is work for one core: more at a time would only slow the pages down."""


def _work() -> None:
    while True:
        _line.get().work()


def going(run: Run) -> Check | None:
    """The check of the run that is under way."""
    found = _going.get(run.pk)
    return found if found is not None and not found.done.is_set() else None


def begin(run: Run, same: str = "") -> Check:
    """The one under way, or a new one; also one that has ended, if it is the `same` that was waited for: of a
    run that grows there would else be one after the other."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_work, name="run-check", daemon=True)
            _thread.start()
        found = _going.pop(run.pk, None)
        if found is None or (found.done.is_set() and found.key != same):
            found = Check(run)
            _line.put(found)
        _going[run.pk] = found
        for pk in [pk for pk, check in _going.items() if check.done.is_set()][:-KEPT]:
            del _going[pk]
    return found
