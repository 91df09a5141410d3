"""A worker that is stopped, or stuck, holds up nobody else: on PostgreSQL, in processes of their own."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError, connection
from django.urls import reverse

from freeze_kit import freezer
from needs import missing
from platform_kit import migrated_server
from runs_kit import tables
from servers_kit import Postgres, binary
from spakweb.ground import worker_health
from spakweb.ground.database import lock_wait
from spakweb.ground.database.lock_wait import passing
from spakweb.ground.database.settings import Limits
from spakweb.store.ledger.storage import DatabaseStorage
from spakweb.store.runs.models import Run, StoredFile
from spakweb.work.runs import actions
from spakweb.work.worker import tasks


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    if not binary(Postgres.needs):
        missing("PostgreSQL", "postgresql")
    with (
        tempfile.TemporaryDirectory(prefix="spak-pg-") as name,
        Postgres(Path(name) / "pg", durable=False, copied=migrated_server(tmp_path_factory)) as made,
    ):
        yield made


@pytest.mark.sandbox
@pytest.mark.timeout(300)
def test_a_worker_stopped_inside_a_transaction(server: Postgres, tmp_path: Path) -> None:
    """Sweeps pass its row by, a cancel is answered, another run ends, all while the transaction is open (here
    no limit ends it). Once it is ended the run goes on elsewhere."""
    more = {"SPAK_WEB_DATABASE_URL": server.url, "SPAK_WEB_DATABASE_IDLE_S": "0"}
    with freezer(tmp_path / "site", "database", **more) as site:
        found = site.ask({"inside": ["show", 1]})
    assert len(found["open"]) == 3 and all(found["open"].values()), found
    assert (found["cancel"], found["other"], found["state"]) == ("refused", "succeeded", "succeeded"), found
    assert found["a"] == "stopped, ended 0" and not found["wrong"], found


def test_a_transaction_in_which_nothing_is_asked_is_ended(server: Postgres) -> None:
    limits = Limits(lock_s=1, statement_s=2, idle_s=1).options()
    with (
        psycopg.connect(server.url, **limits) as stopped,
        psycopg.connect(server.url, autocommit=True) as other,
    ):
        pid = stopped.info.backend_pid
        stopped.execute("CREATE TEMPORARY TABLE held (id int)")
        asked = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        ends = time.monotonic() + 60
        while other.execute(asked, [pid]).fetchone():
            assert time.monotonic() < ends, "the transaction is still open"
            time.sleep(0.1)
        with pytest.raises(psycopg.Error) as woken:
            stopped.execute("SELECT 1")
        stopped.close()
    wrapped = DatabaseError()
    wrapped.__cause__ = woken.value
    assert passing(wrapped) or isinstance(woken.value, psycopg.OperationalError)


def test_a_cancel_that_finds_the_row_locked_is_answered(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def want(*ignored: object) -> None:
        raise OperationalError(
            "canceling statement due to lock timeout"
        ) from psycopg.errors.LockNotAvailable()

    run = Run.objects.create(team=cast.team, key="r1", name="r1")
    monkeypatch.setattr(actions, "request_control", want)
    found = cast.client("alice").post(
        reverse("spak-run-control", args=[cast.team.slug, run.key]), {"do": "cancel"},
        headers={"accept": "application/json"},
    )  # fmt: skip
    assert (found.status_code, found.json()["code"]) == (503, "web.locked")


def test_a_cancel_is_answered_while_another_process_writes_to_sqlite(
    transactional_db: None, cast: Any
) -> None:
    """Nobody can take the lock from a process that was stopped in its transaction; who asks is told."""
    run = Run.objects.create(team=cast.team, key="r1", name="r1")
    client, address = cast.client("alice"), reverse("spak-run-control", args=[cast.team.slug, run.key])

    def cancel() -> Any:
        return client.post(address, {"do": "cancel"}, headers={"accept": "application/json"})

    with tables():
        usual = connection.settings_dict["OPTIONS"]["timeout"]
        with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as stopped:
            stopped.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            found = cancel()
            took = time.monotonic() - began
        assert (found.status_code, found.json()["code"]) == (503, "web.locked")
        assert took < usual / 2 and lock_wait.WAIT_MS <= 2000
        with connection.cursor() as cursor:
            assert cursor.execute("PRAGMA busy_timeout").fetchone() == (1000 * usual,)
        assert cancel().status_code == 302
        run.refresh_from_db()
        assert run.wanted == "cancel" or run.ended


def test_a_file_that_a_stopped_process_is_about_to_store_is_tried_again(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lacking = StoredFile.objects.bulk_create, [1]

    def create(*files: Any, **more: Any) -> Any:
        if lacking:
            lacking.pop()
            raise OperationalError("canceling statement due to lock timeout")
        return real(*files, **more)

    monkeypatch.setattr(StoredFile.objects, "bulk_create", create)
    DatabaseStorage().save("blobs/aa", ContentFile(b"bytes"))
    assert bytes(StoredFile.objects.get().data) == b"bytes"


def test_sweeps_do_not_pile_up_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_swept", lambda at_once: tasks.sweep_up() + 10)
    assert tasks.sweep_up() == 10


@pytest.fixture
def quiet(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(worker_health, "_under_way", {})
    (tmp_path / "alive").mkdir()
    return tmp_path / "alive" / f"{os.uname().nodename}.{os.getpid()}"


def test_a_worker_says_that_its_pool_is_stuck(quiet: Path) -> None:
    worker_health.write(quiet)
    assert worker_health.troubles() == []
    call_command("check_worker")
    now = time.monotonic()
    worker_health._under_way.update({1: ("sweeping", now - 100), 2: ("sweeping", now - 1)})
    worker_health.write(quiet)
    assert worker_health.troubles() == [f"worker {quiet.name}: sweeping for 100 s"]
    with pytest.raises(CommandError, match="sweeping for 100 s"):
        call_command("check_worker")
    worker_health._under_way.clear()
    worker_health.write(quiet)
    assert worker_health.troubles() == []


def test_a_worker_that_is_stopped_says_nothing(quiet: Path) -> None:
    assert worker_health.troubles() == ["no worker of this data folder runs here"]
    worker_health.write(quiet)
    assert worker_health.troubles(time.time() + 31) == [f"worker {quiet.name}: not heard of for 31 s"]
    set_back = worker_health.troubles(time.time() - 3600)
    assert len(set_back) == 1 and "not heard of for 3" in set_back[0]
    quiet.rename(quiet.with_name(f"{os.uname().nodename}.999999999"))  # of a process that is gone
    assert worker_health.troubles() == ["no worker of this data folder runs here"]


def test_work_inside_of_other_work_counts_from_its_beginning(quiet: Path) -> None:
    with worker_health.short("sweeping"):
        with worker_health.short("writing records"):
            assert worker_health.stuck(time.monotonic() + 91) == ["sweeping for 91 s"]
        assert worker_health.stuck(time.monotonic() + 91) == ["sweeping for 91 s"]
    assert worker_health.stuck(time.monotonic() + 91) == []
