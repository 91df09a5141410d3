"""Deleting runs: what goes, what stays, who may, and that nothing else hangs on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
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

from runs_kit import member, tables
from spak import canon
from spak.errors import LedgerError
from spakweb import appendonly, clock
from spakweb.audit.models import Event
from spakweb.errors import Refused
from spakweb.home import backup
from spakweb.ledger import blobs, workspaces
from spakweb.ledger.blobs import StoredBlobs, name_of, unleased
from spakweb.ledger.projection import Projection
from spakweb.ledger.store import DatabaseLedgers
from spakweb.runs import actions
from spakweb.runs.models import Command, Run, RunBlob, RunRecord, State
from spakweb.specs.actions import create_spec
from spakweb.teams.actions import create_team, keep_runs
from spakweb.teams.models import Role, Team, User
from spakweb.worker import execute, open_run, queue, retention, tasks
from spakweb.worker.held_run import HeldRun

LONG = "x" * 70_000
TALK = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""


@pytest.fixture
def user(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT = tmp_path / "data/media"
    settings.DATA_DIR = tmp_path / "data"
    cache.clear()
    with tables():
        made = User.objects.create_user("alice", "alice@spak.example", "a long secret")
        create_team(made, "Tuners")
        yield made


@pytest.fixture
def team(user: User) -> Team:
    return Team.objects.get()


def asking(user: User, team: Team) -> Run:
    """A run that waits for an answer."""
    spec = create_spec(user, team, f"talk {team.specs.count()}", TALK)
    run = actions.start(user, spec, labels=["one"])
    execute.advance(run.key)
    run.refresh_from_db()
    return run


def ended(user: User, team: Team, text: str = LONG) -> Run:
    """A run that ended well, with an answer that is a blob."""
    run = asking(user, team)
    actions.ask(user, run, "answer", run.summary["waiting"]["id"], text=text)
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED and RunBlob.objects.filter(run=run).exists()
    return run


def aged(run: Run, days: float) -> None:
    Run.objects.filter(pk=run.pk).update(ended_at=clock.now() - timedelta(days=days))


def files(run: Run) -> list[str]:
    return [name_of(digest) for digest in RunBlob.objects.filter(run=run).values_list("digest", flat=True)]


def erased(run: Run) -> bool:
    """Whether nothing is left but the row."""
    run.refresh_from_db()
    rows = [RunRecord, RunBlob, Command]
    left = [model.__name__ for model in rows if model.objects.filter(run=run).exists()]
    assert (run.erased_at is None) == bool(left or workspaces.folder_of(run.key).exists()), left
    return run.erased_at is not None


def page(user: User, view: str, run: Run, method: str = "get", accept: str = "text/html", **more: Any) -> Any:
    client = Client(headers={"Accept": accept})
    client.force_login(user)
    address = reverse(view, kwargs={"team": run.team.slug, "run": run.key, **more})
    return getattr(client, method)(address)


# ---- deleting


def test_what_is_deleted_leaves_a_line_and_nothing_else(user: User, team: Team) -> None:
    run, other = ended(user, team), ended(user, team, "y" * 70_000)
    count, head, names = run.count, run.head, files(run)
    actions.delete(user, run)
    run.refresh_from_db()
    assert (run.summary, run.inputs, run.labels, run.task, run.reason) == ({}, {}, [], "", "")
    assert (run.count, run.head, run.state, run.deleted_by) == (count, head, State.SUCCEEDED, user)
    assert run.ended_at and run.deleted_at and not erased(run)
    retention.go_on()
    assert erased(run)
    assert not any(default_storage.exists(name) for name in set(names) - set(files(other)))
    event = Event.objects.filter(action="run.deleted").get()
    assert (event.thing, event.before, event.actor, event.detail["count"]) == (run.key, head, user, count)
    assert other.records.count() == other.count and workspaces.folder_of(other.key).exists()
    assert all(default_storage.exists(name) for name in files(other))
    call_command("check_store", stdout=StringIO())


@pytest.mark.parametrize(
    ("role", "status"),
    [(Role.VIEWER, 403), (Role.EDITOR, 403), (Role.REVIEWER, 403), (Role.ADMIN, 302), (None, 404)],
)
def test_only_an_admin_of_the_team_deletes(user: User, team: Team, role: Role | None, status: int) -> None:
    run = ended(user, team)
    if role is None:
        who = User.objects.create_user("charlie", "charlie@spak.example", "a long secret")
        create_team(who, "Others")
    else:
        who = member(team, "bob", role)
    shown = page(who, "spak-run", run).content.decode()
    assert ("Delete this run" in shown) == (role == Role.ADMIN)
    assert page(who, "spak-run-delete", run, "post").status_code == status
    run.refresh_from_db()
    assert (run.deleted_at is not None) == (status == 302)


def test_a_run_that_goes_on_is_not_deleted(user: User, team: Team) -> None:
    run = asking(user, team)
    with pytest.raises(Refused, match="has not ended") as why:
        actions.delete(user, run)
    assert why.value.code == "web.run_delete"
    assert "Delete this run" not in page(user, "spak-run", run).content.decode()
    with pytest.raises(CommandError, match="has not ended"):
        call_command("delete_run", run.key)
    assert run.records.count() == run.count


def test_a_run_that_a_fork_goes_on_from_is_not_deleted(user: User, team: Team) -> None:
    run = ended(user, team)
    fork = actions.fork(user, run, 5)
    with pytest.raises(Refused, match=fork.key):
        actions.delete(user, run)
    with pytest.raises(CommandError, match=fork.key):
        call_command("delete_run", run.key)
    execute.advance(fork.key)
    actions.request_control(user, fork, "cancel")
    execute.advance(fork.key)
    actions.delete(user, run)
    retention.go_on()
    run.refresh_from_db()
    assert run.erased_at is not None and not run.records.exists()
    left = sorted(path.name for path in workspaces.folder_of(run.key).iterdir())
    assert left == ["store"], "the files that the fork may go back to"
    assert "(deleted)" in page(user, "spak-run", fork).content.decode()
    assert fork.key in page(user, "spak-run", run).content.decode()
    fork.refresh_from_db()
    actions.delete(user, fork)
    cache.clear()
    retention._tidied = 0.0
    retention.go_on()
    assert not workspaces.folder_of(run.key).exists() and not workspaces.folder_of(fork.key).exists()


def test_an_imported_run_that_is_only_shown_can_go(user: User, team: Team) -> None:
    run = asking(user, team)
    Run.objects.filter(pk=run.pk).update(only_shown="it is of another law", state=State.PAUSED)
    run.refresh_from_db()
    assert "Delete this run" in page(user, "spak-run", run).content.decode()
    actions.delete(user, run)
    assert retention.erase(run)


def test_one_that_cannot_be_erased_keeps_no_other(
    user: User, team: Team, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = ended(user, team), ended(user, team)
    for run in (first, second):
        actions.delete(user, run)
    real = retention._some_records

    def failing(run: int) -> bool:
        if run == first.pk:
            raise OSError(5, "Input/output error")
        return real(run)

    monkeypatch.setattr(retention, "_some_records", failing)
    retention.go_on()
    assert erased(second) and not erased(first) and first.key in caplog.text


def test_a_deleted_run_is_deleted_once_and_not_forked(user: User, team: Team) -> None:
    run = ended(user, team)
    actions.delete(user, run)
    for act in (lambda: actions.delete(user, run), lambda: actions.fork(user, run, 3)):
        with pytest.raises(Refused) as why:
            act()
        assert (why.value.code, why.value.status) == ("web.run_deleted", 410)
    assert Event.objects.filter(action="run.deleted").count() == 1


def test_a_worker_that_held_it_brings_nothing_back(user: User, team: Team) -> None:
    run = asking(user, team)
    holding = HeldRun(run, open_run.take(run))
    holding.runner.cancel()
    Run.objects.filter(pk=run.pk).update(state=State.CANCELLED)
    actions.delete(user, run)
    holding.seen = Projection({"nodes": {"Talk": {"state": "running"}}})
    holding._save("ended")
    with pytest.raises(LedgerError):
        holding.runner.ledger.confirm()
    with suppress(LedgerError):
        holding.runner.ledger.close()
    run.refresh_from_db()
    assert run.summary == {} and run.deleted_at


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
    found = StoredBlobs(other.pk, lambda digest, size: waiting.append((digest, size)) or _done())
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


# ---- what is shown


PARTS = (
    ("spak-run-head", {}), ("spak-run-live", {}), ("spak-run-record", {"seq": 0}), ("spak-run-fork", {}),
    ("spak-run-prompt", {"seq": 3}), ("spak-run-export", {}), ("spak-run-log", {}), ("spak-run-report", {}),
    ("spak-run-files", {}), ("spak-run-artifact", {"name": "0/word.txt"}),
)  # fmt: skip


def test_its_address_says_what_it_was_and_nothing_else_is_had(user: User, team: Team) -> None:
    run = ended(user, team)
    count, head = run.count, run.head
    actions.delete(user, run)
    for _ in range(2):
        shown = page(user, "spak-run", run)
        text = shown.content.decode()
        assert shown.status_code == 410 and "This run was deleted" in text
        assert head in text and f"{count} records" in text and "by alice" in text
        asked = page(user, "spak-run", run, accept="application/json")
        told = json.loads(asked.content)
        assert (asked.status_code, told["code"]) == (410, "web.run_deleted")
        assert (told["tombstone"]["count"], told["tombstone"]["head"]) == (count, head)
        assert told["tombstone"]["state"] == "succeeded" and told["tombstone"]["deleted_by"] == "alice"
        for name, more in PARTS:
            assert page(user, name, run, **more).status_code == 410, name
        client = Client(headers={"Accept": "application/json"})
        client.force_login(user)
        compared = client.get(reverse("spak-run-compare", args=[team.slug]), {"one": run.key, "two": run.key})
        assert compared.status_code == 410
        retention.erase(run)


def test_lists_show_it_only_when_asked(user: User, team: Team) -> None:
    run, other = ended(user, team), ended(user, team)
    actions.delete(user, run)
    retention.erase(run)
    client = Client()
    client.force_login(user)
    address = reverse("spak-run-list", args=[team.slug])
    here, gone = (client.get(address, given).content.decode() for given in ({}, {"deleted": "1"}))
    assert other.key in here and run.key not in here
    assert run.key in gone and other.key not in gone and "by alice" in gone
    program = reverse("spak-team-runs", args=[team.slug])
    found = [client.get(program, given).json()["runs"] for given in ({}, {"deleted": "1"})]
    assert [[one["key"] for one in runs] for runs in found] == [[other.key], [run.key]]
    assert "deleted_at" not in found[0][0] and found[1][0]["head"] == run.head and found[1][0]["deleted_at"]
    assert client.get(reverse("spak-team-home", args=[team.slug])).status_code == 200
    assert DatabaseLedgers().runs() == [other.key]
    with pytest.raises(LedgerError, match="was deleted"):
        DatabaseLedgers().reader(run.key)


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

    from spakweb.ledger import export

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
