"""Time in which this process was at work: what a job's time limit is measured with.

A supervisor may be stopped (SIGSTOP, a paused container) while its job goes on or ends. The monotonic clock
goes on meanwhile, so a deadline would have passed when it wakes. Whoever waits calls `now()` at least every
half second; a gap longer than GAP_S between two calls is not counted.
"""

from __future__ import annotations

import time

GAP_S = 1.0


class Awake:
    """A clock in seconds that starts at 0. Not for several threads."""

    def __init__(self) -> None:
        self._seen = time.monotonic()
        self._counted = 0.0

    def now(self) -> float:
        """Seconds that the machine was awake; a gap of more than GAP_S between two looks counts as sleep."""
        seen = time.monotonic()
        gap = seen - self._seen
        self._seen = seen
        if gap <= GAP_S:
            self._counted += gap
        return self._counted
