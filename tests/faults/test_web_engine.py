"""Runs of the platform in containers, on a real engine: out of memory, and the engine away in the middle.

The worker reaches the engine by a socket of the test's own, which can be hung up.
"""

from __future__ import annotations

import gc
import os
import socket
import threading
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from process_kit import WAIT_S
from runs_kit import tables
from sandbox_kit import docker_ready
from spak.kernel.replay import replay
from spak.sandbox import docker_engine
from spakweb.face.streams.summaries import HEADER, header
from spakweb.ground.teams.models import User
from spakweb.store.ledger import workspaces
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, State
from spakweb.store.specs.models import Spec
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, queue, tasks

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]
USUAL = "unix:///var/run/docker.sock"
HUNGRY = """\
task Hungry {
  step keep: tool.write_file { path: "kept.txt" content: "kept" }
  step eat: tool.python_repl { code: "x = bytearray(8 << 30)" on_fail: "continue" }
  success: file_exists("kept.txt")
}
"""
TWO = """\
task Two {
  step one: tool.write_file { path: "one.txt" content: "1" }
  step rest: tool.run { cmd: "sleep 3" }
  step two: tool.run { cmd: "cat one.txt" }
  success: exit_code(two) == 0
}
"""


class Line:
    """A way to the engine that can be hung up and taken up again."""

    def __init__(self, path: Path, engine: str) -> None:
        self.path, self.engine = path, engine.removeprefix("unix://")
        self.ends: list[socket.socket] = []
        self.threads: list[threading.Thread] = []
        self.up()

    def up(self) -> None:
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(self.path))
        self.listening.listen(64)
        threading.Thread(target=self._serve, args=(self.listening,), daemon=True).start()

    def down(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.path.unlink()
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self.threads:
            thread.join(WAIT_S)
        for end in self.ends:
            end.close()
        self.ends.clear()
        self.threads.clear()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.engine)
            self.ends += [near, far]
            for a, b in ((near, far), (far, near)):
                self.threads.append(threading.Thread(target=_pass_on, args=(a, b), daemon=True))
                self.threads[-1].start()


def _pass_on(a: socket.socket, b: socket.socket) -> None:
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        return


@pytest.fixture
def line(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    docker_ready()
    made = Line(tmp_path_factory.mktemp("e") / "s", os.environ.get("DOCKER_HOST", USUAL))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{made.path}")
    monkeypatch.setenv("SPAK_SANDBOX_LAUNCHER", "docker")
    docker_engine.disconnect()
    yield made
    docker_engine.disconnect()
    if made.path.exists():
        made.down()
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # the engine's SDK leaves sockets open that could not connect


@pytest.fixture
def team(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    monkeypatch.setattr(tasks, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield create_team(User.objects.create_user("alice", "alice@spak.example", "a long secret"), "Tuners")


def begun(team: Any, text: str) -> Run:
    alice = User.objects.get()
    spec: Spec = create_spec(alice, team, "in a container", text)
    return start(alice, spec, mode="full_auto")


def outcomes(run: Run) -> list[str]:
    records = [record for record, _ in DatabaseLedgers().reader(run.key).read()]
    assert replay(records).difference is None
    return [str(record.body["outcome"]) for record in records if "outcome" in record.body]


def test_a_container_runs_out_of_memory(line: Line, team: Any) -> None:
    run = begun(team, HUNGRY)
    execute.advance(run.key)
    run.refresh_from_db()
    assert "oom" in outcomes(run)
    assert run.ended and run.holder == "" and (run.state == State.SUCCEEDED or run.reason)
    assert (workspaces.folder_of(run.key) / "workspace" / "kept.txt").read_text() == "kept"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of the engine's SDK
def test_the_engine_goes_away_in_the_middle(line: Line, team: Any) -> None:
    run = begun(team, TWO)
    worker = threading.Thread(target=execute.advance, args=(run.key,))
    worker.start()
    ends = timezone.now() + timedelta(seconds=60)
    while "sleep" not in _last(run) and timezone.now() < ends:
        threading.Event().wait(0.1)
    threading.Event().wait(1)
    line.down()
    worker.join(WAIT_S)
    assert not worker.is_alive()
    for _ in range(3):  # whoever takes it up while the engine is away finds none, and says so
        execute.advance(run.key)
    shown = header(Run.objects.values(*HEADER).get(pk=run.pk), timezone.now())
    assert shown["state"] == "queued", Run.objects.get(pk=run.pk).reason
    run.refresh_from_db()
    assert "engine" in shown["why"] and outcomes(run) == ["exited"]
    line.up()
    docker_engine.disconnect()
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED, run.reason
    assert outcomes(run) == ["exited"] * 3


def _last(run: Run) -> str:
    records = DatabaseLedgers().reader(run.key).read() if Run.objects.get(pk=run.pk).count else ()
    permits = [record for record, _ in records if record.kind == "permit"]
    return str(permits[-1].body.get("args", "")) if permits else ""
