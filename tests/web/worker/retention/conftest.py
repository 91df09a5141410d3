"""A person and their team, with a data folder of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runs_kit import tables
from spakweb.ground.teams.models import Team, User
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import queue


@pytest.fixture
def user(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT = tmp_path / "data/media"
    settings.DATA_DIR = tmp_path / "data"
    with tables():
        made = User.objects.create_user("alice", "alice@spak.example", "a long secret")
        create_team(made, "Tuners")
        yield made


@pytest.fixture
def team(user: User) -> Team:
    return Team.objects.get()
