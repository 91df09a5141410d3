"""Processes that go away while the walk over them looks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from spak.sandbox import procfs


@pytest.mark.parametrize("gone", [FileNotFoundError, ProcessLookupError])
def test_process_that_ends_during_the_walk_counts_as_nothing(
    monkeypatch: pytest.MonkeyPatch, gone: type[OSError]
) -> None:
    """The kernel says ENOENT where a folder is opened too late, and ESRCH where it is read too late."""

    def late(folder: Path) -> Iterator[Path]:
        raise gone(str(folder))

    monkeypatch.setattr(Path, "iterdir", late)
    assert procfs.tree(os.getpid()) == [os.getpid()]
    assert procfs.usage(os.getpid()).processes == 1
