"""Snapshots on the platform: a worker that takes a run up reads what came after them, and nothing else hangs
on them."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F

from runs_kit import tables
from spak import canon
from spak.errors import LedgerError
from spak.kernel.snapshot import Snapshot
from spak.runner import run as runner
from spakweb.ground.teams.models import User
from spakweb.store.ledger import export, store
from spakweb.store.ledger.projection import rebuild
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, RunSnapshot, State
from spakweb.work.runs.actions import ask, request_control, start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, queue

LOOP = """
AGENT Loop LEVEL 5 {
  CONFIG { MODE stepwise BUDGET { steps: 500 } }
  START -> t
  TASK t {
    step q: llm.query { prompt: "Go on." output_var: x }
    step w: tool.write_file { path: "a.txt" content: "{{x}}" }
    NEXT { success -> t }
  }
}
"""


@pytest.fixture
def user(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    monkeypatch.setattr(runner, "LEAST", 6)
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path / "data"
    with tables():
        yield User.objects.create_user("alice", "alice@spak.example", "a long secret")


@pytest.fixture
def run(user: User) -> Run:
    """A run of three answers that waits for the next."""
    team = create_team(user, "Tuners")
    made = start(user, create_spec(user, team, "loop", LOOP))
    execute.advance(made.key)
    for number in range(3):
        answered(user, made, number)
    return made


def answered(user: User, run: Run, number: int) -> None:
    run.refresh_from_db()
    ask(user, run, "answer", run.summary["waiting"]["id"], text=f"answer {number}")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.WAITING, run.reason


def kept(run: Run) -> RunSnapshot:
    return RunSnapshot.objects.get(run=run)


def test_a_worker_reads_only_the_records_after_the_snapshot(
    user: User, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LEAST", 1000)
    answered(user, run, 4)
    known = kept(run).count
    assert 6 < known < run.count
    read: list[tuple[int, int]] = []
    lines = store._lines

    def counted(pk: int, begin: int, end: int) -> Iterator[bytes]:
        for line in lines(pk, begin, end):
            read.append((begin, pk))
            yield line

    monkeypatch.setattr(store, "_lines", counted)
    Run.objects.filter(pk=run.pk).update(projected=F("count") - 2)
    before = run.count
    execute.advance(run.key)
    run.refresh_from_db()
    firsts = sum(begin == 0 for begin, _ in read)
    assert firsts <= 2, "the genesis, once for its rules and once for the state"
    assert len(read) - firsts == before - known + 2 + (run.count - before)


def test_the_projection_goes_on_from_where_it_was(user: User, run: Run) -> None:
    answered(user, run, 5)
    before = (run.state, run.summary, run.projected)
    rebuild(run, DatabaseLedgers().reader(run.key).read())
    run.refresh_from_db()
    assert (run.state, run.summary, run.projected) == before


def test_of_a_run_that_ended_none_is_kept(user: User, run: Run) -> None:
    assert 6 <= kept(run).count <= run.count
    request_control(user, run, "cancel")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.CANCELLED and not RunSnapshot.objects.exists()


def resealed(run: Run, **changes: Any) -> None:
    found = kept(run)
    value = canon.loads(bytes(found.data)[44:])
    if "steps" in changes:
        dog = next(item for item in value["state"] if isinstance(item, list) and item[0] == "Watchdog")
        dog[2] += changes.pop("steps")
    text = canon.dumps({**value, **changes})
    data = canon.digest(text).encode() + b"\n" + text
    RunSnapshot.objects.filter(run=run).update(data=data)


@pytest.mark.parametrize("doubt", ["bytes", "head", "version", "rules", "more than there is"])
def test_one_in_doubt_is_thrown_away_and_the_log_says_so(
    user: User, run: Run, doubt: str, caplog: pytest.LogCaptureFixture
) -> None:
    mine = RunSnapshot.objects.filter(run=run)
    match doubt:
        case "bytes":
            mine.update(data=bytes(kept(run).data)[:-1])
        case "head":
            mine.update(head=canon.ZERO)
        case "version":
            resealed(run, layout="another")
        case "rules":
            resealed(run, rules="others")
        case _:
            mine.update(count=F("count") + 40)
    answered(user, run, 6)
    assert f"the snapshot of run {run.key} was discarded" in caplog.text
    assert export.checked(run)["equal"] and export.checked(run)["snapshot"] == ""
    assert kept(run).count > 6


def test_check_store_compares_it_with_the_replayed_state(user: User, run: Run) -> None:
    call_command("check_store", stdout=StringIO())
    resealed(run, layout="another")
    call_command("check_store", stdout=StringIO())  # of another version: not used, and no damage
    assert RunSnapshot.objects.exists()
    answered(user, run, 7)
    resealed(run, steps=5)
    said = StringIO()
    with pytest.raises(CommandError):
        call_command("check_store", stdout=StringIO(), stderr=said)
    assert said.getvalue().strip() == (
        f"{run.key}: the snapshot was removed: it is not the state that its records lead to"
    )
    assert not RunSnapshot.objects.exists()
    call_command("check_store", stdout=StringIO())
    answered(user, run, 8)


def test_replay_and_verify_removes_one_that_is_damaged(user: User, run: Run) -> None:
    resealed(run, steps=1)
    assert "it is not the state" in export.checked(run)["snapshot"]
    assert not RunSnapshot.objects.exists() and export.checked(run)["snapshot"] == ""


def test_a_runner_that_lost_its_lease_keeps_none(user: User, run: Run) -> None:
    held = DatabaseLedgers().open(run.key)
    RunSnapshot.objects.filter(run=run).delete()
    Run.objects.filter(pk=run.pk).update(fence=F("fence") + 1)
    held.keep(Snapshot(held.count, held.head, b"late"))
    with pytest.raises(LedgerError):
        held.confirm()
    assert not RunSnapshot.objects.exists()
    store.leases.drop(held)
