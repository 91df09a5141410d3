"""Marks that follow from where a test is and what it uses, so that nobody has to remember them.

Tests below `tests/faults/` are `faults`, tests with a hypothesis strategy are `fuzz`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FAULTS = Path(__file__).parent / "faults"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", default="", help="write the pictures of the platform to this folder")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FAULTS):
            item.add_marker(pytest.mark.faults)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.fuzz)
