"""A failing seed with fewer faults: leave out as many of its plan as it still fails without.

First halves, then quarters, then one by one, until none can be left out.
"""

from __future__ import annotations

from simulate.faults import Fault, drawn
from simulate.lanes import Job, Lanes
from simulate.world import Found


def shrunk(lanes: Lanes, seed: int, mutant: str = "") -> Found:
    """What the shortest plan that was found gives. Raises: ValueError where the seed does not fail."""
    plan: tuple[Fault, ...] = tuple(drawn(seed))
    best = lanes.one(Job(seed, plan, mutant))
    if not best.violation:
        raise ValueError(f"seed {seed} does not fail")
    size = max(1, len(plan) // 2)
    while True:
        at, shorter = 0, False
        while at < len(plan):
            tried = plan[:at] + plan[at + size :]
            found = lanes.one(Job(seed, tried, mutant))
            if found.violation:
                plan, best, shorter = tried, found, True
            else:
                at += size
        if size == 1 and not shorter:
            return best
        size = max(1, size // 2)
