"""Which run a slot goes to: the team with the fewest in hand, the longest waiting, none above its limit."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.utils import timezone

from spak.errors import LedgerError, UnavailableError
from spakweb.ground import clock
from spakweb.ground.celery_app import look
from spakweb.ground.teams.models import Team
from spakweb.store.ledger import store
from spakweb.store.ledger.store import release
from spakweb.store.runs.models import Run, State
from spakweb.work.jobs import queue as jobs
from spakweb.work.worker import execute, held_run, queue, tasks
from spakweb.work.worker.queue import pick

pytestmark = pytest.mark.django_db


@pytest.fixture
def teams(db: None, settings: Any) -> list[Team]:
    settings.TEAM_RUNS = 2
    return [Team.objects.create(name=name, slug=name) for name in ("a", "b")]


def waiting(team: Team, key: str, ago_s: int, **more: Any) -> Run:
    at = timezone.now() - timedelta(seconds=ago_s)
    return Run.objects.create(team=team, key=key, name=key, enqueued_at=at, **more)


def holds(key: str) -> None:
    until = timezone.now() + timedelta(seconds=60)
    Run.objects.filter(key=key).update(holder="worker", lease_until=until, state=State.RUNNING)


def test_the_longest_waiting_first_and_teams_in_turn(teams: list[Team]) -> None:
    a, b = teams
    for number in range(5):
        waiting(a, f"a{number}", 100 - number)
    waiting(b, "b0", 5)
    taken = []
    while key := pick("default", "a4"):
        taken.append(key)
        holds(key)
    assert taken == ["a0", "b0", "a1"], "a has two of its two, and the rest waits"
    Run.objects.filter(key="a0").update(holder="", lease_until=None, state=State.SUCCEEDED)
    assert pick("default") == "a2"


def test_who_is_to_stop_is_stopped_whatever_the_limit(teams: list[Team]) -> None:
    for number in range(3):
        waiting(teams[0], f"a{number}", 9)
    holds("a0")
    holds("a1")
    assert pick("default", "a2") is None
    Run.objects.filter(key="a2").update(wanted="cancel")
    assert pick("default", "a2") == "a2"


@pytest.mark.django_db(transaction=True)
def test_slots_that_choose_at_the_same_moment_keep_to_the_limit(settings: Any) -> None:
    settings.TEAM_RUNS = 2
    teams = [Team.objects.create(name=name, slug=name) for name in ("a", "b")]
    for team in teams:
        for number in range(6):
            waiting(team, f"{team.slug}{number}", 9 - number)

    def choose(number: int) -> str | None:
        try:
            return pick("default")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        chosen = [key for key in pool.map(choose, range(8)) if key]
    assert sorted(chosen) == ["a0", "a1", "b0", "b1"]
    assert pick("default") is None and queue.next_of("default") is None
    queue.let_go("a0")
    assert queue.next_of("default") == "a0" and pick("default") == "a0"


def test_who_chose_a_run_gets_its_lease_and_nobody_else(teams: list[Team]) -> None:
    waiting(teams[0], "a0", 9)
    assert pick("default") == "a0"
    Run.objects.update(holder="another+")
    assert not store._taken("a0")
    Run.objects.update(holder=store.leases.choosing)
    assert store._taken("a0")
    queue.let_go("a0")
    assert Run.objects.get().holder == store.leases.process, "a lease that was taken is not let go"


def test_a_slot_that_froze_with_its_lease_does_not_take_that_of_another_slot(
    teams: list[Team], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are of one process, and would go on with the run at once (`make simulate`, seed 322)."""
    waiting(teams[0], "a0", 9)
    real = store._taken

    def and_freezes(run: str) -> int | None:
        fence = real(run)
        Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        assert fence is not None and real(run) == fence + 1, "another slot"
        return fence

    monkeypatch.setattr(store, "_taken", and_freezes)
    with pytest.raises(LedgerError, match="is held by another runner"):
        store._take("a0", 0)
    assert store.leases.held() == []


def test_a_run_that_this_process_holds_is_not_chosen_when_its_lease_ends(teams: list[Team]) -> None:
    """A stalled writer renews no lease: the worker chose its run without end (`make simulate`, seed 93)."""
    waiting(teams[0], "a0", 9)
    ledger = store._take("a0", 0)
    over = timezone.now() - timedelta(seconds=1)
    Run.objects.update(lease_until=over, state=State.RUNNING, wanted="cancel")
    assert pick("default") is None and pick("default", "a0") is None
    assert queue.next_of("default") is None and tasks.stop_wanted() == 0
    store.leases.drop(ledger)
    assert queue.next_of("default") == "a0" == pick("default", "a0"), "another process may"


def test_queues_are_apart(teams: list[Team]) -> None:
    waiting(teams[0], "g", 9, queue="gpu")
    waiting(teams[0], "p", 9, state=State.PAUSED)
    assert pick("default") is None
    assert pick("gpu") == "g"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    found: list[str] = []
    for module in (queue, tasks):
        monkeypatch.setattr(module, "send", lambda key, queue="default": found.append(key))
    return found


def test_a_slot_that_is_free_again_goes_to_one_that_was_held_back(
    teams: list[Team], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(teams[0], "a0", 9)
    waiting(teams[0], "a1", 8)

    def ends(key: str) -> str:
        Run.objects.filter(key=key).update(state=State.SUCCEEDED)
        return "stopped"

    monkeypatch.setattr(execute, "advance_or_busy", ends)
    tasks.advance("a0")
    assert sent == ["a1"]


def test_one_that_is_held_up_is_not_tried_again_by_the_slot_that_it_left(
    teams: list[Team], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No engine: each try would send for the next, as fast as they come."""
    waiting(teams[0], "a0", 9, count=1)

    def no_engine(row: Run) -> None:
        raise UnavailableError("unavailable.sandbox", "no engine", "")

    monkeypatch.setattr(execute, "take", no_engine)
    tasks.advance("a0")
    assert sent == [] and pick("default", "a0") is None
    run = Run.objects.get()
    assert (run.state, run.holder) == (State.QUEUED, "") and run.reason
    assert tasks.sweep_up() == 0
    Run.objects.update(due=timezone.now())
    assert tasks.sweep_up() == 1 and pick("default", "a0") == "a0"


def test_what_sweeps_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong: in an embedded worker nobody else sweeps."""
    stop, swept = threading.Event(), []
    monkeypatch.setattr(tasks, "LOOK_S", 0.001)
    monkeypatch.setattr(tasks, "stop_wanted", lambda: 0)

    def sweep() -> int:
        swept.append(1)
        if len(swept) == 3:
            stop.set()
        raise OSError(28, "No space left on device")

    tasks.watch(stop, 0, sweep)
    assert len(swept) == 3


def test_runs_are_swept_up_whatever_is_wrong_with_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, done = threading.Event(), []
    monkeypatch.setattr(tasks, "LOOK_S", 0.001)
    monkeypatch.setattr(tasks, "stop_wanted", lambda: 0)

    def prompt() -> int:
        done.append("jobs")
        raise DatabaseError("no such table: hooks_delivery")

    def sweep() -> int:
        done.append("swept")
        if len(done) > 5:
            stop.set()
        return 0

    monkeypatch.setattr(tasks.jobs, "prompt", prompt)
    tasks.watch(stop, 0, sweep)
    assert done[:4] == ["swept", "jobs"] * 2


GONE = timedelta(seconds=-1)


@pytest.mark.parametrize(
    ("columns", "taken"),
    [
        ({"state": State.RUNNING, "holder": "dead", "lease_until": GONE}, True),
        ({"state": State.RUNNING, "holder": "dead", "lease_until": -GONE}, False),
        ({"state": State.RUNNING}, True),  # whoever had it failed, and gave its lease back
        ({"state": State.QUEUED}, False),  # its message is on its way
        ({"state": State.QUEUED, "enqueued_at": None}, True),  # no message, or its worker was told to end
        ({"state": State.QUEUED, "enqueued_at": 31 * GONE}, True),
        ({"state": State.SUCCEEDED, "holder": "dead", "lease_until": GONE}, False),
    ],
)
def test_what_a_sweep_puts_back_at_once(
    teams: list[Team], sent: list[str], columns: dict[str, Any], taken: bool
) -> None:
    now = timezone.now()
    columns = {
        name: now + value if isinstance(value, timedelta) else value for name, value in columns.items()
    }
    Run.objects.create(team=teams[0], key="r", name="r", **{"enqueued_at": now, **columns})
    assert tasks.sweep_up() == len(sent) == int(taken)
    assert tasks.sweep_up() == 0, "it was put back twice"
    if taken:
        assert Run.objects.filter(key="r", state=State.QUEUED, holder="").exists()


def test_a_sweep_that_was_stopped_after_it_asked_for_the_time_puts_down_no_lease(
    teams: list[Team], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    asked = iter([now - timedelta(hours=2)])  # it was stopped, or the clock was set back meanwhile
    monkeypatch.setattr(jobs.clock, "now", lambda: next(asked, now))
    until = now + timedelta(seconds=15)
    columns = {"state": State.RUNNING, "holder": "alive", "lease_until": until, "enqueued_at": None}
    Run.objects.create(team=teams[0], key="r", name="r", **columns)
    assert jobs.put_back(tasks.RUNS, Run.objects.all(), most=1) == 0 and not sent
    assert Run.objects.filter(key="r", holder="alive", lease_until=until).exists()


def test_a_run_of_a_dead_or_stopping_worker_waits_for_no_more_than_the_next_sweep(
    teams: list[Team], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(teams[0], "a0", 5)
    holds("a0")
    assert release("worker") == 1 and tasks.sweep_up() == 1
    monkeypatch.setattr(held_run, "stopping", threading.Event())
    held_run.stopping.set()
    tasks.put_back("a0")
    assert sent == ["a0"], "it might have taken it itself"
    assert tasks.sweep_up() == 1
    tasks.advance("a0")  # the message of that sweep comes to the worker that ends
    assert tasks.sweep_up() == 1 and sent == ["a0"] * 3


def test_workers_sweep_where_beat_does_not(
    teams: list[Team], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.delete(tasks.SWEPT_KEY)
    waiting(teams[0], "a0", 31)
    tasks.sweep()
    waiting(teams[0], "a1", 31)
    assert tasks.sweep_if_nobody_did() == 0
    cache.delete(tasks.SWEPT_KEY)  # nobody did for some seconds
    assert tasks.sweep_if_nobody_did() == 1 and sent == ["a0", "a1"]


def test_a_sweep_that_leaves_out_a_lost_run_does_not_count_for_other_workers(
    teams: list[Team], sent: list[str]
) -> None:
    """Who holds it renews no lease, and is the one that beat asks (`make simulate`, seed 2420)."""
    cache.delete(tasks.SWEPT_KEY)
    waiting(teams[0], "a0", 9)
    ledger = store._take("a0", 0)
    assert tasks.sweep() == 0 and cache.get(tasks.SWEPT_KEY) is not None, "its lease is renewed"
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1), state=State.RUNNING)
    assert tasks.sweep() == 0
    store.leases.drop(ledger)  # as another worker, which holds nothing
    assert tasks.sweep_if_nobody_did() == 1 and sent == ["a0"]


def test_workers_sweep_after_the_date_was_set_back(
    teams: list[Team], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What says that somebody swept ends by the date (`make simulate`, seed 719)."""
    tasks.sweep()
    earlier = timezone.now() - timedelta(hours=1)
    monkeypatch.setattr(clock, "now", lambda: earlier)
    waiting(teams[0], "a0", 3700)
    assert tasks.sweep_if_nobody_did() == 1 and sent == ["a0"]
    assert tasks.sweep_if_nobody_did() == 0


class Channel:
    """A channel of messages over one end of a socket."""

    def __init__(self, end: socket.socket) -> None:
        self.client = SimpleNamespace(connection=SimpleNamespace(_sock=end))
        self.pings = 0

    @contextmanager
    def conn_or_acquire(self) -> Iterator[Any]:
        yield self

    def ping(self) -> None:
        self.pings += 1


def test_a_worker_looks_at_its_connection_and_says_nothing_over_it() -> None:
    here, there = socket.socketpair()
    with here:
        channel = Channel(here)
        look(channel)
        there.sendall(b"a message")
        look(channel)
        assert channel.pings == 2 and here.recv(20) == b"a message"
        there.close()
        with pytest.raises(ConnectionResetError):
            look(channel)
