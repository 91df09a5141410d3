"""Connections that threads hand on: used again, never one that is broken, in use or of another process."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError
from django.db.utils import ConnectionHandler

from needs import missing
from servers_kit import Postgres, binary
from spakweb.ground.database.engines import kept
from spakweb.ground.database.settings import database


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    if not binary(Postgres.needs):
        missing("PostgreSQL", "postgresql")
    with (
        tempfile.TemporaryDirectory(prefix="spak-pg-") as name,
        Postgres(Path(name) / "pg", durable=False) as made,
    ):
        yield made
        made.kill()  # it waits for nobody who failed to close


@pytest.fixture
def shelf(django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[kept.Shelf]:
    """An empty one, for as long as a test lasts."""
    monkeypatch.setattr(kept, "shelf", kept.Shelf())
    with django_db_blocker.unblock():
        kept.keep(3)
        yield kept.shelf
        kept.keep(0)


def postgres(server: Postgres) -> Any:
    return ConnectionHandler({"default": database(server.url, Path())})["default"]


def sqlite(folder: Path) -> Any:
    return ConnectionHandler({"default": database("", folder)})["default"]


def pid(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def asked(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 7")
        return int(cursor.fetchone()[0])


def limits(connection: Any) -> list[str]:
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "tcp_user_timeout")
    with connection.cursor() as cursor:
        found = []
        for name in names:
            cursor.execute(f"SHOW {name}")
            found.append(cursor.fetchone()[0])
    return found


def elsewhere(work: Any) -> Any:
    """What it gives in a thread of its own."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def used(server: Postgres) -> int:
    """The session of a connection that was opened, used and closed in another thread."""

    def work() -> int:
        one = postgres(server)
        number = pid(one)
        one.close()
        return number

    return int(elsewhere(work))


def test_the_next_thread_goes_on_with_it(shelf: kept.Shelf, server: Postgres) -> None:
    first = used(server)
    assert len(shelf) == 1 and used(server) == first and shelf.given == 1
    one = postgres(server)
    assert pid(one) == first and len(shelf) == 0
    with one.cursor() as cursor:
        cursor.execute("SHOW TimeZone")
        assert cursor.fetchone()[0] == "UTC"
    assert limits(one) == ["5s", "1min", "8s", "30000"]
    one.close()
    one.close()
    assert len(shelf) == 1


def test_nothing_is_kept_where_nobody_asked_for_it(shelf: kept.Shelf, server: Postgres) -> None:
    kept.keep(0)
    first = used(server)
    assert len(shelf) == 0 and used(server) != first


def test_no_more_than_so_many(shelf: kept.Shelf, tmp_path: Path) -> None:
    kept.keep(2)
    many = [sqlite(tmp_path) for _ in range(4)]
    assert [asked(one) for one in many] == [7] * 4
    for one in many:
        one.close()
    assert len(shelf) == 2


def test_a_session_that_the_server_ended_is_not_given(shelf: kept.Shelf, server: Postgres) -> None:
    first = used(server)
    with psycopg.connect(server.url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [first])
        ends = time.monotonic() + 60
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [first]).fetchone():
            assert time.monotonic() < ends
    assert used(server) != first


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "killed"])
def test_a_server_that_was_started_again(shelf: kept.Shelf, server: Postgres, how: signal.Signals) -> None:
    many = [postgres(server) for _ in range(3)]
    assert [asked(one) for one in many] == [7] * 3
    for one in many:
        one.close()
    assert len(shelf) == 3
    assert server.process is not None
    server.process.send_signal(how)
    server.process.wait(120)
    server.start()
    one = postgres(server)
    assert asked(one) == 7 and len(shelf) == 0
    one.close()


def test_one_that_was_kept_for_a_while_is_asked(
    shelf: kept.Shelf, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network between may have forgotten it, which no look at it tells."""
    first = used(server)
    monkeypatch.setattr(kept, "ASK_S", -1.0)
    assert used(server) == first
    (one,) = next(iter(shelf._kept.values()))

    class Silent:
        closed = False
        closes = 0

        def fileno(self) -> int:
            return int(one.connection.fileno())

        def execute(self, words: str) -> None:
            raise psycopg.OperationalError("timeout expired")

        def close(self) -> None:
            self.closes += 1
            one.connection.close()

    silent = Silent()
    shelf._kept[next(iter(shelf._kept))] = [kept.Kept(silent, one.opened, one.since)]
    assert used(server) != first and silent.closes == 1


def test_what_had_an_error_is_closed(shelf: kept.Shelf, server: Postgres) -> None:
    one = postgres(server)
    with pytest.raises(DatabaseError), one.cursor() as cursor:
        cursor.execute("SELECT of nothing")
    one.close()
    assert len(shelf) == 0


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_what_is_inside_a_transaction_is_closed(
    shelf: kept.Shelf, server: Postgres, tmp_path: Path, kind: str
) -> None:
    one = postgres(server) if kind == "postgresql" else sqlite(tmp_path)
    with one.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("CREATE TABLE half_done (id integer)")
    one.close()
    assert len(shelf) == 0
    with one.cursor() as cursor:
        cursor.execute("CREATE TABLE half_done (id integer)")
        cursor.execute("DROP TABLE half_done")
    one.close()
    assert len(shelf) == 1


def test_what_nobody_takes_is_closed_and_what_is_old_too(
    shelf: kept.Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = sqlite(tmp_path), sqlite(tmp_path)
    assert asked(one) == asked(other) == 7
    raw = one.connection
    one.close()
    assert shelf.close_idle() == 0
    assert shelf.close_idle(0.0) == 1 and len(shelf) == 0
    with pytest.raises(Exception, match="closed"):
        raw.execute("SELECT 1")
    other.close()
    monkeypatch.setattr(kept, "IDLE_S", -1.0)  # nobody came to close it, and somebody comes to take it
    assert asked(one) == 7 and shelf.given == 0 and len(shelf) == 0
    monkeypatch.setattr(kept, "AGE_S", -1.0)
    one.close()
    assert len(shelf) == 0


def test_a_file_that_took_the_place_of_the_one_before(shelf: kept.Shelf, tmp_path: Path) -> None:
    one = sqlite(tmp_path)
    with one.cursor() as cursor:
        cursor.execute("CREATE TABLE of_the_first (id integer)")
    one.close()
    assert len(shelf) == 1
    for file in tmp_path.glob("spak.sqlite3*"):
        file.rename(tmp_path / f"old-{file.name}")
    with one.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master")
        assert cursor.fetchall() == []
    one.close()


def test_a_forked_process_has_none_and_ends_none(shelf: kept.Shelf, server: Postgres) -> None:
    first = used(server)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            kept.shelf.close_idle(0.0)
            os.write(writing, f"{len(kept.shelf)} {kept.shelf.most} {used(server) == first}".encode())
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reading, 100) == b"0 3 False"
    os.close(reading)
    os.close(writing)
    assert used(server) == first
