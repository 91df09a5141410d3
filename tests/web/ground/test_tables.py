"""Tables that a newer version made: nothing is changed, and it is said what to do."""

from __future__ import annotations

import io
import shutil
import sqlite3
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

import warm_kit
from platform_kit import ROOT, environment, manage, migrated
from spakweb.ground.database import tables

pytestmark = [pytest.mark.findings("F7"), pytest.mark.django_db]


@pytest.fixture
def newer() -> None:
    recorder = MigrationRecorder(connection)
    for name in ("9998_next", "9999_last"):
        recorder.record_applied("runs", name)


def test_these_are_ours() -> None:
    """An app that is not installed any more left tables that nobody uses."""
    MigrationRecorder(connection).record_applied("gone", "0001_initial")
    assert tables.unknown() == []
    tables.refuse()


def test_nothing_is_migrated_on_newer_ones(newer: None) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0, interactive=False)
    said = str(refused.value)
    assert "runs.9998_next and 1 more" in said and "[web.newer_tables]" in said and "fix: Install" in said


def test_check_store_reports_them(newer: None) -> None:
    said = io.StringIO()
    with pytest.raises(CommandError):
        call_command("check_store", quick=True, stderr=said)
    assert "runs.9999_last was applied by a newer version" in said.getvalue()


def test_no_worker_and_no_web_part_begins_on_newer_ones(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = Path(shutil.copytree(migrated(tmp_path_factory), tmp_path / "data"))
    (file,) = data.rglob("*.sqlite3")
    with sqlite3.connect(file) as tables_of_it:
        tables_of_it.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('runs', '9998_next', '2026-01-01')"
        )
    web = manage(data, "serve")
    assert web.returncode == 1 and "[web.newer_tables]" in web.stderr and "fix: Install" in web.stderr
    line = ["-m", "celery", "-A", "spakweb.celery", "worker", "-P", "threads"]
    worker = warm_kit.run(line, cwd=ROOT, env=environment(data, 8000), timeout=120)
    assert worker.returncode and "[web.newer_tables]" in worker.stderr, worker.stderr
