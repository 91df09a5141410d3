"""A run on the platform that is answered from a recording gets each answer once, whoever takes it up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runs_kit import tables
from spakweb.ground.teams.models import User
from spakweb.store.runs.models import Run, State
from spakweb.work.runs.actions import ask, start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, queue

pytestmark = pytest.mark.django_db(transaction=True)

ASKING = """\
AGENT Asker LEVEL 5 {
  CONFIG { MODE stepwise }
  START -> talk
  TASK talk {
    step one: llm.query { prompt: "One?" output_var: a }
    step two: llm.query { prompt: "Two, after {{a}}?" output_var: b }
    step three: llm.query { prompt: "Three, after {{b}}?" output_var: c }
    step keep: tool.write { path: "said.txt" content: "{{a}} {{b}} {{c}}" }
    success: file_contains("said.txt", "A1 A2 A3")
  }
}
"""


@pytest.fixture
def user(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": f"A{number}"}) + "\n" for number in (1, 2, 3)]
    (tmp_path / "answers.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "spak.toml").write_text(
        '[llm]\nmode = "recorded"\nrecording = "answers.jsonl"\n', encoding="utf-8"
    )
    with tables():
        yield User.objects.create_user("alice", "alice@spak.example", "a long secret")


def test_each_call_gets_the_next_answer(user: User) -> None:
    run = start(user, create_spec(user, create_team(user, "Askers"), "asker", ASKING))
    for _ in range(3):
        execute.advance(run.key)
        run = Run.objects.get()
        assert run.state == State.WAITING, run.reason
        ask(user, run, "call", run.summary["waiting"]["id"])
    execute.advance(run.key)
    seen = Run.objects.get()
    assert seen.state == State.SUCCEEDED, (seen.reason, seen.summary)
