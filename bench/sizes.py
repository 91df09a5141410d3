"""How much a module of the bench measures: enough for a figure, or as little as shows that it still can.

`python -m bench --quick` sets SPAK_BENCH_QUICK for the processes of the modules. Quick figures measure the
same things and are too noisy to be held to an aim; CI runs them so that a module that breaks is noticed.
"""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")
VARIABLE = "SPAK_BENCH_QUICK"
QUICK = os.environ.get(VARIABLE) == "1"


def sized(full: T, quick: T) -> T:
    """The first, or with `--quick` the second."""
    return quick if QUICK else full
