"""Campaigns whose steps and runs a test calls as workers would; nothing is sent to a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import platform_campaigns as kit
from runs_kit import tables
from spakweb.store.specs.models import Spec
from spakweb.store.suites.models import Suite
from spakweb.work.jobs import queue as jobs
from spakweb.work.worker import queue


@pytest.fixture
def world(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cast: Any
) -> Iterator[tuple[Spec, Suite]]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    monkeypatch.setattr(jobs, "send", lambda kind, key, queue="default": None)
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path / "data"
    with tables():
        yield kit.ground(cast["alice"], cast.team)
