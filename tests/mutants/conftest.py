"""Bytecode that the copies of the package share."""

from __future__ import annotations

import compileall

import pytest

from mutants_kit import ROOT


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """It is valid for a copy whose sources have the same times and sizes."""
    assert compileall.compile_dir(ROOT / "agents/spak", quiet=1)
