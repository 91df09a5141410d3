"""`random`: an untried point drawn evenly. The yardstick for the others."""

from __future__ import annotations

from spak.proposers.strategies.search import Search


def draw(search: Search) -> int | None:
    """The number of the next point, None where nothing is left: any untried one."""
    return search.anywhere()
