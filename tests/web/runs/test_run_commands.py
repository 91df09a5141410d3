"""`manage.py rebuild` and `sweep`; and that a projection kept up record by record is the one made afresh."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from runs_kit import tables
from spak.ledger import verify
from spak.runner import Run as Runner
from spakweb.ground.database import appendonly
from spakweb.ground.teams.models import User
from spakweb.store.ledger import workspaces
from spakweb.store.ledger.projection import rebuild
from spakweb.store.ledger.store import DatabaseLedgers, leases
from spakweb.store.runs.models import Run, State
from spakweb.work.runs.actions import ask, fork, request_control, start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, queue, tasks

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  step again: llm.query { prompt: "Say another." output_var: other }
  step both: tool.write_file { path: "word.txt" content: "{{word}} {{other}}" }
  success: file_exists("word.txt")
}
"""
ONE = """\
task One {
  step s: tool.write_file { path: "1.txt" content: "1" }
  success: file_exists("1.txt")
}
"""
LOOP = """\
AGENT Loop LEVEL 1 {
  START -> try
  TASK try {
    step a: tool.read_file { path: "missing.txt" }
    NEXT { success -> end, fail -> try }
  }
  TASK end { step b: tool.list_files { path: "." } }
}
"""
COLUMNS = ("state", "task", "reason", "summary", "started_at", "ended_at", "projected")


@pytest.fixture
def user(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    monkeypatch.setattr(tasks, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield User.objects.create_user("alice", "alice@spak.example", "a long secret")


def begun(user: User, text: str, **options: Any) -> Run:
    team = user.memberships.first().team if user.memberships.exists() else create_team(user, "Tuners")
    return start(user, create_spec(user, team, f"spec {team.specs.count()}", text), **options)


def columns(run: Run) -> dict[str, Any]:
    run.refresh_from_db()
    return {name: getattr(run, name) for name in COLUMNS}


@pytest.mark.parametrize("text", [TURNS, LOOP], ids=["questions", "loop"])
def test_a_stale_projection_and_what_came_since_is_a_fresh_one(user: User, text: str) -> None:
    """At every stop: what the worker folded on from a stored projection, and what the ledger alone gives."""
    run = begun(user, text)
    stops = 0
    while stops < 2_000:  # a slice of a busy machine is a step or two
        again = execute.advance(run.key, slice_s=0 if stops % 2 else 0.01)
        stops += 1
        assert Run.objects.get().count, Run.objects.get().reason
        kept = columns(run)
        rebuild(Run.objects.get(key=run.key), DatabaseLedgers().reader(run.key).read())
        assert columns(run) == kept, stops
        if run.ended:
            break
        if run.state == State.WAITING and not again:
            ask(user, run, "answer", run.summary["waiting"]["id"], text=f"word {stops}")
    assert run.ended and run.projected == run.count > 5


def test_rebuild_mends_what_was_spoilt(user: User) -> None:
    run = begun(user, TURNS)
    execute.advance(run.key)
    before = columns(run)
    Run.objects.update(summary={}, task="x", reason="y", projected=0, started_at=None)
    out = StringIO()
    call_command("rebuild", stdout=out)
    assert out.getvalue() == "1 rebuilt, 0 left to their workers, 0 damaged\n"
    assert columns(run) == before
    with pytest.raises(CommandError, match="no records of nothing"):
        call_command("rebuild", "nothing")


def test_rebuild_leaves_what_a_worker_took_meanwhile(user: User) -> None:
    run = begun(user, TURNS)
    execute.advance(run.key)
    row = Run.objects.get()

    def records() -> Iterator[Any]:
        yield from DatabaseLedgers().reader(run.key).read()
        Run.objects.update(fence=row.fence + 1, task="a later one")

    rebuild(row, records())
    assert Run.objects.get().task == "a later one"


def test_rebuild_leaves_what_is_held_and_tells_of_damage(user: User) -> None:
    run, other = begun(user, TURNS), begun(user, TURNS)
    execute.advance(run.key)
    execute.advance(other.key)
    held = DatabaseLedgers().open(run.key)
    appendonly.remove(connection)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_runrecord SET line = %s WHERE seq = 1 AND run_id = %s", [b'{"#":"x"}\n', other.pk]
        )
    appendonly.install(connection)
    before = columns(other)
    out, err = StringIO(), StringIO()
    with pytest.raises(CommandError, match=other.key):
        call_command("rebuild", stdout=out, stderr=err)
    assert out.getvalue() == "0 rebuilt, 1 left to their workers, 1 damaged\n" and other.key in err.getvalue()
    assert columns(other) == before
    held.close()


def test_sweep_puts_back_what_nobody_holds(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, waits = begun(user, TURNS), begun(user, TURNS)
    execute.advance(dead.key)
    execute.advance(waits.key)
    held = DatabaseLedgers().open(dead.key)
    leases.drop(held)
    Run.objects.filter(pk=dead.pk).update(
        state=State.RUNNING, lease_until=timezone.now() - timedelta(seconds=1)
    )
    sent: list[str] = []
    monkeypatch.setattr(tasks, "send", lambda key, queue="default": sent.append(key))
    out = StringIO()
    call_command("sweep", stdout=out)
    assert (sent, out.getvalue()) == ([dead.key], "1 put back\n")
    dead.refresh_from_db()
    assert (dead.state, dead.holder) == (State.QUEUED, "")
    assert tasks.sweep() == 0, "it is not put back again at once"
    del held


def test_a_fork_of_a_fork_goes_back_behind_the_first(user: User) -> None:
    """The files of back then are in the folder of neither fork."""
    lines = "".join(f'  step s{n}: tool.write_file {{ path: "{n}.txt" content: "{n}" }}\n' for n in "123")
    run = begun(user, f'task Three {{\n{lines}  success: file_exists("3.txt")\n}}\n')
    execute.advance(run.key)
    acts = list(run.records.filter(kind="act").values_list("seq", flat=True))
    for at in (acts[2] + 1, acts[0] + 1):
        run.refresh_from_db()
        run = fork(user, run, at)
        assert execute.advance(run.key) is False
        run.refresh_from_db()
        assert (run.state, run.reason) == (State.SUCCEEDED, "")


def test_of_a_run_that_ended_nothing_is_wanted(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody asks to pause it in the moment of its last record."""
    run, advance = begun(user, ONE), Runner.advance

    def advanced(*given: Any) -> Any:
        stop = advance(*given)
        Run.objects.update(wanted="pause")
        return stop

    monkeypatch.setattr(Runner, "advance", advanced)
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.wanted) == (State.SUCCEEDED, "")


@pytest.mark.parametrize("word", ["cancel", "pause"])
def test_a_run_whose_files_are_gone_can_still_be_cancelled(user: User, word: str) -> None:
    run = begun(user, TURNS)
    execute.advance(run.key)
    run.refresh_from_db()
    ask(user, run, "answer", run.summary["waiting"]["id"], text="one")
    execute.advance(run.key)
    for name in ("workspace", "store"):
        shutil.rmtree(workspaces.folder_of(run.key) / name)
    request_control(user, run, word)
    tasks.stop_wanted()
    run.refresh_from_db()
    assert (run.state, run.wanted) == (("cancelled", "") if word == "cancel" else ("queued", "pause"))
    assert run.reason.startswith("run.cancelled" if word == "cancel" else "workspace.")
    reader = DatabaseLedgers().reader(run.key)
    assert verify((line for _, line in reader.read()), exported=False, blobs=reader.blobs).ok
