"""A rate limit for the log: the same message, of the same error, at most once a minute.

While a disk is full or a database cannot be reached, threads that retry twice a second would fill the log.
What was left out is counted and reported with the next one. It remembers the newest `REMEMBERED` messages.
"""

from __future__ import annotations

import logging
import threading
import time

EVERY_S = 60.0
REMEMBERED = 1000


class RateLimit(logging.Filter):
    """A filter that lets a repeated log line through at most once in EVERY_S."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: dict[tuple[str, str, str], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line goes to the log."""
        try:
            words, now = record.getMessage(), time.monotonic()
        except Exception:  # its arguments are wrong: whoever writes it says so, and its caller goes on
            return True
        kind = record.exc_info[0] if record.exc_info else None
        key = record.name, words, kind.__name__ if kind else ""
        with self._lock:
            at, left_out = self._logged.pop(key, (-EVERY_S, 0))
            if now - at < EVERY_S:
                self._logged[key] = at, left_out + 1
                return False
            self._logged[key] = now, 0
            if len(self._logged) > REMEMBERED:
                del self._logged[next(iter(self._logged))]
        if left_out:
            record.msg, record.args = f"{words} (and {left_out} times before)", ()
        return True
