"""What a test needs of the machine: where it is missing the test skips, and in CI it fails.

`.ci/run` installs it, so a test that skips there would be one that nobody runs.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest


def missing(what: str, package: str) -> None:
    """Skips where it may be missing; in CI it may not."""
    absent(f"{what} is not on this machine: apt-get install {package}")


def program(name: str, package: str = "") -> None:
    """A program of the path; its package has its name unless another is given."""
    if shutil.which(name) is None:
        missing(name, package or name)


def module(name: str) -> None:
    """A package of Python that `make setup` installs and users do not get."""
    if find_spec(name) is None:
        absent(f"{name} is not installed: make setup")


def absent(words: str) -> None:
    """Skips, or fails in CI, with these words."""
    if os.environ.get("CI"):
        pytest.fail(words)
    pytest.skip(words)
