"""The tests of models, views and the ledger once more, on a PostgreSQL of their own that is thrown away."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from needs import missing
from platform_kit import ROOT, migrated_server
from servers_kit import Postgres, binary

OWN_WORDS = (
    "worker/retention/test_deleting.py::test_what_is_deleted_leaves_a_line_and_nothing_else",
    "worker/retention/test_retention.py::test_records_of_other_runs_cannot_be_deleted",
    "worker/retention/test_retention.py::test_a_run_that_has_not_ended_cannot_be_marked",
    "worker/retention/test_retention.py::test_the_trigger_of_an_older_version_is_replaced",
    "ledger/test_run_snapshots.py::test_a_worker_reads_only_the_records_after_the_snapshot",
    "ledger/test_run_snapshots.py::test_a_runner_that_lost_its_lease_keeps_none",
    "sources/test_folders_frozen.py",
)
"""Tests of what is said to PostgreSQL in other words than to SQLite."""
ONE_ROLE = "test_access and not admin"
"""Each address is asked by one role: which roles may ask is not decided by the database."""
UNDER = "SPAK_TEST_ON_POSTGRES"
"""Set in the run on PostgreSQL, which must not start another."""

PATIENT = {"SPAK_WEB_DATABASE_IDLE_S": "0"}
"""A test is one transaction: on a busy machine nothing may be asked in it for longer than the limit."""


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server whose database of tests has its tables. Its folder is none of pytest's: each
    start of pytest closes those to other users, and the server could not reach its own files any more."""
    if not binary(Postgres.needs):
        missing("PostgreSQL", "postgresql")
    tables = migrated_server(tmp_path_factory)
    with (
        tempfile.TemporaryDirectory(prefix="spak-pg-") as name,
        Postgres(Path(name) / "pg", durable=False, copied=tables) as server,
    ):
        with psycopg.connect(server.url, autocommit=True) as base:
            base.execute("CREATE DATABASE test_postgres TEMPLATE postgres")
        yield server.url
        server.kill()  # it waits for nobody who is still in it


GROUND = (
    *(f"ground/test_{name}.py" for name in ("access", "attacks", "team_files", "specs_actions", "pages")),
    "campaigns/test_campaign_killed.py",
    "runs/test_many_runs.py",
    "hooks/test_webhooks.py",
    "jobs/test_job_faults.py",
    "jobs/test_job_kills.py",
    *(f"ledger/test_{name}.py" for name in ("database_ledger", "writer", "cut_commits")),
    "sources/test_away.py",
    "sources/test_fetching.py::test_the_same_commit_is_fetched_once",
    "sources/test_branches.py::test_an_editor_asks_and_a_reviewer_approves_or_declines",
    "sources/test_folders_out.py::test_both_sides_changed_is_a_patch_and_neither_is_written_over",
    "incoming/test_pushes.py::test_a_push_to_the_branch_of_the_folder_asks_for_a_sync_once",
    "triggers/test_triggers.py::test_a_message_begins_one_run_with_inputs_from_it",
    *OWN_WORDS,
)
REVIEWS = tuple(
    f"reviews/test_{name}.py"
    for name in (
        "reviews",
        "inbox",
        "evidence",
        "history",
        "comments",
        "conflicts",
        "review_mail",
        "merge_queue",
        "merges_at_once",
        "named_roles",
        "spending",
        "team_rules",
        "bad_input",
    )
)


@pytest.mark.timeout(3600)  # each of its tests has a limit of its own
@pytest.mark.skipif(UNDER in os.environ, reason="this is the run on PostgreSQL")
def test_models_and_views_on_postgresql(cluster: str) -> None:
    tests = [ROOT / "tests/web" / name for name in (*GROUND, *REVIEWS)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *map(str, tests),
         "-k", f"not texts_that_are_none and not by_an_index and not ({ONE_ROLE})",
         "--reuse-db"],  # it goes with its server, whoever is still in it
        cwd=ROOT, env={**os.environ, "SPAK_WEB_DATABASE_URL": cluster, UNDER: "1", **PATIENT},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
    with psycopg.connect(cluster.removesuffix("postgres") + "test_postgres") as base:
        found = base.execute("SELECT reloptions FROM pg_class WHERE relname = 'runs_run'").fetchone()
    assert found == (["fillfactor=40"],)  # a row that each step writes anew has room beside it


def test_it_is_the_database_that_was_asked_for(db: None) -> None:
    from django.db import connection

    assert connection.vendor == ("postgresql" if "SPAK_WEB_DATABASE_URL" in os.environ else "sqlite")
