"""The marker of tests that need real weights."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "model: runs a small real model (fetched once from the package index)")
