"""Proposers: generators of candidates, one file each, and the table that lists them."""

from __future__ import annotations

from collections.abc import Callable

from spak.ports import Asking, Proposer, Searching
from spak.proposers.evolve import Evolve
from spak.proposers.first_tests import FirstTests
from spak.proposers.migrate import Migrate, MigrateDjango
from spak.proposers.outside import Outside
from spak.proposers.repair import Repair
from spak.proposers.repair.suspects import Suspects
from spak.proposers.tuner import Tuner

PROPOSERS: dict[str, Callable[[], Proposer | Asking | Searching]] = {
    "evolve": Evolve,
    "first_tests": FirstTests,
    "migrate": Migrate,
    "migrate_django": MigrateDjango,
    "outside": Outside,
    "repair": Repair,
    "suspects": Suspects,
    "tuner": Tuner,
}

__all__ = ["PROPOSERS"]
