"""Runs are kept for as long as their team says; shared blobs, the database and backups stay whole."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from retention_kit import aged, asking, ended, erased, files, page
from spak import canon
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.database import appendonly
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team, User
from spakweb.store.ledger import blobs
from spakweb.store.ledger.blobs import StoredBlobs, name_of, unleased
from spakweb.store.runs.models import Run, RunBlob, RunRecord
from spakweb.work.operate import backup
from spakweb.work.runs import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import keep_runs
from spakweb.work.worker import execute, retention, tasks

# ---- retention


@pytest.mark.parametrize(
    ("of_team", "of_platform", "days", "goes"),
    [
        (None, 0, 9000, False), (0, 5, 9000, False), (None, 5, 6, True), (None, 5, 4, False),
        (7, 5, 6, False), (7, 5, 8, True), (1, 0, 2, True),
    ],
)  # fmt: skip
def test_runs_are_kept_for_as_long_as_the_team_says(
    user: User, team: Team, settings: Any, of_team: int | None, of_platform: int, days: int, goes: bool
) -> None:
    settings.KEEP_RUNS_DAYS = of_platform
    keep_runs(user, team, "" if of_team is None else str(of_team))
    run, waits = ended(user, team), asking(user, team)
    aged(run, days)
    Run.objects.filter(pk=waits.pk).update(made_at=clock.now() - timedelta(days=days))
    retention.go_on()
    assert erased(run) == goes
    waits.refresh_from_db()
    assert waits.deleted_at is None, "it has not ended"
    if goes:
        assert (
            run.deleted_by is None and run.deleted_why == f"retention: kept for {of_team or of_platform} days"
        )
        assert "retention: kept for" in page(user, "spak-run", run).content.decode()


def test_one_that_never_began_counts_from_when_it_was_made(user: User, team: Team) -> None:
    spec = create_spec(user, team, "broken", "task Broken {\n  step a: tool.nothing { }\n}\n")
    run = actions.start(user, spec)
    execute.advance(run.key)
    Run.objects.filter(pk=run.pk).update(made_at=clock.now() - timedelta(days=3), ended_at=None)
    team.keep_days = 2
    assert retention.expire(team) == 1
    assert retention.erase(run)


@pytest.mark.parametrize("days", ["-1", "1.5", "x", "99999", "1" * 40, "１"])
def test_odd_days_are_refused(user: User, team: Team, days: str) -> None:
    with pytest.raises(Refused) as why:
        keep_runs(user, team, days)
    assert why.value.code == "web.keep_days"


def test_what_was_asked_for_is_noted_once(user: User, team: Team) -> None:
    for days in ("30", "30", "", "0"):
        keep_runs(user, team, days)
    found = Event.objects.filter(action="team.keep_runs").order_by("pk").values_list("detail", flat=True)
    assert [(row["was"], row["now"]) for row in found] == [(None, 30), (30, None), (None, 0)]


def test_sweeps_look_now_and_then_and_work_in_slices(
    user: User, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "RECORDS", 3)
    monkeypatch.setattr(retention, "SLICE_S", 0.0)
    run = ended(user, team)
    actions.delete(user, run)
    count = run.records.count()
    retention.go_on()
    assert run.records.count() == count  # no time at all
    monkeypatch.setattr(retention, "SLICE_S", 60.0)
    retention.go_on()  # there was more to do: it looks again at once
    assert erased(run)
    other = ended(user, team)
    actions.delete(user, other)
    retention.go_on()
    assert not erased(other)  # nothing was left to do, so it waits
    cache.delete(retention.LOOKED)
    retention.go_on()
    assert erased(other)


def test_the_sweep_of_a_worker_does_it(user: User, team: Team) -> None:
    run = ended(user, team)
    aged(run, 3)
    keep_runs(user, team, "2")
    tasks.sweep_up()
    assert erased(run)


@pytest.mark.parametrize("after", range(6))
def test_killed_in_the_middle_it_goes_on(
    user: User, team: Team, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(retention, "RECORDS", 6)
    monkeypatch.setattr(retention, "BLOBS", 1)
    run = ended(user, team)
    names = files(run)
    actions.delete(user, run)
    left = [after]

    def dying(real: Any) -> Any:
        def call(*args: Any) -> Any:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return real(*args)

        return call

    with monkeypatch.context() as patched:
        for module, name in ((retention, "_some_records"), (blobs, "drop"), (retention, "_remove_files")):
            patched.setattr(module, name, dying(getattr(module, name)))
        with pytest.raises(KeyboardInterrupt):
            retention.go_on()
    assert not erased(run)
    call_command("check_store", stdout=StringIO())
    cache.clear()
    retention.go_on()
    assert erased(run) and not any(default_storage.exists(name) for name in names)


def test_nothing_is_erased_while_a_backup_is_made(user: User, team: Team) -> None:
    run = ended(user, team)
    actions.delete(user, run)
    with retention.withheld():
        assert not retention.erase(run)
        assert run.records.count() == run.count
    assert retention.erase(run)


def test_a_backup_does_not_wait_for_a_stopped_process_for_ever(
    user: User, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "WAIT_S", 0.0)
    with retention.withheld():
        with pytest.raises(Refused) as why, retention.withheld():
            pytest.fail("both")
        assert why.value.code == "web.backup"


# ---- blobs that runs share


def test_a_blob_that_another_run_has_stays(user: User, team: Team) -> None:
    run, other = ended(user, team), ended(user, team)
    shared = set(files(run)) & set(files(other))
    assert shared
    actions.delete(user, run)
    assert retention.erase(run)
    assert all(default_storage.exists(name) for name in files(other))
    actions.delete(user, other)
    assert retention.erase(other)
    assert not any(default_storage.exists(name) for name in shared)


@pytest.mark.parametrize("when", ["before its row", "after its row"])
def test_a_blob_that_is_stored_while_it_is_deleted_is_there_afterwards(
    user: User, team: Team, when: str
) -> None:
    run, other = ended(user, team), asking(user, team)
    data = b"shared bytes"
    unleased(run.pk).put(data)
    digest = canon.digest(data)
    actions.delete(user, run)
    waiting: list[Any] = []
    found = StoredBlobs(other.pk, lambda rows: waiting.extend(rows) or _done())
    found.put(data)
    row = RunBlob(run=other, digest=digest, size=len(data))
    if when == "after its row":
        row.save()
    blobs.drop(run.pk, 100)
    assert default_storage.exists(name_of(digest)) == (when == "after its row")
    if when == "before its row":
        row.save()
    found.flush()
    assert StoredBlobs(other.pk).get(digest) == data


def _done() -> Any:
    from concurrent.futures import Future

    done: Future[None] = Future()
    done.set_result(None)
    return done


# ---- the database itself


def test_records_of_other_runs_cannot_be_deleted(user: User, team: Team) -> None:
    run, other = ended(user, team), ended(user, team)
    actions.delete(user, run)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {RunRecord._meta.db_table} WHERE run_id = %s", [other.pk])
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {RunRecord._meta.db_table} SET task = 'x' WHERE run_id = %s", [run.pk])
    assert other.records.count() == other.count and run.records.count() == run.count


def test_the_trigger_of_an_older_version_is_replaced(user: User, team: Team) -> None:
    run = ended(user, team)
    actions.delete(user, run)
    table = RunRecord._meta.db_table
    at = f" ON {table}" if connection.vendor == "postgresql" else ""
    does = (
        f"FOR EACH ROW EXECUTE FUNCTION {appendonly.FUNCTION}()"
        if at
        else "BEGIN SELECT RAISE(ABORT, 'stay'); END"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {table}_no_delete{at}")
        cursor.execute(f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {does}")
    with pytest.raises(DatabaseError):
        retention.erase(run)
    appendonly.install(connection)
    assert retention.erase(run) and appendonly.missing(connection) == []


def test_a_run_that_has_not_ended_cannot_be_marked(user: User, team: Team) -> None:
    run = asking(user, team)
    with pytest.raises(DatabaseError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(deleted_at=clock.now())


# ---- looking after the store


def test_the_store_is_looked_after_as_before(user: User, team: Team, tmp_path: Path) -> None:
    run, other = ended(user, team), ended(user, team)
    exported = Client()
    exported.force_login(user)
    lines = exported.get(reverse("spak-run-export", args=[team.slug, run.key])).getvalue()
    actions.delete(user, run)
    for _ in range(2):
        said = StringIO()
        call_command("check_store", stdout=said)
        assert "1 run checked" in said.getvalue()
        call_command("rebuild", stdout=StringIO())
        with pytest.raises(CommandError, match="no records"):
            call_command("rebuild", run.key)
        run.refresh_from_db()
        assert run.summary == {} and run.deleted_at
        retention.erase(run)
    from django.core.files.base import ContentFile

    from spakweb.store.ledger import export

    with pytest.raises(Refused, match="was deleted"):
        export.bring(user, team, ContentFile(lines), len(lines))
    assert other.records.count() == other.count


def test_a_backup_of_a_half_erased_run_is_whole(
    user: User, team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended(user, team)
    actions.delete(user, run)
    monkeypatch.setattr(retention, "RECORDS", 2)
    retention._some_records(run.pk)
    if connection.vendor == "sqlite" and "memory" not in str(connection.settings_dict["NAME"]):
        assert backup.make(tmp_path / "copy").damaged == ()


def test_manage_py_deletes_to_the_end(user: User, team: Team) -> None:
    run, half = ended(user, team), ended(user, team)
    actions.delete(user, half)
    said = StringIO()
    call_command("delete_run", run.key, half.key, stdout=said)
    assert erased(run) and erased(half) and run.deleted_why == "manage.py delete_run"
    assert said.getvalue().splitlines()[0] == f"{run.key}: deleted, {run.count} records"
    with pytest.raises(CommandError, match="there is no run nothing"):
        call_command("delete_run", "nothing")
