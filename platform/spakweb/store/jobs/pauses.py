"""The back-off of all work: pauses between tries, as lists of seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta


def doubling(first_s: float, times: int) -> tuple[float, ...]:
    """Pauses that double, in seconds: as many as there are further tries."""
    return tuple(first_s * 2**time for time in range(times))


def pause(waits: Sequence[float], tries: int) -> timedelta:
    """The pause after so many tries in a row, one at least; the last one repeats."""
    return timedelta(seconds=waits[min(tries, len(waits)) - 1])
