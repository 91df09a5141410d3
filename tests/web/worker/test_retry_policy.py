"""Runs that could not go on: a full disk, a run that makes its worker fail, a clock that was set back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError
from django.utils import timezone

from ledger_contract import act
from runs_kit import ledger, tables
from spak.errors import LedgerError, RunError
from spak.records import Kind
from spak.runner.perform import Proposed
from spakweb.face.runs import run_parts
from spakweb.face.streams.summaries import HEADER, header
from spakweb.ground import clock
from spakweb.ground.teams.models import User
from spakweb.store.jobs.leases import MOST_LEASE, MOST_PAUSE
from spakweb.store.ledger import storage, store, writer
from spakweb.store.runs.models import TRIES, Run, State
from spakweb.work.runs.actions import request_control, resume, start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, open_run, queue, retry_policy, tasks
from spakweb.work.worker.queue import pick

pytestmark = pytest.mark.django_db(transaction=True)
HELLO = """\
task Hello {
  step greet: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_contains("hello.txt", "Hello")
}
"""
HOUR = timedelta(hours=1)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def send(key: str, name: str = "default") -> None:
        found.append(key)

    for module in (queue, tasks):
        monkeypatch.setattr(module, "send", send)
    return found


@pytest.fixture
def user(transactional_db: None, settings: Any, tmp_path: Path, sent: list[str]) -> Iterator[User]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    settings.DATA_DIR.mkdir()
    with tables():
        yield User.objects.create_user("alice", "alice@spak.example", "a long secret")


@pytest.fixture
def run(user: User) -> Run:
    return start(user, create_spec(user, create_team(user, "Tuners"), "hello", HELLO))


def raising(error: BaseException) -> Any:
    def fails(*ignored: object, **named: object) -> None:
        raise error

    return fails


def why(run: Run) -> str:
    return str(header(Run.objects.values(*HEADER).get(pk=run.pk), timezone.now())["why"])


@pytest.mark.findings("A2")
def test_a_run_that_lacks_a_blob_is_paused_in_the_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert execute.advance(run.key, slice_s=0) is True
    with monkeypatch.context() as patched:
        patched.setattr(execute, "take", raising(LedgerError("ledger.blob", "blob x is missing", "")))
        rests = []
        for _ in range(TRIES - 1):
            assert execute.advance_or_busy(run.key) == "stopped"
            rests.append(rested(run))
        assert rests == [10, 20, 40, 80, 160] and run.state == State.QUEUED
        assert execute.advance_or_busy(run.key) == "stopped"
    run.refresh_from_db()
    assert (run.state, run.reason) == (State.PAUSED, "ledger.blob: blob x is missing")
    resume(run.team.memberships.get().user, run)
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED


# ---- a worker that dies


class Died(BaseException):
    """What ends a worker at once: nothing of what would be done after an error is done."""


def dies(run: Run, monkeypatch: pytest.MonkeyPatch, after_records: bool = False) -> str:
    """A worker takes the run in hand and dies with it, before or after the run got on; its lease ends."""
    real = execute.take

    def takes(row: Run) -> Any:
        runner = real(row)
        store.leases.drop(runner.ledger)
        if after_records:
            runner.advance("full_auto", until=0.0)
            runner.feed(Proposed(Kind.CONTROL, {"cancel": False}))
            runner.ledger.flush()
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(execute, "take", takes)
        try:
            return execute.advance_or_busy(run.key)
        except Died:
            Run.objects.filter(pk=run.pk).update(lease_until=clock.now() - timedelta(seconds=1))
            return "died"


def rested(run: Run) -> float | None:
    """For how many seconds the run rests from now on."""
    run.refresh_from_db()
    return None if run.due is None else round((run.due - clock.now()).total_seconds())


def test_a_run_that_kills_its_worker_is_paused_in_the_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dies(run, monkeypatch) == "died" and rested(run) is None
    assert dies(run, monkeypatch) == "died", "the first death is no reason to rest"
    rests = []
    for _ in range(TRIES - 2):
        assert execute.advance_or_busy(run.key) == "stopped"
        rests.append(rested(run))
        assert run.state == State.QUEUED and "died with it" in run.reason
        assert dies(run, monkeypatch) == "died"
    assert rests == [10, 20, 40, 80]
    assert execute.advance_or_busy(run.key) == "stopped"
    run.refresh_from_db()
    assert (run.state, run.tries, run.holder) == (State.PAUSED, TRIES, "")
    assert run.reason == f"web.worker: {TRIES} workers in a row died with it"
    assert tasks.sweep_up(at_once=True) == 0 and pick("default") is None
    resume(run.team.memberships.get().user, run)
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.tries, run.left_at) == (State.SUCCEEDED, 0, None)


def test_a_run_that_dies_while_it_is_begun_is_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for expected in ("died", "died", "stopped"):
        with monkeypatch.context() as patched:
            patched.setattr(open_run, "begin", raising(Died()))
            try:
                found = execute.advance_or_busy(run.key)
            except Died:
                found = "died"
        assert found == expected
    run.refresh_from_db()
    assert (run.count, run.tries, rested(run)) == (0, 2, 10)
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED


def test_a_run_that_got_on_is_not_to_blame(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert execute.advance(run.key, slice_s=0) is True
    for _ in range(TRIES + 2):
        assert dies(run, monkeypatch, after_records=True) == "died"
        assert rested(run) is None and run.tries <= 1
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.tries) == (State.SUCCEEDED, 0)


def test_a_run_that_kills_its_worker_can_be_cancelled(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        assert dies(run, monkeypatch) == "died"
    assert execute.advance_or_busy(run.key) == "stopped" and rested(run) == 10
    request_control(run.team.memberships.get().user, run, "cancel")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.CANCELLED


# ---- a full disk


FULL = [
    RunError("workspace.full", "no space while copying", ""),
    LedgerError("ledger.full", "no space while writing a blob", ""),
    OSError(28, "No space left on device", "/srv/data/runs/x"),
]


@pytest.mark.parametrize("error", FULL, ids=["workspace", "ledger", "system"])
@pytest.mark.parametrize("begun", [False, True])
def test_a_run_that_meets_a_full_disk_waits_for_room(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, begun: bool
) -> None:
    if begun:
        assert execute.advance(run.key, slice_s=0) is True
    with monkeypatch.context() as patched:
        patched.setattr(open_run, "workspace_of", raising(error))
        for _ in range(2 * TRIES):
            assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert (run.state, run.holder, run.tries) == (State.QUEUED, "", 0)
    assert ".full: " in run.reason and "/srv" not in run.reason
    assert run.due is not None and run.due - clock.now() <= retry_policy.HOST_PAUSE
    assert tasks.sweep_up() == 0
    Run.objects.update(due=clock.now())
    assert tasks.sweep_up() == 1 and pick("default") == run.key
    queue.let_go(run.key)
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.reason) == (State.SUCCEEDED, "")


def test_no_run_is_taken_while_there_is_no_room_and_all_are_put_back_after(
    run: Run, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Run.objects.update(enqueued_at=clock.now())
    sent.clear()
    room, stop = [False], threading.Event()
    monkeypatch.setattr(tasks, "no_room", lambda: not room[0])
    monkeypatch.setattr(tasks, "LOOK_S", 0.01)
    monkeypatch.setattr(tasks, "stop_wanted", lambda: room.append(True))
    monkeypatch.setattr(execute, "advance_or_busy", raising(AssertionError("it was taken")))
    tasks.advance(run.key)
    assert sent == [] and not Run.objects.exclude(holder="").exists()

    def swept() -> int:
        stop.set()
        return 0

    watching = threading.Thread(target=tasks.watch, args=(stop, 0, swept))
    watching.start()
    assert not stop.wait(0.1), "it sweeps while there is no room"
    room[0] = True
    watching.join(60)
    assert sent == [run.key]


def test_a_commit_without_room_is_tried_until_there_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    full = [True] * 5
    real = writer.Writer._store

    def store(self: Any, batches: Any) -> Any:
        if full:
            full.pop()
            raise OperationalError("database or disk is full")
        return real(self, batches)

    monkeypatch.setattr(writer, "ROOM_S", 0.01)
    monkeypatch.setattr(writer.Writer, "_store", store)
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert (run.state, full) == (State.SUCCEEDED, [])


def test_a_process_that_ends_waits_for_room_no_longer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ledger(run.team)
    monkeypatch.setattr(writer.Writer, "_store", raising(OperationalError("database or disk is full")))
    mine.append([act(1)])
    writer.writer.hurry()
    with pytest.raises(LedgerError) as caught:
        mine.flush()
    assert caught.value.code == "ledger.io"
    monkeypatch.undo()
    writer.writer.close()


@pytest.mark.parametrize(
    ("error", "room", "full"),
    [
        (OperationalError("database or disk is full"), True, True),
        (OperationalError("disk I/O error"), False, True),
        (OperationalError("disk I/O error"), True, False),
        (OperationalError("database is locked"), False, False),
        (DatabaseError("database disk image is malformed"), False, False),
    ],
)
def test_which_error_of_the_database_means_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, error: DatabaseError, room: bool, full: bool
) -> None:
    monkeypatch.setattr(storage, "no_room", lambda: not room)
    assert storage.is_full(error) is full


def test_a_slot_that_cannot_be_given_back_now_is_given_back_later(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pick("default") == run.key
    with monkeypatch.context() as full:
        full.setattr(queue.Run.objects, "filter", raising(OperationalError("database or disk is full")))
        queue.let_go(run.key)
    assert pick("default") is None
    queue.let_go_owed()
    assert pick("default") == run.key


# ---- a run that makes its worker fail


def test_a_run_that_makes_its_worker_fail_is_tried_less_and_less_and_then_paused(
    run: Run, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(open_run, "workspace_of", raising(ZeroDivisionError("division by zero")))
        for number in range(1, TRIES):
            before = clock.now()
            assert execute.advance(run.key) is False
            wait = timedelta(seconds=10 * 2 ** (number - 1))
            run.refresh_from_db()
            assert before + wait <= run.due <= clock.now() + wait
            assert (run.state, run.tries) == (State.QUEUED, number)
            assert pick("default") is None and tasks.sweep_up(at_once=True) == 0
            Run.objects.update(due=clock.now())
        execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.tries, run.due, run.holder) == (State.PAUSED, TRIES, None, "")
    assert run.reason == "web.worker: the worker that had it failed: ZeroDivisionError: division by zero"
    assert "Stopped after 6 errors" in run_parts.outcome(run) and "stopped after 6 errors" in why(run)
    assert pick("default") is None and tasks.sweep_up(at_once=True) == tasks.stop_wanted() == 0
    resume(user, run)
    run.refresh_from_db()
    assert (run.state, run.tries) == (State.QUEUED, 0)
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.reason) == (State.SUCCEEDED, "")


def test_a_run_that_got_on_begins_to_count_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(open_run, "workspace_of", raising(ZeroDivisionError()))
        execute.advance(run.key)
    Run.objects.update(due=None)
    assert execute.advance(run.key, slice_s=0) is True
    assert Run.objects.get().tries == 0


def test_no_pause_is_longer_than_the_longest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_policy, "TRIES", 99)
    run.tries = 12
    retry_policy.count(run, ValueError("x"))
    run.refresh_from_db()
    assert run.due is not None and run.due - clock.now() <= MOST_PAUSE


def test_a_cancel_of_one_that_fails_is_not_tried_twice_a_second(
    run: Run, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert execute.advance(run.key, slice_s=0) is True
    request_control(user, run, "cancel")
    with monkeypatch.context() as broken:
        broken.setattr(open_run, "workspace_of", raising(ZeroDivisionError()))
        assert tasks.stop_wanted() == 1 and tasks.stop_wanted() == 0
    Run.objects.update(due=clock.now())
    assert tasks.stop_wanted() == 1
    run.refresh_from_db()
    assert run.state == State.CANCELLED


# ---- a clock that was set back


@pytest.fixture
def back(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`back()`: from now on it is an hour earlier."""

    def set_back() -> None:
        real = clock.now

        def earlier() -> datetime:
            return real() - HOUR

        monkeypatch.setattr(clock, "now", earlier)

    return set_back


@pytest.mark.parametrize("setback", [None, RunError("workspace.full", "", ""), ZeroDivisionError()])
def test_queued_runs_do_not_wait_for_the_time_that_it_was(
    user: User, run: Run, sent: list[str], back: Any, monkeypatch: pytest.MonkeyPatch, setback: Any
) -> None:
    spec = run.version.spec
    runs = {run.key, *(start(user, spec).key for _ in range(5))}
    if setback is not None:
        with monkeypatch.context() as broken:
            broken.setattr(open_run, "workspace_of", raising(setback))
            for key in runs:
                execute.advance(key)
    sent.clear()
    back()
    assert tasks.sweep_up() == 6 and set(sent) == runs
    assert {pick("default") for _ in runs} == runs
    assert tasks.sweep_up() == 0, "they were put back twice"


def test_a_lease_of_a_dead_worker_does_not_outlive_the_change(run: Run, back: Any) -> None:
    """Nor does it count as one of the team's runs, or show as running."""
    Run.objects.update(holder="dead", lease_until=clock.now() + MOST_LEASE / 4, state=State.RUNNING)
    assert pick("default") is None and tasks.sweep_up() == 0
    back()
    shown = header(Run.objects.values(*HEADER).get(), clock.now())
    assert shown["state"] == State.QUEUED
    assert tasks.sweep_up() == 1 and pick("default") == run.key


def test_a_lease_that_this_process_holds_is_not_taken_from_it(run: Run, back: Any) -> None:
    mine = ledger(run.team, "mine")
    back()
    mine.append([act(1)])
    mine.flush()
    assert tasks.sweep_up() == 1, "the other one"
    mine.append([act(2)])
    mine.close()
    assert Run.objects.get(key="mine").count == 3
