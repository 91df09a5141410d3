"""A folder of files and the workspace that it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from spak.workspace import Workspace
from workspace.trees import plant


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (tmp_path / "outside").write_bytes(b"not ours")
    plant(made)
    return made


@pytest.fixture
def space(folder: Path, tmp_path: Path) -> Workspace:
    return Workspace(folder, tmp_path / "store", wait_s=0.2)
