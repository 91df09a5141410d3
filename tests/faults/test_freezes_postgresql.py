"""Half of five hundred freezes: workers stopped anywhere, either woken first, on PostgreSQL.

In a file of its own, so that `make faults` gives it a process of its own: it mostly waits.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fault_points import FaultPoints
from freeze_kit import freezes

pytestmark = [pytest.mark.sandbox, pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(6000)]


def test_five_hundred_freezes(tmp_path: Path, fault_points: FaultPoints) -> None:
    fault_points["frozen"] += freezes("postgresql", tmp_path)
