"""What answers of models cost is read and summed by spak.costs, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spak.costs import NOTHING, Cost, cost_of

ROOT = Path(__file__).parent.parent
READS = re.compile(r"""side(\.get\(|\[)["'](tokens|cost_nanousd)["']""")


@pytest.mark.parametrize(
    ("side", "cost"),
    [
        ({"tokens": 7, "cost_nanousd": 11, "usage": {"input": 5}}, Cost(1, 7, 11, 1)),
        ({"tokens": 7, "cost_nanousd": 0}, Cost(1, 7, 0, 1)),
        ({"tokens": 7}, Cost(1, 7)),
        ({"cost_nanousd": 11}, Cost(1, 0, 11, 1)),
        ({"by": "alice", "ms": 9}, NOTHING),
        ({"tokens": True, "cost_nanousd": -1}, NOTHING),
        ({"tokens": "7"}, NOTHING),
        ({}, NOTHING),
        (None, NOTHING),
        ([1], NOTHING),
    ],
)
def test_the_cost_of_a_record(side: Any, cost: Cost) -> None:
    assert cost_of(side) == cost


def test_costs_add_up() -> None:
    paid, free = cost_of({"tokens": 7, "cost_nanousd": 11}), cost_of({"tokens": 2})
    assert paid + free + NOTHING == Cost(2, 9, 11, 1)


def test_no_other_module_reads_it_from_a_record() -> None:
    files = [*(ROOT / "agents").rglob("*.py"), *(ROOT / "platform").rglob("*.py")]
    assert [str(path) for path in files if READS.search(path.read_text(encoding="utf-8"))] == []
