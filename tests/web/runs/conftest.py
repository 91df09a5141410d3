"""Runs that really ran: a worker's `advance` is called here, as a task would call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runs_kit import tables
from spakweb.store.runs.models import Run
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute, queue

HELLO = """\
task Hello {
  step greet: tool.write_file { path: "hello.txt" content: "Hello <b>you</b>" }
  success: file_contains("hello.txt", "Hello")
}
"""
ASKING = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""


@pytest.fixture
def ground(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path / "data"
    with tables():
        yield


@pytest.fixture
def ran(ground: None, cast: Any) -> Callable[..., Run]:
    """`ran(text)`: a run of alice's team that was advanced as far as it goes."""

    def make(text: str = HELLO, advance: bool = True, **options: Any) -> Run:
        spec = create_spec(cast["alice"], cast.team, f"spec {cast.team.specs.count()}", text)
        run = start(cast["alice"], spec, **options)
        if advance:
            execute.advance(run.key)
            run.refresh_from_db()
        return run

    return make
