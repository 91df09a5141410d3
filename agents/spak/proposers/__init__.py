"""Proposers: generators of candidates that are not models, one file each, and the table that lists them."""

from __future__ import annotations

from collections.abc import Callable

from spak.ports import Proposer
from spak.proposers.tuner import Tuner

PROPOSERS: dict[str, Callable[[], Proposer]] = {
    "tuner": Tuner,
}

__all__ = ["PROPOSERS"]
