"""Deleting runs: what goes, what stays, who may, and that nothing else hangs on it."""

from __future__ import annotations

import json
from contextlib import suppress
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from api_table import ROWS as API
from retention_kit import asking, ended, erased, files, page
from runs_kit import member
from spak.errors import LedgerError
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Role, Team, User
from spakweb.store.ledger import workspaces
from spakweb.store.ledger.projection import Projection
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, State
from spakweb.work.runs import actions
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, open_run, retention
from spakweb.work.worker.held_run import HeldRun

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


# ---- what is shown


PARTS = (
    ("spak-run-head", {}), ("spak-run-record", {"seq": 0}), ("spak-run-fork", {}),
    ("spak-run-prompt", {"seq": 3}), ("spak-run-export", {}), ("spak-run-log", {}), ("spak-run-report", {}),
    ("spak-run-artifact", {"name": "0/word.txt"}),
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
        asked = page(user, "spak-api-run", run)
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
    program = reverse("spak-api-runs", args=[team.slug])
    found = [client.get(program, given).json()["runs"] for given in ({}, {"deleted": "1"})]
    assert [[one["key"] for one in runs] for runs in found] == [[other.key], [run.key]]
    assert found[0][0]["deleted_at"] is None
    assert found[1][0]["head"] == run.head and found[1][0]["deleted_at"]
    assert client.get(reverse("spak-team-home", args=[team.slug])).status_code == 200
    assert DatabaseLedgers().runs() == [other.key]
    with pytest.raises(LedgerError, match="was deleted"):
        DatabaseLedgers().reader(run.key)


def test_every_address_of_the_api_says_that_it_was_deleted(user: User, team: Team) -> None:
    """Programs that read its records on, or wait for it, end."""
    run = ended(user, team)
    actions.delete(user, run)
    client = Client(headers={"Accept": "application/json"})
    client.force_login(user)
    parts = {"team": team.slug, "run": run.key}
    asked = [row for row in API if "run" in row.parts and set(row.parts) <= parts.keys()]
    assert {"spak-api-run", "spak-api-records", "spak-api-branches"} <= {row.name for row in asked}
    for row in asked:
        address = reverse(row.name, kwargs={part: parts[part] for part in row.parts})
        answer = client.generic(row.method, address, json.dumps(row.body or {}), row.kind)
        assert (answer.status_code, answer.json()["code"]) == (410, "web.run_deleted"), row
