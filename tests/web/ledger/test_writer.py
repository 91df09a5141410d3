"""What the group commit writes beside records: projections and leases, under the fence, one run not at the
cost of another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from ledger_contract import act, genesis
from process_kit import WAIT_S, happens
from runs_kit import ledger, tables
from spak.errors import LedgerError
from spak.runner import Run as Runner
from spakweb.ground.teams.models import Team, User
from spakweb.store.ledger import store as ledgers
from spakweb.store.ledger import writer as writing
from spakweb.store.ledger import writer_sql as sql
from spakweb.store.ledger.store import DatabaseLedger
from spakweb.store.ledger.writer import Batch
from spakweb.store.runs.models import Run, RunBlob, RunRecord, State
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, queue

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


@contextmanager
def held_back() -> Iterator[None]:
    """What is handed in after the writer's next commit, as long as this lasts, is one transaction."""
    gate = threading.Event()
    writing.writer.listeners.append(lambda heads: gate.wait(WAIT_S))
    try:
        yield
    finally:
        gate.set()
        writing.writer.listeners.pop()


def shown(row: Run, state: Any) -> Run:
    row.state, row.task, row.started_at = state, "Main", timezone.now()
    row.summary, row.projected = {"steps": 2, "text": 'a "quoted" \u2713'}, row.count
    return row


def test_a_projection_and_the_lease_come_with_the_last_records(team: Team) -> None:
    mine = ledger(team)
    before = writing.writer.transactions
    with held_back():
        mine.append([act(1)])
        mine.row.count = mine.count
        mine.show(shown(mine.row, State.SUCCEEDED))
        closing = threading.Thread(target=mine.close)
        closing.start()
        happens(lambda: writing.writer._queue.qsize() == 2, 1.0)  # how it is shown, and its lease
    closing.join(WAIT_S)
    row = Run.objects.get()
    assert (row.state, row.task, row.count, row.projected) == (State.SUCCEEDED, "Main", 2, 2)
    assert (row.summary, row.started_at) == (mine.row.summary, mine.row.started_at)
    assert (row.holder, row.lease_until) == ("", None)
    assert writing.writer.transactions - before <= 2


def test_who_lost_the_lease_shows_nothing_and_frees_nothing(team: Team) -> None:
    mine = ledger(team)
    Run.objects.update(fence=99, holder="another", lease_until=timezone.now())
    mine.show(shown(mine.row, State.FAILED))
    mine.close()
    row = Run.objects.get()
    assert (row.state, row.task, row.summary, row.holder) == (State.QUEUED, "", {}, "another")


def test_records_that_were_not_taken_are_not_shown(team: Team) -> None:
    """The simulator's seed 29: a run read "succeeded" whose last records the database had refused."""
    mine = ledger(team)
    with held_back():
        writing.writer.submit(mine.renewal()).result(WAIT_S)
        twice = (mine.row.pk, 0, "act", "proposal", "", "", 1, b"a second record 0")
        refused = writing.writer.submit(Batch(mine.row.pk, mine.run, mine.fence, 1, 2, "h", [twice]))
        mine.row.count = 2
        mine.show(shown(mine.row, State.SUCCEEDED))
    with pytest.raises(LedgerError):
        refused.result(WAIT_S)
    mine.close()
    row = Run.objects.get()
    assert (row.state, row.count, row.projected, row.holder) == (State.QUEUED, 1, 0, "")


@pytest.mark.parametrize(("wanted", "done", "left"), [("pause", "pause", ""), ("cancel", "pause", "cancel")])
def test_only_the_wish_that_was_fulfilled_is_taken_back(
    team: Team, wanted: str, done: str, left: str
) -> None:
    mine = ledger(team)
    Run.objects.update(wanted=wanted)
    mine.show(shown(mine.row, State.PAUSED), done)
    mine.close()
    assert Run.objects.get().wanted == left


def test_on_postgresql_nothing_is_sent_as_a_pipeline(team: Team) -> None:
    """A process stopped inside one would keep its locks: idle_in_transaction_session_timeout does not run."""
    runs = [ledger(team, key) for key in ("r1", "r2")]
    many_at_once: list[bool] = []

    def seen(execute: Any, text: Any, given: Any, many: bool, context: Any) -> Any:
        many_at_once.append(many)
        return execute(text, given, many, context)

    rows = [(run.row.pk, 1, "act", "proposal", "", "", 1, b"a line") for run in runs]
    heads = [(run.row.pk, run.fence, 1, 2, "head") for run in runs]
    with transaction.atomic(), connection.execute_wrapper(seen), sql.writing() as cursor:
        assert sql.append(cursor, [run.row.pk for run in runs], heads, rows)[1] == {
            head[:2] for head in heads
        }
        sql.add_blobs(cursor, [(run.row.pk, "x" * 43, 1) for run in runs])
        sql.show(cursor, [sql.shown(shown(run.row, State.WAITING), run.fence, "") for run in runs])
        sql.renew(cursor, timezone.now(), [(run.row.pk, run.fence, "me", 9.0) for run in runs])
        sql.free(cursor, [(run.row.pk, run.fence) for run in runs])
    assert len(many_at_once) == (5 if connection.vendor == "postgresql" else 7)
    assert connection.vendor == "sqlite" or not any(many_at_once)
    found = set(Run.objects.values_list("state", "summary__steps", "count", "holder", "lease_until"))
    assert found == {("waiting", 2, 2, "", None)}


def test_on_postgresql_records_alone_are_one_statement(team: Team) -> None:
    """It is its own transaction: a process cannot be stopped in the middle of it and keep rows locked."""
    mine = ledger(team)
    batch, _ = mine._next([act(1)])
    inside: list[bool] = []

    def seen(execute: Any, text: Any, given: Any, many: bool, context: Any) -> Any:
        inside.append(connection.in_atomic_block)
        return execute(text, given, many, context)

    with connection.execute_wrapper(seen):
        assert writing.writer._committed([batch]) == (set(), {})
    in_a_transaction = [False, True, True, True]  # its beginning, and three statements
    assert inside == ([False] if connection.vendor == "postgresql" else in_a_transaction)
    assert (Run.objects.get().count, RunRecord.objects.count()) == (2, 2)
    mine.close()


@pytest.mark.parametrize("taken", [0, 1], ids=["something else", "the lease"])
def test_what_another_transaction_changes_while_the_writer_waits_for_it(team: Team, taken: int) -> None:
    mine = ledger(team)
    with transaction.atomic():
        Run.objects.update(fence=F("fence") + taken, lease_until=timezone.now() + timedelta(hours=1))
        mine.append([act(1)])
        happens(lambda: writing.writer._queue.empty(), WAIT_S)
        time.sleep(0.2)  # the writer is at the row by now, or finds it changed
    if taken:
        with pytest.raises(LedgerError) as caught:
            mine.flush()
        assert caught.value.code == "ledger.lost_lease"
    else:
        mine.flush()
    assert Run.objects.get().count == RunRecord.objects.count() == 2 - taken


def test_who_does_not_get_the_lease_of_a_run_without_records_begins_nothing(team: Team) -> None:
    """Though its fence is the one that the other got, who has written nothing yet."""
    known = Run.objects.create(team=team, key="r1", name="r1")
    until = timezone.now() + timedelta(hours=1)
    Run.objects.update(fence=known.fence + 1, holder="another", lease_until=until)
    assert not DatabaseLedger(known, writable=True).begin(genesis())
    assert (Run.objects.get().count, RunRecord.objects.count()) == (0, 0)


def begun_of(row: Run, fence: int, number: int) -> tuple[DatabaseLedger, Batch]:
    """Somebody who takes the lease and begins the run, and what is written for it."""
    ledger = DatabaseLedger(row, writable=True)
    ledger.fence = fence
    batch, _ = ledger._next([genesis(f"r{number}")])
    batch.take = sql.Taking(ledgers.leases.process, ledgers.leases.choosing, 9.0, "full_auto", [])
    return ledger, batch


@pytest.mark.parametrize("fences", [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2)])
def test_of_two_takes_in_one_transaction_one_is_written(team: Team, fences: tuple[int, int]) -> None:
    """The one whose fence is the next; of two with the same fence the first. None where none is the next."""
    row = Run.objects.create(team=team, key="r1", name="r1", fence=1)
    (_, first), (_, second) = (begun_of(row, fence, number) for number, fence in enumerate(fences))
    expected = {2: [first, second][fences.index(2)]} if 2 in fences else {}
    lost, _ = writing.writer._committed([first, second])
    assert lost == {first, second} - {*expected.values()}
    found = Run.objects.get()
    if expected:
        assert (found.fence, found.count, found.head) == (2, 1, expected[2].head)
    assert RunRecord.objects.count() == found.count == len(expected)


def test_of_two_ledgers_of_a_run_in_one_transaction_the_newer_one_is_written(team: Team) -> None:
    """The first one was lost to another process, and the run was taken again here."""
    old = ledger(team)
    Run.objects.update(fence=F("fence") + 1)
    ledgers.leases.drop(old)
    Run.objects.update(holder="")
    new = ledgers.DatabaseLedgers().open("r1")
    blob = old._batch()
    blob.blobs.append((old.row.pk, "x" * 43, 1))
    batches = [old._next([act(1)])[0], new._next([act(2), act(3)])[0], old._next([act(4)])[0], blob]
    batches.append(new._next([act(5)])[0])
    lost, _ = writing.writer._committed(batches)
    assert lost == {batches[0], batches[2], blob}
    row = Run.objects.get()
    assert (row.count, row.head, RunRecord.objects.count(), RunBlob.objects.count()) == (4, new.head, 4, 0)
    new.close()


def test_what_the_database_refuses_is_not_at_the_cost_of_others(team: Team) -> None:
    good, bad = ledger(team, "good"), ledger(team, "bad")
    with held_back():
        good.append([act(1)])
        good.flush()
        twice = (bad.row.pk, 0, "act", "proposal", "", "", 1, b"a second record 0")
        refused = writing.writer.submit(Batch(bad.row.pk, "bad", bad.fence, 1, 2, "h", [twice]))
        good.append([act(2)])
    good.flush()
    with pytest.raises(LedgerError) as caught:
        refused.result(10)
    assert caught.value.code == "ledger.io" and "IntegrityError" in caught.value.message
    assert dict(Run.objects.values_list("key", "count")) == {"good": 3, "bad": 1}
    assert RunRecord.objects.filter(run__key="good").count() == 3
    good.close()
    bad.close()


def test_the_same_blob_twice_is_one_row(team: Team) -> None:
    with ledger(team) as mine:
        row = (mine.row.pk, "x" * 43, 7)
        for _ in range(2):
            writing.writer.submit(Batch(mine.row.pk, "r1", mine.fence, 0, 0, "", blobs=[row, row])).result(10)
    assert RunBlob.objects.count() == 1


def test_a_run_holds_no_connection_while_it_works(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    alice = User.objects.create_user("alice", "alice@spak.example", "a long secret")
    text = 'task Hello {\n  step a: tool.write_file { path: "a" content: "a" }\n}\n'
    run = start(alice, create_spec(alice, create_team(alice, "Tuners"), "hello", text))
    open_at: list[bool] = []
    real = Runner.advance

    def advance(self: Runner, *arguments: Any) -> Any:
        open_at.append(connection.connection is not None)
        stop = real(self, *arguments)
        open_at.append(connection.connection is not None)
        return stop

    monkeypatch.setattr(Runner, "advance", advance)
    execute.advance(run.key)
    assert Run.objects.get(key=run.key).state == State.SUCCEEDED
    assert open_at == [False, False]
