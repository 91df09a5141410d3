"""A case with one sealed check, and the files that a right run left."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealed_kit import CHECK, READS
from spak import config
from spak.evolve.suites import Case, Right
from spak.evolve.suites.sealed import Bench
from spak.sandbox import LAUNCHERS


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(LAUNCHERS["restricted"](), toolchain=config.toolchain())


@pytest.fixture
def case(tmp_path: Path) -> Case:
    folder = tmp_path / "case"
    (folder / "workspace").mkdir(parents=True)
    (folder / "sealed").mkdir()
    (folder / "workspace/thing.py").write_text("def double(n):\n    return n\n")
    (folder / "sealed/check.py").write_text(READS)
    return Case("case", folder, right=Right(sealed=(CHECK,)))


@pytest.fixture
def left(tmp_path: Path) -> Path:
    place = tmp_path / "left"
    place.mkdir()
    (place / "thing.py").write_text("def double(n):\n    return 2 * n\n")
    return place
