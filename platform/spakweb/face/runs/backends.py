"""Which backends work on this host, for the form that starts a run.

Asking each takes up to some seconds where a server does not answer, so it is done in a thread, at most every
`FRESH_S`, and a page waits `PATIENCE_S` for the first answer. It is a hint: a worker on another host may have
what this one lacks, so nothing is refused for it.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from spak.llm import BACKENDS

FRESH_S = 60.0
PATIENCE_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """Whether a backend works on this host; None while nobody has asked it."""

    name: str
    works: bool | None
    """None while nobody knows."""
    why: str = ""
    """What it says of itself, or why it does not work and what would help."""


class Survey:
    """The last answer, and the thread that asks for the next one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: tuple[Seen, ...] = ()
        self._asked = float("-inf")
        self._thread: threading.Thread | None = None

    def seen(self, patience_s: float | None = None) -> tuple[Seen, ...]:
        """Every backend, those that work first; waits PATIENCE_S or so long for the first answer."""
        with self._lock:
            thread = self._thread
            if thread is None and time.monotonic() - self._asked > FRESH_S:
                thread = self._thread = threading.Thread(target=self._ask, name="backends", daemon=True)
                thread.start()
        if thread is not None and not self._found:
            thread.join(PATIENCE_S if patience_s is None else patience_s)
        found = self._found or tuple(Seen(name, None) for name in BACKENDS)
        return tuple(sorted(found, key=lambda one: (one.works is False, one.name)))

    def _ask(self) -> None:
        try:
            self._found = look()
        except Exception:  # a hint: the page is shown without it
            _log.exception("the backends could not be looked at")
        finally:
            with self._lock:
                self._asked = time.monotonic()
                self._thread = None


def look() -> tuple[Seen, ...]:
    """Asks each backend once, as `spak doctor` does."""
    from spak import config
    from spak.llm.survey import survey

    return tuple(
        Seen(row.name, row.ok, row.detail if row.ok else "; ".join(filter(None, (row.detail, row.mend))))
        for row in survey(config.settings().llm)
        if row.name in BACKENDS
    )


seen = Survey().seen
