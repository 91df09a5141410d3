"""Secrets of hosted runs: a team's own, put in at the call, and nowhere else afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from runs_kit import tables
from spak.errors import RunError, UnavailableError
from spak.runner import Host
from spakweb.ground.teams.models import Team, User
from spakweb.store.runs.models import Run, RunRecord
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team, set_rules
from spakweb.work.worker import execute, queue
from spakweb.work.worker.team_secrets import knowing, of_team

MAY = 'secret_may_go("TOKEN", /python_repl, "code").'
VALUE = "hunter2-and-more"
TELLS = """\
AGENT Tells LEVEL 2 {
  START -> tell
  TASK tell {
    step say: tool.python_repl { code: "print(len('secret://TOKEN'), 'secret://TOKEN')" }
  }
}
"""


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.SECRETS_DIR = str(tmp_path / "secrets")
    for team in ("tuners", "others"):
        (tmp_path / "secrets" / team).mkdir(parents=True)
    return tmp_path / "secrets"


def ruled(alice: User, name: str) -> Team:
    """A team whose rules say where the secret may go."""
    team = create_team(alice, name)
    set_rules(alice, team, MAY)
    return team


def put(folder: Path, team: str, name: str, value: str, mode: int = 0o400) -> None:
    (folder / team / name).write_text(value + "\n")
    (folder / team / name).chmod(mode)


@pytest.fixture
def alice(transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: Any) -> Iterator[User]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield User.objects.create_user("alice", "alice@spak.example", "a long secret")


@pytest.mark.sandbox
@pytest.mark.django_db(transaction=True)
def test_the_value_reaches_the_tool_and_nothing_that_is_kept(
    alice: User, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(folder, "tuners", "TOKEN", VALUE)
    caplog.set_level(logging.DEBUG)
    run = start(alice, create_spec(alice, ruled(alice, "Tuners"), "tells", TELLS))
    execute.advance(run.key)
    run = Run.objects.get(key=run.key)
    lines = b"".join(bytes(line) for line in RunRecord.objects.filter(run=run).values_list("line", flat=True))
    assert run.state == "succeeded", run.reason
    assert b"secret://TOKEN" in lines and f"{len(VALUE)} [redacted".encode() in lines
    assert VALUE.encode() not in lines and VALUE not in caplog.text
    for model in apps.get_models():
        for found in model._base_manager.values():
            assert VALUE not in str(found), model.__name__
    for place in (tmp_path / "data", tmp_path / "media"):
        for path in place.rglob("*"):
            assert not path.is_file() or VALUE.encode() not in path.read_bytes(), path


@pytest.mark.sandbox
@pytest.mark.django_db(transaction=True)
def test_another_team_has_none_of_it(alice: User, folder: Path) -> None:
    put(folder, "tuners", "TOKEN", VALUE)
    run = start(alice, create_spec(alice, ruled(alice, "Others"), "tells", TELLS))
    execute.advance(run.key)
    lines = b"".join(bytes(line) for line in RunRecord.objects.values_list("line", flat=True))
    assert b"secret.unknown" in lines and VALUE.encode() not in lines
    assert Run.objects.get(key=run.key).state == "failed"


def test_which_files_are_secrets(folder: Path, settings: Any) -> None:
    put(folder, "tuners", "TOKEN", VALUE)
    put(folder, "tuners", ".hidden", VALUE)
    put(folder, "tuners", "not-a-name", VALUE)
    assert list(of_team("tuners")) == ["TOKEN"] and of_team("others") == of_team("nobody") == {}
    assert VALUE not in repr(knowing(Host(), "tuners"))
    settings.SECRETS_DIR, nobody = "", Host()
    assert of_team("tuners") == {} and knowing(nobody, "tuners") is nobody


@pytest.mark.parametrize(("value", "mode", "code"), [
    ("tiny", 0o400, "web.secret"), (VALUE, 0o444, "llm.key_file"), ("two words", 0o400, "llm.key_file"),
])  # fmt: skip
def test_what_cannot_be_kept_secret_is_not_used(folder: Path, value: str, mode: int, code: str) -> None:
    put(folder, "tuners", "TOKEN", value, mode)
    with pytest.raises((RunError, UnavailableError)) as caught:
        of_team("tuners")
    assert caught.value.code == code and value not in caught.value.message
