"""Tables that a newer version made: nothing is changed, and it is said what to do."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from spakweb import tables

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
