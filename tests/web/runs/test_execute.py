"""What a worker does with a run: from the row to its end, with people in between, and after a death."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from spak.ledger import verify
from spakweb import appendonly
from spakweb.runs import execute, queue
from spakweb.runs import writer as writing
from spakweb.runs.actions import ask, start, want
from spakweb.runs.ledger import DatabaseLedgers, drop_leases
from spakweb.runs.models import Run, State
from spakweb.runs.project import rebuild
from spakweb.specs.actions import create_spec
from spakweb.teams.actions import create_team
from spakweb.teams.models import User

pytestmark = pytest.mark.django_db(transaction=True)

ASKING = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""
SLOW = """\
task Slow {
  step rest: tool.run { cmd: "sleep 60" }
  success: exit_code(rest) == 0
}
"""
HELLO = """\
task Hello {
  step greet: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_contains("hello.txt", "Hello")
}
"""


@pytest.fixture
def user(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path / "data"
    appendonly.install(connection)
    yield User.objects.create_user("alice", "alice@spak.example", "a long secret")
    writing.writer.close()
    drop_leases()
    appendonly.remove(connection)


def begun(user: User, text: str, **options: Any) -> Run:
    team = user.memberships.first().team if user.memberships.exists() else create_team(user, "Tuners")
    spec = create_spec(user, team, f"spec {team.specs.count()}", text)
    return start(user, spec, **options)


def test_a_run_from_its_row_to_its_end(user: User) -> None:
    run = begun(user, HELLO, labels=["first"])
    assert (run.state, run.count) == (State.QUEUED, 0)
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert (run.state, run.reason, run.holder) == (State.SUCCEEDED, "", "")
    assert run.summary["nodes"]["Hello"]["state"] == "succeeded"
    reader = DatabaseLedgers().reader(run.key)
    report = verify((line for _, line in reader.read()), exported=False, blobs=reader.blobs)
    assert report.ok and report.records == run.count == run.projected
    assert execute.advance(run.key) is False
    assert Run.objects.get().count == run.count


def test_a_waiting_run_goes_on_with_an_answer(user: User) -> None:
    run = begun(user, ASKING)
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert run.state == State.WAITING and run.summary["waiting"]["prompt"] and not run.holder
    ask(user, run, "answer", run.summary["waiting"]["id"], text="hello")
    ask(user, run, "answer", run.summary["waiting"]["id"], text="too late")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED
    first, second = run.commands.all()
    assert first.outcome == "" and "any more" in second.outcome
    assert (execute.folder_of(run.key) / "workspace" / "word.txt").read_text() == "hello"


def test_a_spec_that_cannot_begin_says_why(user: User) -> None:
    run = begun(user, "task Broken {\n  step a: tool.nothing { }\n}\n")
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert run.state == State.FAILED and run.reason and run.count == 0 and run.holder == ""


def test_a_slice_ends_and_the_next_goes_on(user: User) -> None:
    run = begun(user, HELLO)
    assert execute.advance(run.key, slice_s=0) is True
    run.refresh_from_db()
    assert (run.state, run.holder) == (State.QUEUED, "") and run.count > 0
    assert execute.advance(run.key) is False
    assert Run.objects.get().state == State.SUCCEEDED


@pytest.mark.sandbox
@pytest.mark.parametrize(("word", "state"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_a_running_tool_is_broken_off(user: User, word: str, state: State) -> None:
    run = begun(user, SLOW)
    worker = threading.Thread(target=execute.advance, args=(run.key,))
    worker.start()
    until = time.monotonic() + 30
    while not Run.objects.filter(pk=run.pk, task="Slow", state=State.RUNNING).exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    asked = time.monotonic()
    want(user, run, word)
    worker.join(20)
    took = time.monotonic() - asked
    assert not worker.is_alive() and took < 10
    run.refresh_from_db()
    if run.state == State.QUEUED:  # broken off between two calls: the next worker finishes it
        execute.advance(run.key)
        run.refresh_from_db()
    assert (run.state, run.wanted, run.holder) == (state, "", "")


def test_the_projection_made_again_is_the_same(user: User) -> None:
    run = begun(user, ASKING)
    execute.advance(run.key)
    run.refresh_from_db()
    for _ in range(2):
        before = (run.state, run.task, run.reason, run.summary, run.started_at, run.ended_at)
        Run.objects.update(summary={}, task="x", reason="y", projected=0)
        run.refresh_from_db()
        rebuild(run, DatabaseLedgers().reader(run.key).read())
        run.refresh_from_db()
        prompt = before[3]["waiting"]
        again = (run.state, run.task, run.reason, run.summary, run.started_at, run.ended_at)
        assert again == before or prompt
        if run.state == State.WAITING:
            ask(user, run, "answer", run.summary["waiting"]["id"], text="hello")
            execute.advance(run.key)
            run.refresh_from_db()
    assert run.state == State.SUCCEEDED


def test_a_dead_worker_loses_the_run_to_the_next(user: User) -> None:
    run = begun(user, ASKING)
    execute.advance(run.key)
    dead = DatabaseLedgers().open(run.key)
    assert execute.advance(run.key) is False  # held: nothing happens
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    run.refresh_from_db()
    ask(user, run, "answer", run.summary["waiting"]["id"], text="hello")
    execute.advance(run.key)
    assert Run.objects.get().state == State.SUCCEEDED
    assert dead.fence < Run.objects.get().fence


def test_an_effect_of_another_queue_is_left_to_its_workers(
    user: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device is what the catalog says of a validator; here write_file stands for one on a GPU."""
    run = begun(user, HELLO)
    real = execute.queue_of
    monkeypatch.setattr(
        execute,
        "queue_of",
        lambda effect, runner: "gpu" if effect and effect.name == "write_file" else real(effect, runner),
    )
    settings.WORKER_QUEUES = ["default"]
    assert execute.advance(run.key) is True
    run.refresh_from_db()
    assert (run.queue, run.state, run.holder) == ("gpu", State.QUEUED, "")
    assert not (execute.folder_of(run.key) / "workspace" / "hello.txt").exists()
    settings.WORKER_QUEUES = ["gpu"]
    again = execute.advance(run.key)
    run.refresh_from_db()
    assert (execute.folder_of(run.key) / "workspace" / "hello.txt").exists()
    if again:
        assert (run.queue, run.state) == ("default", State.QUEUED)
        settings.WORKER_QUEUES = ["default"]
        execute.advance(run.key)
        run.refresh_from_db()
    assert run.state == State.SUCCEEDED
