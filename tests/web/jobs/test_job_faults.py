"""Messages of jobs that are lost, doubled or late, and workers that die or freeze: once for each kind.

test_job_kills.py has the same with processes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from threading import Event as Flag
from typing import Any

import pytest
from django.conf import settings

from job_kinds_kit import MADE, Work
from jobs_kit import swept, wanted
from spak.errors import RunError
from spakweb.ground import clock
from spakweb.store.hooks.models import DELIVER, Delivery, Webhook
from spakweb.store.jobs import leases
from spakweb.store.jobs.models import Job
from spakweb.work.jobs import queue, work
from spakweb.work.jobs.kinds import Again, Kind, kinds
from spakweb.work.worker import execute

pytestmark = [pytest.mark.django_db, pytest.mark.faults]


@pytest.fixture(params=list(MADE))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def one(kind: str, cast: Any, monkeypatch: pytest.MonkeyPatch) -> Work:
    made = MADE[kind](cast, monkeypatch)
    assert made.done() == 0
    return made


class Killed(BaseException):
    """The worker is gone: nothing after it is run, and its transaction is not committed."""


def passes(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + timedelta(seconds=seconds))


def test_every_kind_is_tested() -> None:
    assert set(MADE) == set(kinds())


def test_a_message_that_is_lost(kind: str, one: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(queue, "send", lambda kind, key, queue: sent.append((kind, key)))
    swept(kind)
    sent.clear()
    swept(kind)
    assert sent == [], "a message is under way"
    passes(monkeypatch, queue.RESEND_AFTER.total_seconds() + 2)
    swept(kind)
    assert sent == [(kind, one.key)]
    work.do(kind, one.key)
    assert one.done() == 1


def test_a_message_that_comes_twice_and_late(kind: str, one: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    swept(kind)
    for _ in range(3):
        work.do(kind, one.key)
    assert one.done() == 1 and wanted(kind) == []
    passes(monkeypatch, 3600)
    work.do(kind, one.key)
    assert one.done() == 1
    work.do(kind, "987654")  # of something that there is not


def test_a_worker_that_is_killed(kind: str, one: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right before its last write; another worker takes the job when the lease is over."""
    swept(kind)
    dies(kind, one, monkeypatch)
    assert one.done() == 0
    work.do(kind, one.key)
    assert one.done() == 0, "the lease holds"
    passes(monkeypatch, leases.LEASE_S + 1)
    assert swept(kind) == [one.key]
    work.do(kind, one.key)
    assert one.done() == 1


def dies(kind: str, one: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*given: Any, **more: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(work.Hold, "confirm", killed)
        patched.setattr(work, "_put_down", killed)
        with pytest.raises(Killed):
            work.do(kind, one.key)


def test_a_job_that_kills_every_worker_fails_and_says_so(
    kind: str, one: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(kind)
    for _ in range(len(kinds()[kind].waits) + 1):
        dies(kind, one, monkeypatch)
        passes(monkeypatch, leases.LEASE_S + 1)
    work.do(kind, one.key)
    row = Job.objects.get(kind=kind)
    assert row.error.startswith("web.worker: ") and row.wanted_at is None and row.done_at is not None
    assert swept(kind) == [], "nothing of it is left to do"


def test_a_worker_that_froze_and_wakes_writes_nothing(
    kind: str, one: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops right before its writes; its lease ends, and another does the job."""
    swept(kind)
    frozen: list[int] = []
    writing, put_down = work.Hold.writing, work._put_down

    def meanwhile() -> None:
        if not frozen:
            frozen.append(1)
            passes(monkeypatch, leases.LEASE_S + 1)
            work.do(kind, one.key)
            assert one.done() == 1

    def late(hold: work.Hold) -> AbstractContextManager[None]:
        meanwhile()
        return writing(hold)

    def later(hold: work.Hold, **columns: Any) -> None:
        meanwhile()
        put_down(hold, **columns)

    monkeypatch.setattr(work.Hold, "writing", late)
    monkeypatch.setattr(work, "_put_down", later)
    work.do(kind, one.key)
    assert frozen and one.done() == 1
    row = Job.objects.get(kind=kind)
    assert (row.holder, row.error, row.fence) == ("", "", 2)


def test_a_message_outlives_the_longest_job() -> None:
    """Else Redis would hand a message on while its worker is at it."""
    longest = max(kind.longest.total_seconds() for kind in kinds().values())
    assert max(longest, execute.SLICE_S) < settings.VISIBLE_S


def test_teams_take_turns(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A team with many jobs that wait holds up no other team's."""
    sent: list[str] = []
    monkeypatch.setattr(queue, "send", lambda kind, key, queue: sent.append(key))
    monkeypatch.setattr(queue, "AT_A_TIME", 4)
    for number in range(8):
        queue.want("suites.vet", number, cast.team.pk)
    queue.want("suites.vet", 9, cast.other_team.pk)
    Job.objects.update(enqueued_at=None)
    queue.sweep(["suites.vet"])
    assert sent == ["0", "9", "1", "2"]


def test_a_team_with_any_number_of_jobs_holds_up_no_other(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(queue, "send", lambda kind, key, queue: sent.append(key))
    many = [
        Job(kind="suites.vet", key=str(number), team=cast.team, wanted_at=clock.now())
        for number in range(20 * queue.AT_A_TIME)
    ]
    Job.objects.bulk_create(many)
    late = Job(kind="suites.vet", key="late", team=cast.other_team, wanted_at=clock.now())
    late.save()
    queue.sweep(["suites.vet"])
    assert len(sent) == queue.AT_A_TIME and "late" in sent


def test_what_rests_hides_nothing_else_that_is_to_be_done(cast: Any) -> None:
    """A team whose work waits for a service that is away, and more of it than a sweep looks at."""
    now = clock.now()
    more = {"url": "https://ci.example/", "events": "failed", "made_by": cast["alice"], "salt": "s"}
    hooks = [Webhook(team=cast.team, name=str(number), **more) for number in range(queue.AT_A_TIME + 1)]
    for one in Webhook.objects.bulk_create(hooks):
        Delivery.objects.create(webhook=one, message=f"m{one.pk}", event="test", at=now, next_at=now)
    swept(DELIVER)
    swept(DELIVER)
    away = now + timedelta(seconds=60)
    assert Job.objects.filter(kind=DELIVER).update(due=away, holder="") == queue.AT_A_TIME + 1
    theirs = Webhook.objects.create(team=cast.other_team, name="ci", **more)
    Delivery.objects.create(webhook=theirs, message="m", event="test", at=now, next_at=now)
    assert swept(DELIVER) == [str(theirs.pk)]


def test_a_receiver_that_is_away_with_many_messages_hides_no_other(cast: Any) -> None:
    now = clock.now()
    more = {"url": "https://ci.example/", "events": "failed", "made_by": cast["alice"], "salt": "s"}
    away, other = (Webhook.objects.create(team=cast.team, name=name, **more) for name in ("away", "other"))
    Delivery.objects.bulk_create(
        Delivery(webhook=away, message=f"m{number}", event="test", at=now, next_at=now)
        for number in range(500)
    )
    swept(DELIVER)
    Job.objects.filter(kind=DELIVER, key=str(away.pk)).update(due=now + timedelta(seconds=60))
    Delivery.objects.create(webhook=other, message="m", event="test", at=now, next_at=now)
    assert swept(DELIVER) == [str(other.pk)]


def test_the_setting_says_which_workers_do_jobs(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(queue, "send", lambda kind, key, queue: sent.append((key, queue)))
    queue.want("suites.vet", 1, cast.team.pk)
    monkeypatch.setattr(settings, "JOB_QUEUE", "checks")
    Job.objects.update(enqueued_at=None)
    queue.sweep(["suites.vet"])
    assert sent == [("1", "checks")], "also what waits since before"
    assert Job.objects.get().queue == "checks"


def test_a_worker_that_is_stopped_gives_its_jobs_to_others_at_once(
    kind: str, one: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No try is counted: a job that takes longer than workers live between two upgrades is no job that kills
    them. What the stopped worker still writes is lost."""
    swept(kind)
    writing, put_down = work.Hold.writing, work._put_down

    def stopped(done: Callable[..., Any]) -> Callable[..., Any]:
        def first(hold: work.Hold, **columns: Any) -> Any:
            if work.in_hand:
                assert work.let_go() == 1
                work.in_hand.clear()
            return done(hold, **columns)

        return first

    with monkeypatch.context() as patched:
        patched.setattr(work.Hold, "writing", stopped(writing))
        patched.setattr(work, "_put_down", stopped(put_down))
        work.do(kind, one.key)
    assert one.done() == 0
    row = Job.objects.get(kind=kind)
    assert (row.holder, row.tries, row.enqueued_at) == ("", 0, None)
    assert swept(kind) == [one.key]
    work.do(kind, one.key)
    assert one.done() == 1


def test_a_message_that_comes_while_a_worker_ends_is_sent_again(
    cast: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.want("suites.vet", 1, cast.team.pk)
    monkeypatch.setattr(work, "stopping", Flag())
    work.stopping.set()
    work.do("suites.vet", "1")
    assert Job.objects.get().enqueued_at is None


@pytest.mark.parametrize("how", ["raised", "again", "result"])
def test_texts_of_others_that_no_database_takes(how: str, cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a git server or a program of a check puts out gets into errors and results."""
    text = "a\0b\udcffc"

    def act(hold: work.Hold) -> dict[str, Any]:
        match how:
            case "raised":
                raise RunError("git.refused", text, "")
            case "again":
                raise Again(text)
        return {"error": text, "more": [text]}

    kind = Kind(name="texts", title="Texts", act=act)
    monkeypatch.setattr(work, "kinds", lambda: {"texts": kind})
    queue.want("texts", 1, cast.team.pk)
    work.do("texts", "1")
    row = Job.objects.get()
    assert row.error.endswith("a\u2400b?c") and row.holder == ""
    if how == "result":
        assert row.result == {"error": "a\u2400b?c", "more": ["a\u2400b?c"]}
