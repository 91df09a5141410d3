"""The watchdog: has the run done the same thing, with the same result, in the same place, k times?

One tuple (task, action, progress key, R3) per committed tool or validator; the window is short and bounded.
R3 in the tuple is what tells a loop from progress; counting tuples in a window, and not only repeats in a
row, also finds A-B-A-B and write-and-undo. Source: seed 001 R1, DESIGN.md section 4.
"""

from __future__ import annotations

from spak import canon
from spak.kernel.state import Watchdog


def observe(dog: Watchdog, task: str, action: str, key: str, root: str, size: int) -> tuple[Watchdog, int]:
    """The watchdog that has seen one more result, and how often its window now holds that result."""
    mark = canon.digest("\0".join((task, action, key, root)).encode())
    window = (*dog.window, mark)[-size:]
    return Watchdog(dog.elapsed_ms, dog.steps, window), window.count(mark)
