"""Runs by the API beyond start and wait: a posted text, fork, replay, labels, files, report, log, ledger."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from run_rows_kit import begun
from spak.ledger.verify import verify
from spakweb.face.runs import workspace
from spakweb.store.ledger import export
from spakweb.store.ledger.blobs import name_of
from spakweb.store.runs.models import Run, RunBlob, RunText, State
from spakweb.store.specs.models import SpecVersion
from spakweb.work.teams import tokens
from spakweb.work.worker import queue

HERE = "/api/v1/teams/kernel-tuners/"
SPEC = HERE + "specs/small/"
TEXT = (
    'AGENT a LEVEL 1 { INPUTS { size: int = 2 } START -> b TASK b { step c: tool.list_files { path: "." } } }'
)
LEAVES = """\
task Leaves {
  step one: tool.write_file { path: "sub/made.txt" content: "Hello" }
  step two: tool.write_file { path: ".env" content: "KEY=hidden" }
  success: file_exists("sub/made.txt")
}
"""


def program(user: Any, team: Any, *scopes: str) -> Client:
    return Client(headers={"authorization": f"Bearer {tokens.make(user, 'ci', 7, team, scopes)[1]}"})


def post(client: Client, address: str, body: Any = None, **headers: str) -> Any:
    text = json.dumps({} if body is None else body)
    return client.post(address, text, content_type="application/json", headers=headers)


@pytest.fixture
def ci(cast: Any, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A program of bob's that starts runs of texts too."""
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    return program(cast["bob"], cast.team, "start", "edit")


# ---- a posted text


def test_a_text_runs_without_becoming_a_version(cast: Any, ci: Client) -> None:
    made = post(ci, SPEC + "runs/", {"text": TEXT, "inputs": {"size": "3"}, "labels": ["try"]})
    found = made.json()
    assert made.status_code == 201 and (found["spec"], found["version"]) == ("small", None)
    assert found["inputs"] == {"size": "3"} and found == ci.get(made["Location"]).json()
    assert RunText.objects.get().text == TEXT and SpecVersion.objects.filter(spec=cast.spec).count() == 1


@pytest.mark.findings("A2")
def test_a_text_names_no_blob(cast: Any, ci: Client) -> None:
    content = f'{{ "$blob": "{"A" * 43}", "size": 10 }}'
    text = f'task leak {{ step w: tool.write_file {{ path: "leak.txt" content: {content} }} }}'
    for given in (text, text.replace(content, '{ "$text": ["a"] }')):
        answer = post(ci, SPEC + "runs/", {"text": given})
        assert (answer.status_code, answer.json()["code"]) == (422, "lang.invalid")
        assert "a member can not be called '$" in answer.content.decode()
    assert not Run.objects.exists()


def test_texts_that_do_not_run(cast: Any, ci: Client) -> None:
    for body, status, code in (
        ({"text": "task A {"}, 422, "lang.invalid"),
        ({"text": "AGENT a LEVEL 1 { START -> none }"}, 422, "lang.invalid"),
        ({"text": ""}, 422, "web.request"),
        ({"text": TEXT, "version": 1}, 422, "web.request"),
        ({"text": TEXT, "inputs": {"other": "1"}}, 422, "web.run_input"),
        ({"text": TEXT, "inputs": {"size": "x"}}, 400, "web.run_input"),
    ):
        answer = post(ci, SPEC + "runs/", body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), body
    starts = program(cast["bob"], cast.team, "start")
    answer = post(starts, SPEC + "runs/", {"text": TEXT})
    assert (answer.status_code, answer.json()["code"]) == (403, "web.403")
    assert "scope edit" in answer.json()["detail"] and not Run.objects.exists()


# ---- fork, replay, labels


def test_a_fork_takes_over_what_came_before(cast: Any, ci: Client) -> None:
    begun(cast.team, cast.spec.head, "live-run")
    address = HERE + "runs/live-run/fork/"
    one, two = (post(ci, address, {"at": 1}, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert (one.status_code, one.json()["key"]) == (201, two.json()["key"])
    fork = Run.objects.get(key=one.json()["key"])
    assert (fork.parent.key, fork.parent_seq, fork.made_by.username) == ("live-run", 1, "bob")
    assert post(ci, address).status_code == 201
    for body, status, code in (
        ({"at": 99}, 400, "web.run_fork"),
        ({"at": 0}, 422, "web.request"),
        ({"task": "none\0"}, 422, "web.request"),
        ({"task": "none"}, 422, "web.run_fork"),
        ({"at": 1, "task": "look"}, 422, "web.request"),
    ):
        answer = post(ci, address, body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), body
    assert post(program(cast["bob"], cast.team), address).status_code == 403


def test_labels_are_replaced(cast: Any, ci: Client) -> None:
    begun(cast.team, cast.spec.head, "live-run", labels=["old"])
    address = HERE + "runs/live-run/labels/"
    assert post(ci, address, {"labels": ["new", "new"]}).json()["labels"] == ["new"]
    assert post(ci, address, {"labels": [str(n) for n in range(30)]}).json()["code"] == "web.run_labels"
    assert post(ci, address).json()["code"] == "web.request"


def test_a_replay_says_whether_all_follows(ran: Callable[..., Run], ci: Client) -> None:
    run = ran()
    address = f"{HERE}runs/{run.key}/replay/"
    found, tries = {"done": False}, 0
    while not found["done"] and tries < 100:
        answer = post(ci, address, {"of": found["of"]} if "of" in found else {})
        found, tries = answer.json(), tries + 1
        assert answer.status_code == (200 if found["done"] else 202)
        assert answer.has_header("Retry-After") != found["done"]
    assert (found["ledger_ok"], found["replay_equal"]) == (True, True)
    assert (found["records"], found["head"], found["difference"]) == (run.count, run.head, None)


@pytest.mark.findings("A2")
def test_a_replay_and_an_export_agree_on_a_blob_that_the_run_lacks(
    ran: Callable[..., Run], ci: Client
) -> None:
    run = ran()
    lost = RunBlob.objects.filter(run=run).first()
    assert lost is not None and default_storage.exists(name_of(lost.digest))
    RunBlob.objects.filter(pk=lost.pk).delete()
    found = export.checked(run)
    assert (found["ok"], found["equal"]) == (False, True)
    assert any(f"blob {lost.digest} is missing" in problem for problem in found["problems"])
    lines = b"".join(ci.get(f"{HERE}runs/{run.key}/export.jsonl")).splitlines(keepends=True)
    report = verify(iter(lines), exported=True)
    assert f"blob {lost.digest} is missing" in [problem.message for problem in report.problems]


def test_what_has_no_records_is_not_replayed(cast: Any, ci: Client) -> None:
    Run.objects.create(team=cast.team, version=cast.spec.head, key="new", name="new")
    for address in ("replay/", "junit.xml", "report.json", "report.html", "export.jsonl", "changes.patch"):
        ask = post if address == "replay/" else (lambda client, path: client.get(path))
        answer = ask(ci, f"{HERE}runs/new/{address}")
        assert (answer.status_code, answer.json()["code"]) == (409, "web.run_empty"), address


def test_what_starting_a_run_asks_of_the_database(
    cast: Any, ci: Client, ground: None, django_assert_max_num_queries: Any
) -> None:
    """CI starts many at once: one transaction, and no row is asked for twice but the role."""

    def start(key: str) -> Any:
        path = f"{HERE}specs/{cast.spec.slug}/runs/"
        return ci.post(path, "{}", content_type="application/json", headers={"idempotency-key": key})

    start("warm")
    with django_assert_max_num_queries(22) as asked:
        assert start("counted").status_code == 201
    words = [one["sql"] for one in asked.captured_queries]
    assert sum(sql.startswith("BEGIN") for sql in words) <= 1
    assert sum('FROM "specs_spec"' in sql for sql in words) == 1


# ---- what a run leaves


def test_files_one_and_all(ran: Callable[..., Run], ci: Client) -> None:
    run = ran(LEAVES)
    here = f"{HERE}runs/{run.key}/"
    rows = ci.get(here + "files/").json()["files"]
    assert [(one["name"], one["size"]) for one in rows] == [("sub/made.txt", 5)]
    assert rows[0]["url"].startswith(f"http://testserver{HERE}")
    one = ci.get(rows[0]["url"])
    assert b"".join(one) == b"Hello" and one["Content-Disposition"].startswith("attachment")
    assert one["X-Content-Type-Options"] == "nosniff"
    answer = ci.get(here + "files.zip")
    with zipfile.ZipFile(io.BytesIO(b"".join(answer))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"sub/made.txt": b"Hello"}
    assert answer["Content-Disposition"] == f'attachment; filename="{run.key}.zip"'
    for name in ("file/none", "file/.env", "file/../../etc/passwd", "blob/none", "none"):
        assert ci.get(f"{here}files/{name}").status_code == 404, name
    assert ci.get(here + "files.zip?everything=1").json()["code"] == "web.filter"


def test_names_in_a_zip_are_such_as_any_system_writes(
    ran: Callable[..., Run], ci: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools write what Windows takes for another folder, or two names that it takes for one."""
    run = ran(LEAVES)
    odd = ["..\\..\\x.txt", "sub/made.txt", "Sub/made.txt", "nul", "turn\u202e.txt", "spak-renamed.json"]
    (made,) = [one for one in workspace.files.files_of(run) if one.state]
    found = [replace(made, path=path) for path in odd]
    monkeypatch.setattr(workspace.files, "files_of", lambda run: found)
    monkeypatch.setattr(workspace.files, "content", lambda run, one: one.path.encode(errors="replace"))
    with zipfile.ZipFile(io.BytesIO(b"".join(ci.get(f"{HERE}runs/{run.key}/files.zip")))) as archive:
        listed = {name: archive.read(name) for name in archive.namelist()}
    renamed = json.loads(listed.pop("spak-renamed (2).json"))
    assert list(listed) == [
        ".._.._x.txt", "sub/made.txt", "Sub (2)/made.txt", "_nul", "turn_.txt", "spak-renamed.json",
    ]  # fmt: skip
    assert renamed["_nul"] == "nul" and renamed["turn_.txt"] == "turn⟨U+202E⟩.txt" and len(renamed) == 4


def test_a_zip_has_a_largest_size(
    ran: Callable[..., Run], ci: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ran(LEAVES)
    monkeypatch.setattr(workspace, "ZIP_BYTES", 4)
    answer = ci.get(f"{HERE}runs/{run.key}/files.zip")
    assert (answer.status_code, answer.json()["code"]) == (413, "web.run_zip")


def test_report_log_and_ledger(ran: Callable[..., Run], ci: Client) -> None:
    run = ran()
    here = f"{HERE}runs/{run.key}/"
    found = ci.get(here + "report.json").json()
    assert (found["run"], found["state"], found["records"]) == (run.key, "succeeded", run.count)
    assert (found["ledger_ok"], found["replay_equal"], found["chain_head"]) == (True, True, run.head)
    assert ci.get(here + "report.json?fields=state").json() == {"state": "succeeded"}
    page = ci.get(here + "report.html")
    assert page["Content-Type"].startswith("text/html") and page["Content-Disposition"].startswith("attach")
    assert b"verified" in page.content
    lines = b"".join(ci.get(here + "export.jsonl")).splitlines()
    assert len(lines) >= run.count and json.loads(lines[0])["kind"] == "genesis"
    patch = ci.get(here + "changes.patch")
    assert patch["Content-Type"].startswith("text/x-diff") and b"+Hello <b>you</b>" in patch.content
    log = ci.get(here + "log.txt")
    assert log["Content-Type"].startswith("text/plain") and log.streaming


def test_findings_of_what_ran(ran: Callable[..., Run], ci: Client) -> None:
    run = ran(LEAVES)
    assert run.version is not None
    found = ci.get(f"{HERE}specs/{run.version.spec.slug}/findings/").json()
    assert (found["version"], found["runs"], found["left_out"]) == (1, [run.key], 0)
    assert found["findings"] == [] and found["transitions"] == []


def test_of_a_deleted_run_nothing_is_left(cast: Any, ci: Client) -> None:
    run = begun(cast.team, cast.spec.head, "live-run")
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(state=State.FAILED, ended_at=now, deleted_at=now)
    for address in ("files/", "files.zip", "report.json", "log.txt", "export.jsonl", "junit.xml"):
        answer = ci.get(f"{HERE}runs/live-run/{address}")
        assert (answer.status_code, answer.json()["code"]) == (410, "web.run_deleted"), address
    assert post(ci, HERE + "runs/live-run/fork/", {"at": 1}).json()["code"] == "web.run_deleted"


def test_no_address_of_the_api_approves(cast: Any, ci: Client) -> None:
    begun(cast.team, cast.spec.head, "live-run")
    for word in ("approve", "decide", "deny", "delete"):
        assert post(ci, f"{HERE}runs/live-run/{word}/").json()["code"] == "web.404"


@pytest.mark.sandbox
@pytest.mark.findings("B10")
def test_the_junit_report_says_what_failed_and_where_the_run_is(cast: Any, ran: Callable[..., Run]) -> None:
    run = ran('task Look { step shout: tool.run { cmd: "cat missing.txt" } }')
    assert run.count, run.reason
    look = program(cast["vera"], cast.team, "look")
    found = look.get(f"{HERE}runs/{run.key}/junit.xml").content.decode()
    for words in ("shout", "exit", "No such file", f"http://testserver/t/{cast.team.slug}/runs/{run.key}/"):
        assert words in found, found
