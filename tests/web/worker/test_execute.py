"""What a worker does with a run: from the row to its end, with people in between, and after a death."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from process_kit import WAIT_S, happens, until
from spak.errors import LedgerError
from spak.lang.catalog import NamedEntry
from spak.ledger import verify
from spak.ports import Answer, Prompt
from spak.runner import Run as Runner
from spakweb.face.runs import run_parts
from spakweb.face.streams.summaries import HEADER, header
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import User
from spakweb.store.ledger import workspaces
from spakweb.store.ledger import writer as writing
from spakweb.store.ledger.projection import rebuild
from spakweb.store.ledger.store import DatabaseLedgers, leases
from spakweb.store.runs.models import Run, State
from spakweb.work.runs.actions import ask, request_control
from spakweb.work.worker import beginning, execute, held_run, open_run, queue, tasks
from spakweb.work.worker.held_run import HeldRun
from worker_kit import ASKING, HELLO, begun

REST = f"61.{os.getpid()}"
"""Tells this process's tools from those of other tests at the same time."""

SLOW = f"""\
task Slow {{
  step rest: tool.run {{ cmd: "sleep {REST}" }}
  success: exit_code(rest) == 0
}}
"""
STEPS = "".join(f'  step s{n}: tool.run {{ cmd: "sleep 0.05{n:03}" }}\n' for n in range(300))
BUSY = f"task Busy {{\n{STEPS}}}\n"


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


def test_what_a_run_that_begins_asks_of_the_database(user: User) -> None:
    """Its row is read once and written by the group commit: its mode and what it takes in too."""
    run = begun(user, HELLO)
    with CaptureQueriesContext(connection) as seen:
        execute.advance(run.key)
    asked = [one["sql"] for one in seen.captured_queries]
    assert sum('"runs_run"."inputs"' in sql for sql in asked) == 1
    assert [sql for sql in asked if sql.startswith("UPDATE")] == [
        f'UPDATE "runs_run" SET "left_at" = 0 WHERE ("runs_run"."count" = 0 AND "runs_run"."id" = {run.pk})'
    ]
    run.refresh_from_db()
    assert (run.state, run.mode, run.takes_in) == (State.SUCCEEDED, "stepwise", [])


@pytest.mark.parametrize(("wanted", "state"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_what_is_asked_of_a_run_while_it_begins(
    user: User, monkeypatch: pytest.MonkeyPatch, wanted: str, state: State
) -> None:
    """The row was read before, and none of its steps is begun."""
    run = begun(user, HELLO)
    real = beginning.fill

    def fill(row: Run, *more: Any) -> None:
        real(row, *more)
        Run.objects.filter(pk=row.pk).update(wanted=wanted)

    monkeypatch.setattr(beginning, "fill", fill)
    monkeypatch.setattr(held_run, "WATCH_S", 60)
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.wanted, run.holder, run.summary["steps"]) == (state, "", "", 0)
    assert not (workspaces.folder_of(run.key) / "workspace" / "hello.txt").exists()


def test_an_end_that_is_not_recorded_yet_is_not_shown(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator's seed 9: a run read "succeeded" before its last records were handed in, and its worker
    may die in between."""
    run = begun(user, HELLO)
    real, states = Runner._append, []

    def append(self: Runner, records: list[Any]) -> None:
        if self.state.ended:
            for holding in list(held_run.watcher._held.values()):
                holding.news = True
                holding.save_progress()
            writing.writer.submit(self.ledger.renewal()).result(10)  # type: ignore[attr-defined]
            states.append(Run.objects.get().state)
        real(self, records)

    monkeypatch.setattr(held_run, "WATCH_S", 60)
    monkeypatch.setattr(Runner, "_append", append)
    execute.advance(run.key)
    assert states[0] == State.RUNNING
    assert Run.objects.get().state == State.SUCCEEDED


def test_a_waiting_run_goes_on_with_an_answer(user: User) -> None:
    run = begun(user, ASKING)
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert run.state == State.WAITING and run.summary["waiting"]["prompt"] and not run.holder
    first = ask(user, run, "answer", run.summary["waiting"]["id"], text="hello")
    assert ask(user, run, "answer", run.summary["waiting"]["id"], text="hello") == first
    with pytest.raises(Refused, match="alice was first and answered it: your answer was not used"):
        ask(user, run, "answer", run.summary["waiting"]["id"], text="too late")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED
    assert [command.outcome for command in run.commands.all()] == [""]
    assert (workspaces.folder_of(run.key) / "workspace" / "word.txt").read_text() == "hello"


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


def stopped(user: User, word: str, text: str, begun_well: Callable[[Run], bool]) -> tuple[Run, float]:
    """A run that was asked to stop as soon as `begun_well`, and the seconds until its worker let it go."""
    run = begun(user, text)
    worker = threading.Thread(target=execute.advance, args=(run.key,))
    worker.start()

    def under_way() -> bool:
        assert worker.is_alive(), run.records.count()
        return begun_well(run)

    until(under_way)
    asked = time.monotonic()
    request_control(user, run, word)
    worker.join(WAIT_S)
    took = time.monotonic() - asked
    assert not worker.is_alive()
    run.refresh_from_db()
    if run.state == State.QUEUED:  # broken off between two calls: the next worker finishes it
        execute.advance(run.key)
        run.refresh_from_db()
    return run, took


def resting(run: Run | None = None) -> bool:
    """Whether the tool of SLOW runs: its process is looked for, not a row."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if file.read_bytes() == b"sleep\x00%s\x00" % REST.encode():
                return True
    return False


def test_a_worker_stopped_while_it_begins_a_run_keeps_no_other_run_waiting(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = begun(user, HELLO), begun(user, HELLO)
    sent: list[str] = []
    monkeypatch.setattr(tasks, "send", lambda key, queue: sent.append(key))
    with open_run._alone(first):  # it holds the folder; its choice of the run has ended
        tasks.advance(first.key)
        first.refresh_from_db()
        assert (first.state, first.reason.partition(":")[0]) == (State.QUEUED, "workspace.busy")
        assert sent == [second.key]
        tasks.advance(second.key)
    second.refresh_from_db()
    assert second.state == State.SUCCEEDED
    assert execute.advance(first.key) is False
    first.refresh_from_db()
    assert first.state == State.SUCCEEDED


@pytest.mark.parametrize("late", ["before it answers", "before it says so"])
def test_a_runner_that_lost_its_lease_leaves_answers_to_the_next(user: User, late: str) -> None:
    run = begun(user, ASKING)
    execute.advance(run.key)
    run.refresh_from_db()
    ask(user, run, "answer", run.summary["waiting"]["id"], text="hello")
    held = HeldRun(run, open_run.take(run))
    taken = Run.objects.filter(pk=run.pk)
    if late == "before it says so":  # the question is not the one that it knows: nothing to answer
        held.runner.state = replace(held.runner.state, r6=None)
    taken.update(fence=F("fence") + 1, holder="another")
    with pytest.raises(LedgerError) as lost:
        held._obey()
    assert lost.value.code == "ledger.lost_lease"
    assert run.commands.get().done_at is None
    with contextlib.suppress(LedgerError):
        held.runner.close()
    taken.update(holder="")
    execute.advance(run.key)
    assert Run.objects.get().state == State.SUCCEEDED
    assert (workspaces.folder_of(run.key) / "workspace" / "word.txt").read_text() == "hello"


@pytest.mark.sandbox
@pytest.mark.parametrize(("word", "state"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_a_running_tool_is_broken_off(user: User, word: str, state: State) -> None:
    run, _ = stopped(user, word, SLOW, resting)
    assert (run.state, run.wanted, run.holder) == (state, "", "")
    assert not resting(), "the tool outlived the run"


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("text", [SLOW, BUSY], ids=["in a tool", "between tools"])
def test_a_cancel_takes_less_than_two_seconds(user: User, text: str) -> None:
    """The time counts, so this is no part of CI: there a busy machine would decide it."""
    begun_well = resting if text is SLOW else lambda run: run.records.count() > 20
    took = [stopped(user, "cancel", text, begun_well)[1] for _ in range(5)]
    assert max(took) < 2, took


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
        again = (run.state, run.task, run.reason, run.summary, run.started_at, run.ended_at)
        assert again == before
        if run.state == State.WAITING:
            ask(user, run, "answer", run.summary["waiting"]["id"], text="hello")
            execute.advance(run.key)
            run.refresh_from_db()
    assert run.state == State.SUCCEEDED


class Model:
    """A backend that looks at the run in the middle of its call, and answers."""

    entry = NamedEntry("local", "a model under test")

    def __init__(self, look: Callable[[], object]) -> None:
        self.look = look

    def check(self) -> None: ...

    def answer(self, prompt: Prompt, on_text: object = None, cancel: object = None) -> Answer:
        self.look()
        return Answer("hello", model="m")


def test_a_run_whose_backend_is_asked_waits_for_nobody(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(user, ASKING, mode="stepwise")
    execute.advance(run.key)
    run.refresh_from_db()
    ask(user, run, "call", run.summary["waiting"]["id"])
    seen: list[tuple[str, str, object]] = []

    def look() -> None:
        happens(lambda: Run.objects.get().state == State.RUNNING)
        now = Run.objects.get()
        gone = header({**Run.objects.values(*HEADER).get(), "lease_until": None}, timezone.now())
        seen.append((now.state, gone["state"], run_parts.head(now)["asked"]))
        assert Run.objects.filter(queue.due()).exists()  # if the worker dies now, another goes on
        assert run_parts.outcome(now) == "Running Talk, asks the backend in step hear."
        assert run_parts.live(now)["nodes"]["Talk"][0] == "running"

    def with_model(*about: Any) -> Any:
        return replace(beginning.host_of(*about), backend=Model(look))

    monkeypatch.setattr(open_run, "host_of", with_model)
    execute.advance(run.key)
    assert seen == [(State.RUNNING, "queued", None)]
    assert Run.objects.get().state == State.SUCCEEDED


def test_a_dead_worker_loses_the_run_to_the_next(user: User) -> None:
    run = begun(user, ASKING)
    execute.advance(run.key)
    dead = DatabaseLedgers().open(run.key)
    assert execute.advance(run.key) is False  # held: nothing happens
    leases.drop(dead)
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    run.refresh_from_db()
    ask(user, run, "answer", run.summary["waiting"]["id"], text="hello")
    execute.advance(run.key)
    assert Run.objects.get().state == State.SUCCEEDED
    assert dead.fence < Run.objects.get().fence


@pytest.mark.parametrize("gpu", ["gpu", "gpu.h100"])
def test_an_effect_of_another_queue_is_left_to_its_workers(
    user: User, settings: Any, monkeypatch: pytest.MonkeyPatch, gpu: str
) -> None:
    """The device is what the catalog says of a validator; here write_file stands for one on a GPU."""
    run = begun(user, HELLO, queue=gpu)
    assert (run.queue, run.gpu) == ("default", gpu)
    real = queue.queue_of
    monkeypatch.setattr(
        queue,
        "queue_of",
        lambda effect, runner: "gpu" if effect and effect.name == "write_file" else real(effect, runner),
    )
    settings.WORKER_QUEUES = ["default"]
    assert execute.advance(run.key) is True
    run.refresh_from_db()
    assert (run.queue, run.state, run.holder) == (gpu, State.QUEUED, "")
    assert not (workspaces.folder_of(run.key) / "workspace" / "hello.txt").exists()
    settings.WORKER_QUEUES = [gpu]
    again = execute.advance(run.key)
    run.refresh_from_db()
    assert (workspaces.folder_of(run.key) / "workspace" / "hello.txt").exists()
    if again:
        assert (run.queue, run.state) == ("default", State.QUEUED)
        settings.WORKER_QUEUES = ["default"]
        execute.advance(run.key)
        run.refresh_from_db()
    assert run.state == State.SUCCEEDED


@pytest.mark.parametrize("word", ["cancel", "pause"])
def test_what_is_to_stop_needs_no_slot(user: User, settings: Any, word: str) -> None:
    """All slots may be taken for a minute; a run that waits for one, or for a person, stops nevertheless."""
    asking, queued = begun(user, ASKING), begun(user, HELLO)
    execute.advance(asking.key)
    for run in (asking, queued):
        request_control(user, run, word)
    settings.WORKER_QUEUES = ["gpu"]
    assert tasks.stop_wanted() == 0
    settings.WORKER_QUEUES = ["default"]
    left = {"cancel": 1, "pause": 2}[word]  # one that was not begun is cancelled at once
    assert tasks.stop_wanted() == left and tasks.stop_wanted() == 0
    states = set(Run.objects.values_list("state", "wanted", "holder"))
    stopped = {"cancel": {"cancelled"}, "pause": {"paused", "waiting"}}[word]  # who waits for a person waits
    assert states == {(state, "", "") for state in stopped}


def test_the_queue_of_an_effect(user: User) -> None:
    """A device is not held through a question, nor by what needs no sandbox."""
    run = begun(user, HELLO)
    runner = open_run.take(Run.objects.get(pk=run.pk))
    try:
        effect = runner.pending()._replace(act="tool", cls="effect", name="write_file")
        ask_ = effect._replace(act="ask", cls="ask")
        shell = effect._replace(name="run")
        measured = effect._replace(act="validate", name="CudaProfiler")
        of = [queue.queue_of(one, runner) for one in (effect, ask_, shell, measured, None)]
        assert of == ["default", "default", "default", "gpu", ""]
        runner.rules = replace(runner.rules, program=replace(runner.rules.program, sandbox="GPU"))
        of = [queue.queue_of(one, runner) for one in (effect, ask_, shell, measured)]
        inside = runner.performer.host.tools["write_file"].entry.sandboxed
        assert of == ["gpu" if inside else "default", "default", "gpu", "gpu"]
    finally:
        runner.close()
