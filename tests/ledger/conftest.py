"""What tests of ledgers share: a place with little space."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], object]]:
    """A place with little space: a small file system for root, a limit on file size for others."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() == 0:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
        )
        if made.returncode == 0:
            yield lambda _: None
            subprocess.run(["umount", "-l", str(place)], check=True)
            return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
