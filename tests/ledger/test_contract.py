"""The contract of a ledger, on run folders and in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ledger_contract import *  # noqa: F403
from ledger_contract import Targets
from spak.ledger import FileLedgers, MemoryLedgers
from spak.ports import Ledgers

MAKERS: dict[str, Callable[[Path], Ledgers]] = {
    "files": lambda place: FileLedgers(place / "runs"),
    "memory": lambda place: MemoryLedgers(),
}


@pytest.fixture(params=MAKERS)
def ledgers(request: pytest.FixtureRequest, tmp_path: Path) -> Ledgers:
    return MAKERS[request.param](tmp_path)


@pytest.fixture
def targets() -> Targets:
    return list(MAKERS.values())
