"""The worker killed at every commit of a run, before and after it: the next one ends with the same run.

The child is a fork that kills itself at the n-th transaction of its ledger. What must hold: no run is lost,
no effect is there twice, and a dead run is never shown as running.
"""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from fault_points import FaultPoints
from process_kit import WAIT_S
from runs_kit import tables
from spak.kernel.replay import replay
from spak.ledger import verify
from spakweb.face.streams.summaries import HEADER, header
from spakweb.ground.teams.models import User
from spakweb.store.ledger import workspaces
from spakweb.store.ledger import writer as writing
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, State
from spakweb.store.specs.models import Spec
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, queue, tasks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]

STEPS = """\
task Steps {
  step one: tool.write_file { path: "one.txt" content: "1" }
  step two: tool.write_file { path: "two.txt" content: "2" }
  step look: tool.read_file { path: "one.txt" }
  step three: tool.write_file { path: "one.txt" content: "11" }
  success: file_exists("two.txt")
}
"""


@pytest.fixture
def spec(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Spec]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    monkeypatch.setattr(tasks, "send", lambda key, queue="default": None)
    monkeypatch.setattr(secrets, "randbits", lambda bits: 7)  # the seed of every run: the same decisions
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        alice = User.objects.create_user("alice", "alice@spak.example", "a long secret")
        yield create_spec(alice, create_team(alice, "Tuners"), "steps", STEPS)


def new(spec: Spec) -> Run:
    return start(User.objects.get(), spec, mode="full_auto")


def checked(key: str) -> Run:
    """The run, ended well, its ledger whole and its workspace what its records say."""
    run = Run.objects.get(key=key)
    assert (run.state, run.holder) == (State.SUCCEEDED, ""), run.reason
    reader = DatabaseLedgers().reader(key)
    lines = [line for _, line in reader.read()]
    assert verify(lines, exported=False, blobs=reader.blobs).ok
    found = replay(record for record, _ in reader.read())
    assert found.difference is None and not found.missing
    place = workspaces.workspace_of(key)
    place.take(run.fence)
    assert place.snapshot() == found.state.r3
    assert run.projected == run.count == len(lines)
    permits = [record.attempt for record, _ in reader.read() if record.kind == "permit"]
    assert len(permits) == len(set(permits)), "an effect was decided twice"
    return run


def in_a_child(work: Callable[[], object]) -> int:
    """Run in a fork with connections of its own; the signal that ended it, or 0."""
    writing.writer.close()
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def killed_at(key: str, commit: int, *, before: bool) -> int:
    def work() -> None:
        left = [commit]
        store = writing.Writer._write

        def write(self: Any, batches: Any) -> None:
            left[0] -= 1
            if left[0] == 0 and before:
                os.kill(os.getpid(), signal.SIGKILL)
            store(self, batches)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        writing.Writer._write = write  # type: ignore[method-assign]
        execute.advance(key)

    return in_a_child(work)


def dies(key: str) -> None:
    """Its lease ends, as it does by itself; what is shown is honest at once, the sweep puts it back."""
    Run.objects.filter(key=key).exclude(holder="").update(lease_until=timezone.now() - timedelta(seconds=1))
    shown = header(Run.objects.values(*HEADER).get(key=key), timezone.now())
    assert shown["state"] in ("queued", "succeeded")
    tasks.sweep_up()
    run = Run.objects.get(key=key)
    assert run.ended or (run.state, run.holder) == (State.QUEUED, "")


@pytest.mark.parametrize("before", [True, False], ids=["before_the_commit", "after_the_commit"])
def test_a_worker_killed_at_every_commit(spec: Spec, before: bool, fault_points: FaultPoints) -> None:
    calm = new(spec)
    execute.advance(calm.key)
    summary = checked(calm.key).summary["summary_hash"]
    for commit in range(1, 60):
        run = new(spec)
        was_killed = killed_at(run.key, commit, before=before) == signal.SIGKILL
        dies(run.key)
        execute.advance(run.key)
        assert checked(run.key).summary["summary_hash"] == summary, commit
        if not was_killed:
            break
        fault_points["killed"] += 1
    assert 5 < commit < 59


def test_a_run_that_is_killed_again_and_again_comes_to_its_end(spec: Spec, fault_points: FaultPoints) -> None:
    run = new(spec)
    for _ in range(60):
        if killed_at(run.key, 3, before=False) != signal.SIGKILL:
            break
        dies(run.key)
        fault_points["killed"] += 1
    assert execute.advance(run.key) is False
    checked(run.key)


def test_a_task_delivered_five_times_and_at_once(spec: Spec) -> None:
    run = new(spec)
    together = threading.Barrier(5)

    def deliver() -> None:
        try:
            together.wait(WAIT_S)
            tasks.advance(run.key)
        finally:
            connection.close()

    _all(deliver, 5)
    for _ in range(5):
        tasks.advance(run.key)
    checked(run.key)


def test_eight_workers_resume_one_run(spec: Spec) -> None:
    run = new(spec)
    assert killed_at(run.key, 4, before=False) == signal.SIGKILL
    dies(run.key)
    together = threading.Barrier(8)
    said: list[str] = []

    def resume() -> None:
        try:
            together.wait(WAIT_S)
            said.append(execute.advance_or_busy(run.key))
        finally:
            connection.close()

    _all(resume, 8)
    assert len(said) == 8 and "stopped" in said
    checked(run.key)
    resumed = [record for record, _ in DatabaseLedgers().reader(run.key).read() if record.kind == "resume"]
    assert len(resumed) == 1


def _all(work: Callable[[], None], many: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
