"""Tables of the commit whose migrations were squashed (ADR 0112): they are brought up to date with all of
their rows and are then as an empty place has them; older ones are refused, and nothing of them is changed."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from platform_kit import free_port, manage, migrated, migrated_server
from servers_kit import Postgres, binary
from spakweb.ground.database import tables

DUMPS = Path(__file__).parents[2] / "earlier" / "tables"
LATER = "2099-01-01 00:00:00"
DROPPED = {
    "teams_team": {"commands"},
    "specs_problemfile": {"sent"},
    "reviews_check": {"made_at", "lost"},
    "reviews_queued": {"lost"},
    "sources_branch": {"claimed_at", "tries", "not_before"},
    "sources_runsource": {"tries"},
    "hooks_webhook": {"rest_until"},
    "folders_folder": {"wanted_at", "claimed_at", "lease_until", "not_before", "tries"},
    "campaigns_campaign": {"fence", "holder", "lease_until", "faults", "enqueued_at"},
}
"""Columns that migrations since then removed."""
JOBS = {
    ("campaigns.step", "1"): (2, "None"),
    ("folders.sync", "1"): (3, LATER),
    ("hooks.deliver", "1"): (0, LATER),
    ("reviews.check", "1"): (0, "None"),
    ("sources.push", "1"): (2, LATER),
    ("telemetry.send", "key1"): (2, LATER),
}
"""What waited then: tries and the time before which it rests."""
PROJECTED = ("state", "reason", "ended_at", "started_at", "mode", "task", "projected", "summary")
UPGRADE = (
    "from django.core.management import call_command as do; "
    "do('migrate', verbosity=0); do('check_store', quick=True); do('rebuild', 'waits')"
)
COMMA = r', (?="|CONSTRAINT)'
CASTS = r"::(text|character varying)|[()\[\]]"
"""Where a check that was restored has other ones than the check that was dumped."""
Rows = dict[str, list[dict[str, Any]]]


@dataclass
class Place:
    """A data folder, the settings of its database, and how to ask that and the one of an empty place."""

    data: Path
    connect: Callable[[], Any]
    schema: Callable[[], list[str]]
    empty_schema: Callable[[], list[str]]
    settings: dict[str, str] = field(default_factory=dict)

    def rows(self, names: list[str]) -> Rows:
        """By table, in the order of their first column."""
        found: Rows = {}
        with closing(self.connect()) as asked:
            for name in names:
                cursor = asked.execute(f"SELECT * FROM {name} ORDER BY 1")
                columns = [column[0] for column in cursor.description]
                found[name] = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        return found


def sqlite_schema(file: Path) -> list[str]:
    """Columns, constraints and indexes, in any order: a column that was added later stands last."""
    with closing(sqlite3.connect(file)) as asked:
        made = [sql for (sql,) in asked.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    halves = [sql.removesuffix(")").split(" (", 1) for sql in made]
    return sorted(f"{first}: {part}" for first, *rest in halves for part in re.split(COMMA, "".join(rest)))


def postgres_schema(server: Postgres, name: str) -> list[str]:
    words = [binary("pg_dump"), "--schema-only", "--dbname", f"{server.url.rpartition('/')[0]}/{name}"]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return sorted(re.sub(CASTS, "", line).rstrip(",") for line in text.splitlines() if line[:1] != "\\")


def on_sqlite(folder: Path, factory: pytest.TempPathFactory) -> Iterator[Place]:
    file = folder / "spak.sqlite3"
    with closing(sqlite3.connect(file)) as made:
        made.executescript((DUMPS / "sqlite.sql").read_text())
    empty = migrated(factory) / "spak.sqlite3"
    yield Place(
        folder, lambda: sqlite3.connect(file), lambda: sqlite_schema(file), lambda: sqlite_schema(empty)
    )


def on_postgresql(folder: Path, factory: pytest.TempPathFactory) -> Iterator[Place]:
    with (
        tempfile.TemporaryDirectory(prefix="spak-pg-") as name,
        Postgres(Path(name) / "pg", durable=False, copied=migrated_server(factory)) as server,
    ):
        url = f"{server.url.rpartition('/')[0]}/earlier"
        with psycopg.connect(server.url, autocommit=True) as asked:
            asked.execute("CREATE DATABASE earlier")
        with psycopg.connect(url) as made:
            made.execute((DUMPS / "postgresql.sql").read_text())
        yield Place(
            folder,
            lambda: psycopg.connect(url),
            lambda: postgres_schema(server, "earlier"),
            lambda: postgres_schema(server, server.url.rpartition("/")[2]),
            {"SPAK_WEB_DATABASE_URL": url},
        )


@pytest.fixture(params=[on_sqlite, on_postgresql], ids=["sqlite", "postgresql"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A place of that commit."""
    yield from request.param(tmp_path, tmp_path_factory)


def test_all_of_its_rows_are_kept(place: Place) -> None:
    inserts = re.findall(r'^INSERT INTO "(\w+)"', (DUMPS / "sqlite.sql").read_text(), re.M)
    names = sorted({*inserts} - {"sqlite_sequence", "django_migrations", "telemetry_sent"})
    assert len(names) > 50
    before = place.rows(names)
    done = manage(place.data, "shell", "--no-imports", "-c", UPGRADE, **place.settings)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "nothing is damaged" in done.stdout
    after = place.rows(names)
    for run in (before["runs_run"][1], after["runs_run"][1]):  # of the kernel of then, which is gone
        run |= dict.fromkeys(PROJECTED)
    for name in names:
        dropped = DROPPED.get(name, set())
        expected = [{key: row[key] for key in row if key not in dropped} for row in before[name]]
        assert [
            {key: row[key] for key in old} for old, row in zip(expected, after[name], strict=True)
        ] == expected
        assert not dropped & set(after[name][0]), name


def test_what_waited_became_jobs_and_the_tables_are_those_of_an_empty_place(place: Place) -> None:
    done = manage(place.data, "migrate", "--verbosity", "0", **place.settings)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = place.rows(["jobs_job", "runs_run"])
    jobs = {(row["kind"], row["key"]): (row["tries"], str(row["due"])[:19]) for row in rows["jobs_job"]}
    assert jobs == JOBS
    waited = rows["runs_run"][1]
    assert (waited["key"], waited["state"]) == ("waits", "cancelled")
    assert waited["reason"].startswith("ledger.semantics")
    assert place.schema() == place.empty_schema()


@pytest.fixture
def older() -> None:
    """As if it had stopped before two migrations that are squashed now."""
    applied = MigrationRecorder(connection).migration_qs
    assert applied.filter(app="runs", name__in=("0018_prior", "0019_trial")).delete()[0] == 2


@pytest.mark.django_db
def test_older_ones_are_refused(older: None) -> None:
    assert tables.lacking() == ["runs.0018_prior", "runs.0019_trial"]
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0, interactive=False)
    said = str(refused.value)
    assert "lack runs.0018_prior and 1 more" in said and "[web.older_tables]" in said
    assert f"`manage.py migrate` of commit {tables.MIGRATES_EARLIER}" in said
    assert "0018_prior" not in dict(MigrationRecorder(connection).migration_qs.values_list("name", "app"))


@pytest.mark.django_db
def test_a_first_start_that_was_cut_off_goes_on() -> None:
    """An app has either all of the squashed ones or none."""
    MigrationRecorder(connection).migration_qs.filter(app__in=("runs", "suites")).delete()
    assert tables.lacking() == []
    tables.refuse()


def test_no_start_changes_older_ones(tmp_path: Path) -> None:
    file = tmp_path / "spak.sqlite3"
    with closing(sqlite3.connect(file)) as made:
        made.executescript((DUMPS / "sqlite.sql").read_text())
        made.execute("DELETE FROM django_migrations WHERE app = 'reviews' AND name > '0005'")
        made.commit()
        before = list(made.iterdump())
    done = manage(tmp_path, "up", "--port", str(free_port()))
    assert done.returncode == 1 and "[web.older_tables]" in done.stderr, done.stderr[-2000:]
    assert "lack reviews.0005_team_rules and 3 more" in done.stderr and "Traceback" not in done.stderr
    with closing(sqlite3.connect(file)) as made:
        assert list(made.iterdump()) == before
