"""Proposers: generators of candidates, one file each, and the table that lists them."""

from __future__ import annotations

from collections.abc import Callable

from spak.ports import Asking, Proposer
from spak.proposers.evolve import Evolve
from spak.proposers.tuner import Tuner

PROPOSERS: dict[str, Callable[[], Proposer | Asking]] = {
    "evolve": Evolve,
    "tuner": Tuner,
}

__all__ = ["PROPOSERS"]
