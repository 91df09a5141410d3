"""Workers as processes, once for each kind of job: killed in a write, stopped past their lease, four at once.
test_postgres.py runs it on PostgreSQL too.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from fault_points import FaultPoints
from job_kinds_kit import MADE, Work
from jobs_kit import swept
from runs_kit import tables
from spakweb.ground import clock
from spakweb.store.jobs import leases
from spakweb.store.jobs.models import Job
from spakweb.work.jobs import queue, work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]


@pytest.fixture(params=list(MADE))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def one(kind: str, transactional_db: None, cast: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    monkeypatch.setattr(queue, "send", lambda kind, key, queue: None)
    with tables():
        made = MADE[kind](cast, monkeypatch)
        assert made.done() == 0
        swept(kind)
        yield made


def worker(kind: str, key: str, before_writing: Callable[[], object] | None = None) -> int:
    """A process that takes the job; in its first write, inside the transaction, it does `before_writing`."""
    connections.close_all()  # SQLite's may not go through a fork
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if before_writing is not None:
            _when_it_writes(before_writing)
        work.do(kind, key)
        code = 0
    finally:
        os._exit(code)


def _when_it_writes(act: Callable[[], object]) -> None:
    confirm, put_down = work.Hold.confirm, work._put_down
    once = iter([act])

    def first(*given: Any, done: Any, **more: Any) -> Any:
        for one in once:
            one()
        return done(*given, **more)

    work.Hold.confirm = lambda hold: first(hold, done=confirm)  # type: ignore[method-assign]
    work._put_down = lambda hold, **columns: first(hold, done=put_down, **columns)


def lease_over(monkeypatch: pytest.MonkeyPatch) -> None:
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + timedelta(seconds=leases.LEASE_S + 1))


def test_killed_in_its_write(
    kind: str, one: Work, monkeypatch: pytest.MonkeyPatch, fault_points: FaultPoints
) -> None:
    child = worker(kind, one.key, lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    work.do(kind, one.key)
    assert one.done() == 0, "the lease holds"
    lease_over(monkeypatch)
    assert swept(kind) == [one.key]
    work.do(kind, one.key)
    row = Job.objects.get(kind=kind)
    assert (one.done(), row.holder, row.fence) == (1, "", 2)
    fault_points["killed"] += 1


def test_stopped_past_its_lease(
    kind: str, one: Work, monkeypatch: pytest.MonkeyPatch, fault_points: FaultPoints
) -> None:
    """Right before its writes: SQLite lets nobody else write while a process is stopped in one."""

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def outside(hold: work.Hold) -> Any:
        stop()
        return writing(hold)

    writing, put_down = work.Hold.writing, work._put_down
    with monkeypatch.context() as patched:
        patched.setattr(work.Hold, "writing", outside)
        patched.setattr(work, "_put_down", lambda hold, **columns: (stop(), put_down(hold, **columns)))
        child = worker(kind, one.key)
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
    lease_over(monkeypatch)
    work.do(kind, one.key)
    assert one.done() == 1
    while True:
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
    assert os.WEXITSTATUS(status) == 0, "it has lost the job, which is no error"
    row = Job.objects.get(kind=kind)
    assert (one.done(), row.holder, row.error, row.fence) == (1, "", "", 2)
    fault_points["frozen"] += 1


def test_several_at_once(kind: str, one: Work) -> None:
    for child in [worker(kind, one.key) for _ in range(4)]:
        assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 0
    row = Job.objects.get(kind=kind)
    assert (one.done(), row.holder, row.error) == (1, "", "")
