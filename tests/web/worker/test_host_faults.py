"""Faults of the host decide nothing about a run, new ones too: it is queued with the reason and goes on."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError
from kombu import Connection

from process_kit import WAIT_S
from spak.errors import LedgerError, RunError, UnavailableError
from spak.files.disk import refusal
from spak.sandbox import LAUNCHERS, Restricted
from spakweb.ground import broker, clock, host_faults
from spakweb.ground.teams.models import User
from spakweb.store.ledger import store
from spakweb.store.runs.models import Run, RunRecord, State
from spakweb.work.runs.actions import request_control
from spakweb.work.worker import execute, held_run, open_run, queue, slots, tasks
from worker_kit import HELLO, begun

NAMES = ("EIO", "EROFS", "EDQUOT", "ENOSPC", "EMFILE", "ENFILE", "EAGAIN", "ENOMEM")


def error(name: str) -> OSError:
    number = getattr(errno, name)
    return OSError(number, os.strerror(number), "/srv/data/x")


def raising(what: BaseException) -> Callable[..., Any]:
    def fails(*ignored: object, **named: object) -> Any:
        raise what

    return fails


ERRORS: dict[str, Exception] = {
    **{name: error(name) for name in NAMES},
    **{f"workspace-{name}": refusal(error(name), "taking a snapshot") for name in NAMES},
    "ledger": LedgerError("ledger.io", "the store failed", ""),
    "launcher": UnavailableError("unavailable.host", "the launcher did not start", ""),
    "thread": RuntimeError("can't start new thread"),
    "memory": MemoryError(),
}


def goes_on(run: Run) -> None:
    """Within 10 s of now: it rests at most three, and the next sweep takes it."""
    run.refresh_from_db()
    assert (run.state, run.holder, run.tries, run.left_at) == (State.QUEUED, "", 0, None), run.reason
    assert (run.reason and "/srv" not in run.reason) or "snapshot" in run.reason
    assert run.due is not None and run.due - clock.now() <= timedelta(seconds=3)
    Run.objects.update(due=clock.now())
    assert tasks.sweep_up() == 1
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.reason) == (State.SUCCEEDED, "")


@pytest.mark.findings("F1", "F2")
@pytest.mark.parametrize("what", ERRORS)
def test_a_new_run_that_meets_a_fault_of_the_host_goes_on(
    user: User, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    run = begun(user, HELLO)
    with monkeypatch.context() as faulty:
        faulty.setattr(open_run, "begin", raising(ERRORS[what]))
        for _ in range(8):
            assert execute.advance(run.key) is False
    goes_on(run)


@pytest.mark.findings("F1", "F2")
@pytest.mark.parametrize("what", ["EIO", "EMFILE", "workspace-EROFS", "thread"])
def test_so_does_one_under_way(user: User, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    run = begun(user, HELLO)
    assert execute.advance(run.key, slice_s=0) is True
    with monkeypatch.context() as faulty:
        faulty.setattr(held_run.Runner, "advance", raising(ERRORS[what]))
        for _ in range(3):
            assert execute.advance(run.key) is False
    goes_on(run)


@pytest.mark.findings("F2")
@pytest.mark.parametrize("said", ["bwrap does not start: Resource temporarily unavailable", error("EMFILE")])
def test_a_launcher_that_cannot_be_tried_is_not_given_up(
    user: User, monkeypatch: pytest.MonkeyPatch, said: Any
) -> None:
    run = begun(user, HELLO)
    probe = raising(said) if isinstance(said, Exception) else lambda self: said
    with monkeypatch.context() as faulty:
        faulty.setitem(LAUNCHERS, "restricted", lambda: object.__new__(Restricted))
        faulty.setattr(Restricted, "probe", probe)
        assert execute.advance(run.key) is False
        run.refresh_from_db()
        assert run.reason.startswith("unavailable.host: the launcher restricted")
    goes_on(run)


@pytest.mark.findings("F1")
@pytest.mark.parametrize("begun_before", [False, True])
def test_a_database_that_fails_is_no_death_of_the_worker(
    user: User, monkeypatch: pytest.MonkeyPatch, begun_before: bool
) -> None:
    run = begun(user, HELLO)
    if begun_before:
        execute.advance(run.key, slice_s=0)
    with monkeypatch.context() as faulty:
        faulty.setattr(open_run if not begun_before else execute, "begin" if not begun_before else "take",
                       raising(OperationalError("unable to open database file")))  # fmt: skip
        for _ in range(8):
            Run.objects.update(enqueued_at=clock.now())
            assert queue.pick("default") == run.key
            with pytest.raises(OperationalError):
                execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.tries, run.holder, run.enqueued_at) == (State.QUEUED, 0, "", None)
    assert tasks.sweep_up() == 1
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED


def test_what_the_database_still_takes_nothing_of_is_owed(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(user, HELLO)
    assert queue.pick("default") == run.key
    with monkeypatch.context() as faulty:
        faulty.setattr(queue.Run.objects, "filter", raising(OperationalError("disk I/O error")))
        queue.give_back(run.key)
    assert queue.pick("default") is None
    queue.let_go_owed()
    assert queue.pick("default") == run.key


@pytest.mark.findings("F6")
def test_a_run_that_waits_for_its_disk_has_one_record_of_it(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(user, HELLO)
    execute.advance(run.key, slice_s=0)
    with monkeypatch.context() as faulty:
        faulty.setattr(held_run.Runner, "advance", raising(RunError("workspace.full", "no space", "")))
        assert execute.advance(run.key) is False
        count = RunRecord.objects.filter(run=run).count()
        faulty.setattr(execute, "has_room", lambda folder: False)
        for _ in range(5):
            assert execute.advance(run.key) is False
        faulty.setattr(execute, "has_room", lambda folder: True)
        faulty.setattr(execute, "unwritable", lambda folder: "Read-only file system")
        assert execute.advance(run.key) is False
        assert RunRecord.objects.filter(run=run).count() == count
    goes_on(run)


def test_a_run_that_waits_for_its_disk_can_be_cancelled(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(user, HELLO)
    execute.advance(run.key, slice_s=0)
    Run.objects.update(reason="workspace.full: no space")
    monkeypatch.setattr(execute, "has_room", lambda folder: False)
    request_control(user, run, "cancel")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.CANCELLED


def test_a_disk_that_fails_once_does_not_make_a_cancel_leave_a_step_half_done(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 56 of the simulator."""
    run = begun(user, HELLO)
    execute.advance(run.key, slice_s=0)
    request_control(user, run, "cancel")
    opened: list[bool] = []
    take_up = open_run.Runner.open

    def fails_once(*args: Any, to_cancel: bool = False) -> Any:
        opened.append(to_cancel)
        if len(opened) == 1:
            raise refusal(error("EIO"), "undoing a step")
        return take_up(*args, to_cancel=to_cancel)

    monkeypatch.setattr(open_run.Runner, "open", fails_once)
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert run.state == State.QUEUED
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, opened) == (State.CANCELLED, [False, False])


# ---- the worker itself


@pytest.fixture
def channel(tmp_path: Path) -> Any:
    broker.register()
    where = {"folder": str(tmp_path / "queue")}
    with Connection(f"{broker.SCHEME}://localhost/", transport_options=where) as connection:
        yield connection.default_channel


@pytest.mark.findings("F2")
@pytest.mark.parametrize("name", ["EMFILE", "ENFILE", "EIO"])
@pytest.mark.parametrize("where", ["list", "open"])
def test_a_queue_that_cannot_be_read_now_is_read_later(
    channel: Any, monkeypatch: pytest.MonkeyPatch, name: str, where: str
) -> None:
    about = {"delivery_tag": "1", "delivery_info": {}}
    channel._put("work", {"body": "", "headers": {}, "properties": about, "n": 1})
    with monkeypatch.context() as faulty:
        if where == "list":
            faulty.setattr(os, "listdir", raising(error(name)))
        else:
            faulty.setattr(broker, "open_input", raising(error(name)))
        with pytest.raises(broker.Empty):
            channel._get("work")
    assert channel._get("work")["n"] == 1, "it was moved away"
    with monkeypatch.context() as faulty:
        faulty.setattr(os, "listdir", raising(OSError(errno.EPERM, "")))
        with pytest.raises(PermissionError):
            channel._size("work")


@pytest.mark.findings("F2")
def test_a_slot_needs_no_new_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    made = slots.Slots(2)
    done: list[int] = []

    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    for number in range(6):
        made.use(lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == list(range(6)) and made._free == 2
    monkeypatch.undo()
    made._pool.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        made.use(lambda: None)


def test_work_that_finds_no_thread_is_done_by_one_that_gets_free(monkeypatch: pytest.MonkeyPatch) -> None:
    made = slots.Slots(1)
    leave, came = threading.Event(), threading.Event()
    made._pool.submit(leave.wait, WAIT_S)  # as one that waits for a model has the only thread

    def no_thread(self: threading.Thread) -> None:
        leave.set()
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as faulty:
        faulty.setattr(threading.Thread, "start", no_thread)
        made.use(came.set)
    assert came.is_set()
    made._pool.shutdown()


def test_all_threads_of_a_pool_are_started_at_once() -> None:
    with ThreadPoolExecutor(5) as pool:
        slots.start_threads(pool, 5)
        assert len(pool._threads) == 5


@pytest.mark.parametrize("kind", [store.Leases, held_run.Watcher])
def test_nothing_is_held_whose_thread_did_not_start(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be held for ever: nobody has it to give it back."""
    made = kind()

    class Held:
        class row:
            pk = 1

    monkeypatch.setattr(threading.Thread, "start", raising(RuntimeError("can't start new thread")))
    with pytest.raises(RuntimeError):
        made.add(Held())
    assert not made._held


@pytest.mark.findings("F8")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (7, True),
        (8, True),
        (10, True),
        (778, True),
        (13, True),
        (14, True),
        (5, False),
        (11, False),
        (19, False),
    ],
)
def test_which_errors_of_sqlite_are_the_hosts(code: int, expected: bool) -> None:
    cause = sqlite3.OperationalError("x")
    cause.sqlite_errorcode = code
    found = OperationalError("x")
    found.__cause__ = cause
    assert host_faults.is_fault(found) is expected


@pytest.mark.findings("F8")
@pytest.mark.parametrize(
    ("state", "expected"),
    [("53100", True), ("53300", True), ("58030", True), ("25006", True), ("55P03", False), ("23505", False)],
)
def test_which_errors_of_postgresql_are_the_hosts(state: str, expected: bool) -> None:
    found = DatabaseError("x")
    found.__cause__ = type("Error", (Exception,), {"sqlstate": state})()
    assert host_faults.is_fault(found) is expected
