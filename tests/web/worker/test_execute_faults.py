"""A worker whose begin, sandbox or lease fails: the run says why, and goes on later or stops."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from spak.errors import UnavailableError
from spakweb.face.streams.summaries import HEADER, header
from spakweb.ground import clock
from spakweb.ground.teams.models import User
from spakweb.store.ledger import workspaces
from spakweb.store.ledger.store import leases
from spakweb.store.runs.models import Run, State
from spakweb.work.fleet.actions import heartbeat
from spakweb.work.runs.actions import fork, request_control, resume
from spakweb.work.worker import beginning, execute, held_run, open_run, tasks
from spakweb.work.worker.held_run import HeldRun
from worker_kit import ASKING, HELLO, begun


@pytest.mark.parametrize("holder", ["", "another"])
def test_a_begin_that_fails_says_nothing_of_what_others_did_meanwhile(
    user: User, monkeypatch: pytest.MonkeyPatch, holder: str
) -> None:
    run = begun(user, HELLO)

    def fails(*ignored: object) -> None:
        if holder:
            until = clock.now() + timedelta(seconds=9)
            Run.objects.update(holder=holder, lease_until=until)
        else:
            request_control(user, run, "cancel")
        raise UnavailableError("sandbox.missing", "no sandbox", "")

    monkeypatch.setattr(open_run, "begin", fails)
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert (run.state, run.holder) == (State.QUEUED if holder else State.CANCELLED, holder)


@pytest.mark.parametrize("begun_before", [False, True])
def test_a_worker_that_fails_says_so_and_the_run_goes_on_later(
    user: User, monkeypatch: pytest.MonkeyPatch, begun_before: bool
) -> None:
    """A fault of ours: nobody has it in hand, and it is not lost."""
    run = begun(user, HELLO)
    if begun_before:
        assert execute.advance(run.key, slice_s=0) is True

    def breaks(*ignored: object) -> None:
        raise ValueError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(open_run, "workspace_of", breaks)
        assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert (run.state, run.holder) == (State.QUEUED, "") and "a fault of ours" in run.reason
    assert run.reason.startswith("web.worker: ")
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert (run.state, run.reason) == (State.SUCCEEDED, "")


def test_what_this_worker_lacks_another_may_have(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new host without the image must not end every run that it is the first to take."""

    def no_image(*ignored: object) -> None:
        raise UnavailableError("unavailable.sandbox", "there is no image", "build it")

    monkeypatch.setattr(open_run, "begin", no_image)
    heartbeat("another", process="far:1", queues=["default"], devices=())
    run, old, far = (begun(user, HELLO) for _ in range(3))
    Run.objects.filter(pk=old.pk).update(made_at=timezone.now() - timedelta(minutes=4))
    Run.objects.filter(pk=far.pk).update(queue="gpu")
    assert [execute.advance(one.key) for one in (run, old, far)] == [False] * 3
    states = dict(Run.objects.values_list("pk", "state"))
    assert states == {run.pk: State.QUEUED, old.pk: State.FAILED, far.pk: State.FAILED}
    assert "there is no image" in Run.objects.get(pk=run.pk).reason


def no_engine(*ignored: object) -> None:
    raise UnavailableError("unavailable.sandbox", "no Docker engine answers", "start it")


def test_a_run_that_is_held_up_says_why_and_goes_on_later(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No engine, no disk: no other than the next worker, a little later, can mend it."""
    run = begun(user, HELLO)
    assert execute.advance(run.key, slice_s=0) is True

    with monkeypatch.context() as patched:
        patched.setattr(open_run, "host_of", no_engine)
        assert execute.advance(run.key) is False
    shown = header(Run.objects.values(*HEADER).get(pk=run.pk), timezone.now())
    assert shown["state"] == "queued" and "no Docker engine answers" in shown["why"]
    assert execute.advance(run.key) is False
    run.refresh_from_db()
    assert (run.state, run.reason, run.holder) == (State.SUCCEEDED, "", "")


@pytest.mark.parametrize(("word", "state"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_a_run_whose_sandbox_is_away_is_stopped(
    user: User, monkeypatch: pytest.MonkeyPatch, word: str, state: State
) -> None:
    run = begun(user, HELLO)
    assert execute.advance(run.key, slice_s=0) is True

    with monkeypatch.context() as patched:
        patched.setattr(open_run, "host_of", no_engine)
        request_control(user, run, word)
        assert tasks.stop_wanted() == 1 and tasks.stop_wanted() == 0
        run.refresh_from_db()
        assert (run.state, run.holder, run.wanted) == (state, "", "")
        assert not (workspaces.folder_of(run.key) / "workspace" / "hello.txt").exists()
        request_control(user, run, "pause")
        row = Run.objects.get(pk=run.pk)
        resume(user, run)  # when it was taken up already
        assert execute._advanced(row, 60) in ("again", "stopped")
    assert not (workspaces.folder_of(run.key) / "workspace" / "hello.txt").exists()
    if word == "pause":
        execute.advance(run.key)
        assert Run.objects.get(pk=run.pk).state == State.SUCCEEDED


def test_who_resumes_a_run_that_comes_to_a_stop_has_it_go_on(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(user, HELLO)
    assert execute.advance(run.key, slice_s=0) is True
    request_control(user, run, "pause")
    stop = HeldRun.break_off

    def stopped_and_resumed(held: HeldRun, wanted: str) -> None:
        stop(held, wanted)
        resume(user, run)

    with monkeypatch.context() as patched:
        patched.setattr(HeldRun, "break_off", stopped_and_resumed)
        assert execute.advance(run.key) is True
    run.refresh_from_db()
    assert (run.state, run.wanted, run.holder) == (State.QUEUED, "", "")
    execute.advance(run.key)
    assert Run.objects.get().state == State.SUCCEEDED


def test_a_run_that_is_to_be_cancelled_is(user: User) -> None:
    run = begun(user, ASKING)
    execute.advance(run.key)
    request_control(user, run, "cancel")
    request_control(user, run, "pause")
    Run.objects.update(state=State.PAUSED)
    resume(user, run)
    execute.advance(run.key)
    assert Run.objects.get().state == State.CANCELLED


@pytest.mark.parametrize("forked", [False, True])
def test_a_lease_is_given_back_whatever_goes_wrong_behind_it(
    user: User, monkeypatch: pytest.MonkeyPatch, forked: bool
) -> None:
    """The database may be away for just that moment; the process would renew it for ever."""
    run = begun(user, HELLO)
    assert execute.advance(run.key, slice_s=0) is True
    if forked:
        run.refresh_from_db()
        run = fork(user, run, 1)
        assert execute.advance(run.key, slice_s=0) is True
        Run.objects.filter(pk=run.pk).update(projected=0)

    def away(*ignored: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patched:
        patched.setattr(*((beginning.forking, "copied") if forked else (held_run, "Projection")), away)
        with pytest.raises(OperationalError):
            execute.advance(run.key)
    assert leases.held() == []
    execute.advance(run.key)
    assert Run.objects.get(pk=run.pk).state == State.SUCCEEDED
