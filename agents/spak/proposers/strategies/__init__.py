"""The strategies of the tuner: one file each, and the table that lists them.

A strategy is a function from a Search to the number of the point to try next, or None when no point is left.
It is pure: the search holds all that was seen, and a generator seeded for this draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spak.proposers.strategies import bayes, climb, random_search
from spak.proposers.strategies.search import Search

Strategy = Callable[[Search], int | None]

STRATEGIES: Mapping[str, Strategy] = {
    "bayes": bayes.draw,
    "climb": climb.draw,
    "random": random_search.draw,
}

WITH_PRIOR = ("bayes",)
"""Those that take what an earlier search found."""

__all__ = ["STRATEGIES", "WITH_PRIOR", "Search", "Strategy"]
