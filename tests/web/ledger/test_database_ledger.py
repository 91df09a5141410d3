"""The contract of a ledger, in the database; and what only a database has: fences, dead leases, batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.utils import IntegrityError
from django.utils import timezone

import ledger_contract
from ledger_contract import *  # noqa: F403
from ledger_contract import Targets, act, genesis
from process_kit import WAIT_S, until
from runs_kit import tables
from spak.errors import LedgerError
from spak.ledger import FileLedgers
from spak.ports import Ledgers
from spakweb.ground.database import appendonly
from spakweb.ground.teams.models import Team
from spakweb.store.ledger import store as module
from spakweb.store.ledger import writer as writing
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, RunRecord
from spakweb.work.worker import tasks

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["ledger_contract"]


def store(team: Team) -> DatabaseLedgers:
    return DatabaseLedgers(lambda key: Run(team=team, key=key, name=key))


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT = tmp_path / "media"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


@pytest.fixture
def ledgers(team: Team) -> Ledgers:
    return store(team)


@pytest.fixture
def targets(team: Team) -> Targets:
    return [lambda place: FileLedgers(place / "runs"), lambda place: store(team)]


def test_a_runner_that_lost_its_lease_writes_nothing(ledgers: DatabaseLedgers) -> None:
    old = ledgers.create("r1", genesis())
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    module.leases.drop(old)  # as in another process
    new = ledgers.open("r1")
    old.append([act(1)])
    with pytest.raises(LedgerError) as caught:
        old.flush()
    assert caught.value.code == "ledger.lost_lease"
    with pytest.raises(LedgerError):
        old.append([act(2)])
    new.append([act(7)])
    new.flush()
    with pytest.raises(LedgerError):
        old.close()  # does not give away the lease of the other
    with pytest.raises(LedgerError) as busy:
        ledgers.open("r1")
    assert busy.value.code == "ledger.busy"
    assert [record.body["n"] for record, _ in new.read(1)] == [7]
    new.close()


def test_a_lease_is_confirmed_by_the_database_each_time(ledgers: DatabaseLedgers) -> None:
    old, other = ledgers.create("r1", genesis("r1")), ledgers.create("r2", genesis("r2"))
    old.confirm()
    old.append([act(1)])  # nothing is wrong yet, and it is written before the lease is lost
    old.confirm()
    assert Run.objects.get(key="r1").count == old.count
    Run.objects.filter(key="r1").update(fence=old.fence + 1, holder="another")
    with pytest.raises(LedgerError) as lost:
        old.confirm()
    assert lost.value.code == "ledger.lost_lease"
    with pytest.raises(LedgerError):
        old.append([act(2)])
    with pytest.raises(LedgerError):
        old.close()
    other.confirm()
    other.close()


def test_a_run_begins_with_its_lease_and_its_first_record_in_one_transaction(
    ledgers: DatabaseLedgers, team: Team
) -> None:
    Run.objects.create(team=team, key="r1", name="r1")
    before = writing.writer.transactions
    with ledgers.create("r1", genesis()) as made:
        assert writing.writer.transactions == before + 1
        row = Run.objects.get(key="r1")
        assert (row.count, row.holder, row.fence, row.left_at) == (1, module.leases.process, made.fence, 0)
        assert row.lease_until is not None and row.lease_until > timezone.now()
    assert Run.objects.get(key="r1").holder == ""


def test_a_row_that_is_made_comes_with_its_lease_and_its_first_record(
    ledgers: DatabaseLedgers, team: Team
) -> None:
    before = writing.writer.transactions
    with ledgers.create("r1", genesis()) as made:
        assert writing.writer.transactions == before + 1
        row = Run.objects.get(key="r1")
        assert (row.count, row.head, row.holder) == (1, made.head, module.leases.process)
        assert (row.fence, row.left_at, made.fence) == (1, 0, 1)
        assert row.lease_until is not None and row.lease_until > timezone.now()
        assert [record.seq for record, _ in made.read()] == [0]
        assert made.blobs.has(made.blobs.put(b"one"))
        made.append([act(1)])
        made.flush()
        assert row.blobs.count() == 1 and Run.objects.get(key="r1").count == 2
    with pytest.raises(LedgerError) as caught:
        ledgers.create("r1", genesis())
    assert caught.value.code == "ledger.exists" and Run.objects.get().count == 2
    Run.objects.create(team=team, key="r2", name="r2")
    with ledgers.create("r2", genesis("r2")) as taken:
        assert (taken.count, Run.objects.get(key="r2").count) == (1, 1)


def test_of_a_run_whose_first_record_is_refused_there_is_no_row(
    ledgers: DatabaseLedgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is any other run of the same transaction to blame."""
    other = ledgers.create("r1", genesis())
    real = writing.sql.add_records

    def refused(cursor: Any, rows: Any) -> None:
        real(cursor, rows)
        if any(b"r2" in row[7] for row in rows):
            raise DatabaseError("the record is refused")

    monkeypatch.setattr(writing.sql, "add_records", refused)
    gate = threading.Event()
    writing.writer.listeners.append(lambda heads: gate.wait(WAIT_S))
    other.append([act(0)])  # its commit holds the writer, so that what follows is one batch
    other.append([act(1)])
    threading.Timer(0.2, gate.set).start()
    with pytest.raises(LedgerError) as caught:
        ledgers.create("r2", genesis("r2"))
    writing.writer.listeners.pop()
    assert caught.value.code == "ledger.io"
    other.flush()
    assert list(Run.objects.values_list("key", "count")) == [("r1", 3)]
    assert module.leases.held() == ["r1"]
    other.close()


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"fence": 5, "holder": "another:1", "lease_until": timedelta(seconds=9)}, "ledger.busy"),
        ({"holder": "another:1", "lease_until": timedelta(seconds=9)}, "ledger.busy"),
        ({"state": "cancelled"}, "ledger.busy"),
        ({"fence": 5}, ""),
        ({"holder": "another:1", "lease_until": timedelta(seconds=-9)}, ""),
    ],
)
def test_a_run_begins_only_under_a_lease_that_is_free_when_it_is_written(
    team: Team, changed: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changed is written after the row was read."""
    Run.objects.create(team=team, key="r1", name="r1")
    real = module.DatabaseLedger.begin

    def begin(self: Any, first: Any) -> bool:
        times = {
            name: timezone.now() + value if isinstance(value, timedelta) else value
            for name, value in changed.items()
        }
        Run.objects.filter(key="r1").update(**times)
        return real(self, first)

    monkeypatch.setattr(module.DatabaseLedger, "begin", begin)
    try:
        with DatabaseLedgers().create("r1", genesis()) as made:
            assert (made.count, made.fence) == (1, changed.get("fence", 0) + 1)
        found = ""
    except LedgerError as error:
        found = error.code
    row = Run.objects.get(key="r1")
    assert (found, row.count, RunRecord.objects.count()) == (code, *((0, 0) if code else (1, 1)))
    assert row.fence == changed.get("fence", 0) + (not code)


def test_one_lost_run_does_not_spoil_the_batch_of_others(ledgers: DatabaseLedgers) -> None:
    held = [ledgers.create(f"r{number}", genesis(f"r{number}")) for number in range(3)]
    Run.objects.filter(key="r1").update(fence=99)
    gate = threading.Event()
    writing.writer.listeners.append(lambda heads: gate.wait(WAIT_S))
    held[0].append([act(0)])  # its commit holds the writer, so that what follows is one batch
    for ledger in held:
        ledger.append([act(1)])
    gate.set()
    writing.writer.listeners.pop()
    for number in (0, 2):
        held[number].flush()
    with pytest.raises(LedgerError) as caught:
        held[1].flush()
    assert caught.value.code == "ledger.lost_lease"
    assert sorted(RunRecord.objects.values_list("run__key", "seq")) == [
        ("r0", 0), ("r0", 1), ("r0", 2), ("r1", 0), ("r2", 0), ("r2", 1),
    ]  # fmt: skip


def test_eight_at_once_and_one_holds_it(ledgers: DatabaseLedgers) -> None:
    ledgers.create("r1", genesis()).close()
    taken: list[object] = []
    start = threading.Barrier(8)

    def take() -> None:
        start.wait()
        try:
            taken.append(ledgers.open("r1"))
        except LedgerError as error:
            assert error.code == "ledger.busy"
        finally:
            connection.close()

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1


def test_many_runs_share_transactions(ledgers: DatabaseLedgers) -> None:
    held = [ledgers.create(f"r{number:02}", genesis()) for number in range(40)]
    before = writing.writer.transactions
    for _ in range(5):
        for ledger in held:
            ledger.append([act(1)])
    for ledger in held:
        ledger.close()
    assert RunRecord.objects.count() == 240
    assert writing.writer.transactions - before < 100


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs_runrecord SET kind = 'x'",
        "DELETE FROM runs_runrecord",
        "INSERT INTO runs_runrecord SELECT * FROM runs_runrecord",
    ],
)
def test_rows_stay_as_they_were_written(ledgers: DatabaseLedgers, statement: str) -> None:
    ledgers.create("r1", genesis()).close()
    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute(statement)
    assert RunRecord.objects.get().kind == "genesis"


def test_a_changed_line_is_found(ledgers: DatabaseLedgers) -> None:
    with ledgers.create("r1", genesis()) as ledger:
        ledger.append([act(number) for number in range(3)])
    appendonly.remove(connection)
    try:
        line = bytes(RunRecord.objects.get(seq=2).line).replace(b'"n":1', b'"n":9')
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_runrecord SET line = %s WHERE seq = 2", [line])
    finally:
        appendonly.install(connection)
    with pytest.raises(LedgerError) as caught:
        list(ledgers.reader("r1").read())
    assert caught.value.code == "ledger.tampered" and "record 2" in caught.value.message


def test_a_process_takes_no_lease_from_itself(
    ledgers: DatabaseLedgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that ended because the disk was too slow to renew it: the run is still under way here."""
    monkeypatch.setattr(module, "RENEW_S", 60)
    ledger = ledgers.create("r1", genesis())
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.update(lease_until=past, state="running")
    with pytest.raises(LedgerError) as busy:
        ledgers.open("r1")
    assert busy.value.code == "ledger.busy" and tasks.sweep_up() == 0
    Run.objects.update(holder="")  # another host's sweep saw it
    writing.writer.submit(ledger.renewal()).result()
    row = Run.objects.get()
    assert row.holder == module.leases.process and row.lease_until > timezone.now() > past
    Run.objects.update(holder="", lease_until=None, fence=row.fence + 1)  # taken there, and given back
    again = ledgers.open("r1")
    writing.writer.submit(ledger.renewal()).result()
    ledger.close()
    assert Run.objects.get().holder == module.leases.process, "the old lease was mistaken for the new one"
    again.close()
    assert Run.objects.get().holder == ""


def test_a_lease_counts_from_when_it_was_written(
    ledgers: DatabaseLedgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer keeps the database for longer than a lease lasts."""
    monkeypatch.setattr(module, "LEASE_S", 0.3)
    monkeypatch.setattr(module, "RENEW_S", 60)
    ledgers.create("r1", genesis()).close()
    busy, free = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Run.objects.select_for_update().get()
            busy.set()
            free.wait(0.5)
        connection.close()

    other = threading.Thread(target=hold)
    other.start()
    busy.wait(WAIT_S)
    asked = timezone.now()
    ledger = ledgers.open("r1")
    row = Run.objects.get()
    other.join()
    assert row.lease_until and row.lease_until - asked > timedelta(seconds=0.6)
    ledger.close()


def test_leases_are_renewed_while_they_are_held(
    ledgers: DatabaseLedgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.05)
    monkeypatch.setattr(module, "LEASE_S", 0.6)
    ledger = ledgers.create("r1", genesis())
    first = Run.objects.get().lease_until
    assert first

    def renewed() -> bool:
        now = Run.objects.get().lease_until
        return now is not None and now > first + timedelta(seconds=0.5)

    until(renewed, "the lease was not renewed")
    ledger.close()
    assert Run.objects.get().holder == ""
