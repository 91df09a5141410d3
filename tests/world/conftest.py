"""A folder of code with its model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from world_kit import Code, in_process


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Code]:
    in_process(monkeypatch)
    made = Code(tmp_path)
    yield made
    made.store.close()
