"""A connection that is cut while the group commit waits for the answer of the database: what was carried out
is found, and what was not is written again."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from fault_points import FaultPoints
from ledger_contract import act, genesis
from process_kit import WAIT_S, happens
from runs_kit import ledger, tables
from spak.errors import LedgerError
from spakweb.ground.teams.models import Team
from spakweb.store.ledger import store
from spakweb.store.ledger import writer as writing
from spakweb.store.ledger import writer_sql as sql
from spakweb.store.ledger.store import DatabaseLedger, DatabaseLedgers
from spakweb.store.runs.models import Run, RunBlob, RunRecord, State

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]

Cut = Callable[[bool], None]


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Cut:
    """Cut the connection at the next COMMIT of a transaction, before or after it is carried out."""
    wrapper = type(connection._connections[connection._alias])  # type: ignore[attr-defined]
    real = wrapper._commit

    def at_the_next_commit(carried_out: bool) -> None:
        def commit(self: Any) -> None:
            monkeypatch.setattr(wrapper, "_commit", real)
            if carried_out:
                real(self)
            raise OperationalError("the connection was cut")

        monkeypatch.setattr(wrapper, "_commit", commit)

    return at_the_next_commit


def records() -> list[tuple[str, int]]:
    return list(RunRecord.objects.order_by("run__key", "seq").values_list("run__key", "seq"))


@pytest.mark.parametrize("carried_out", [True, False])
def test_records_are_there_once_wherever_their_commit_was_cut(
    team: Team, cut: Cut, carried_out: bool, fault_points: FaultPoints
) -> None:
    mine = ledger(team)
    batch, _ = mine._next([act(1), act(2)])
    row = Run.objects.get()
    row.state, row.projected = State.WAITING, 3
    batch.shown = sql.shown(row, mine.fence, "")
    cut(carried_out)
    assert writing.writer._committed([batch]) == (set(), {})
    row = Run.objects.get()
    assert (row.count, row.head, row.state) == (3, mine.head, "waiting")
    assert records() == [("r1", 0), ("r1", 1), ("r1", 2)]
    mine.append([act(3)])
    mine.close()
    assert Run.objects.get().count == 4
    fault_points["cut"] += 1


@pytest.mark.parametrize("alone", [False, True], ids=["with a record", "before a record"])
def test_no_record_is_there_without_the_rows_of_its_blobs(
    team: Team, monkeypatch: pytest.MonkeyPatch, alone: bool, fault_points: FaultPoints
) -> None:
    """A transaction fails, and those after it do not: found by the simulator's seed 260."""
    mine, left = ledger(team), ["once"]
    real = writing.Writer._committed

    def committed(self: writing.Writer, batches: list[writing.Batch]) -> Any:
        if any(batch.blobs for batch in batches) and left:
            left.clear()
            raise OperationalError("the connection was cut")
        return real(self, batches)

    monkeypatch.setattr(writing.Writer, "_committed", committed)
    mine.blobs.put(b"a proof")
    if alone:
        with pytest.raises(LedgerError):
            mine.blobs.flush()
    writing.writer.submit(mine.renewal()).result()
    with pytest.raises(LedgerError):
        mine.append([act(1)])
        mine.flush()
    with pytest.raises(LedgerError):
        mine.close()
    assert not left and records() == [("r1", 0)] and not RunBlob.objects.exists()
    fault_points["cut"] += 1


@pytest.mark.parametrize("taken", [False, True], ids=["written by another", "taken by another"])
def test_a_lease_that_another_took_while_the_connection_was_cut_is_lost(
    team: Team, cut: Cut, monkeypatch: pytest.MonkeyPatch, taken: bool, fault_points: FaultPoints
) -> None:
    """Though the records are there: the other runner goes on behind them."""
    mine = ledger(team)
    batch, _ = mine._next([act(1)])
    batch.shown = sql.shown(Run.objects.get(), mine.fence, "")
    changed = {"fence": mine.fence + 1} if taken else {"count": 3, "head": "of another record"}
    real = connection.close

    def close() -> None:
        real()
        Run.objects.update(**changed)

    monkeypatch.setattr(connection._connections[connection._alias], "close", close)  # type: ignore[attr-defined]
    cut(True)
    assert writing.writer._committed([batch])[0] == {batch}
    monkeypatch.undo()
    assert records() == [("r1", 0), ("r1", 1)]
    with pytest.raises(LedgerError):
        mine.append([act(2)])
        mine.close()
    fault_points["cut"] += 1


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("row", ["made", "there"])
def test_a_run_begins_once_wherever_its_commit_was_cut(
    team: Team, cut: Cut, carried_out: bool, row: str, fault_points: FaultPoints
) -> None:
    if row == "there":
        Run.objects.create(team=team, key="r1", name="r1")
    cut(carried_out)
    with DatabaseLedgers(lambda name: Run(team=team, key=name, name=name)).create("r1", genesis()) as made:
        found = Run.objects.get()
        assert (found.count, found.head, found.fence) == (1, made.head, made.fence) == (1, made.head, 1)
        assert (found.holder, store.leases.held()) == (store.leases.process, ["r1"])
        made.append([act(1)])
    assert records() == [("r1", 0), ("r1", 1)]
    fault_points["cut"] += 1


def test_who_did_not_get_a_lease_does_not_get_it_by_a_cut(
    team: Team, cut: Cut, fault_points: FaultPoints
) -> None:
    """Both begin with the same record under the same fence: the head is no evidence of whose it is."""
    Run.objects.create(team=team, key="r1", name="r1")
    ours = [DatabaseLedger(Run.objects.get(), writable=True) for _ in range(2)]
    batches = []
    for one in ours:
        one.fence += 1
        batch, _ = one._next([genesis()])
        batch.take = sql.Taking(store.leases.process, store.leases.choosing, 9.0, "full_auto", [])
        batches.append(batch)
    cut(True)
    assert writing.writer._committed(batches)[0] == {batches[1]}
    assert records() == [("r1", 0)]
    fault_points["cut"] += 1


@pytest.mark.skipif(
    "SPAK_TEST_ON_POSTGRES" not in os.environ, reason="tests/web/ground/test_postgres.py runs it"
)
def test_the_one_statement_goes_on_in_a_server_that_its_writer_lost(team: Team) -> None:
    mine = ledger(team)
    batch, _ = mine._next([act(1)])
    files: list[int] = []
    done: list[object] = []

    def write() -> None:
        connection.ensure_connection()
        files.append(connection.connection.fileno())
        done.append(writing.writer._committed([batch]))
        connection.close()

    def waiting() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return int(cursor.fetchone()[0])

    with transaction.atomic():
        Run.objects.update(lease_until=timezone.now())
        thread = threading.Thread(target=write)
        thread.start()
        happens(lambda: waiting() == 1, WAIT_S)
        with socket.socket(fileno=os.dup(files[0])) as wire:
            wire.shutdown(socket.SHUT_RDWR)
        happens(lambda: waiting() == 2, WAIT_S)  # the statement that was cut, and the same one again
    thread.join(WAIT_S)
    assert done == [(set(), {})]
    assert (Run.objects.get().head, records()) == (mine.head, [("r1", 0), ("r1", 1)])
    mine.close()
