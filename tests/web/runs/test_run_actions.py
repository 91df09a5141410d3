"""What people do on a run's page: answer, stop, resume, cancel, fork, check, export."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from run_page_specs_kit import ASKING, WITH_INPUT, Ran, body, url
from spak.errors import LedgerError
from spak.kernel.replay import replay
from spak.ledger import MemoryLedgers, import_, verify
from spak.ledger.note import verifier
from spak.ledger.pack import Keys, verify_pack
from spak.ledger.settings import Checkpoints
from spak.records import decode
from spakweb.face.runs import backends, run_parts
from spakweb.face.runs.backends import Seen
from spakweb.store.ledger import workspaces
from spakweb.store.runs.models import Run, State
from spakweb.work.runs import checkpoints
from spakweb.work.worker import execute, open_run

pytestmark = pytest.mark.django_db(transaction=True)


def test_answering_moves_the_run_on(cast: Any, ran: Ran) -> None:
    run, client = ran(ASKING, mode="stepwise"), cast.client("bob")
    page = body(client.get(url("spak-run", run)))
    assert "Waiting for an answer" in page and "Say a word." in page
    of = run.summary["waiting"]["id"]
    assert client.post(url("spak-run-answer", run), {"of": of, "text": " "}).status_code == 400
    assert client.post(url("spak-run-answer", run), {"of": of, "text": "a\r\nb"}).status_code == 302
    handed = body(cast.client("vera").get(url("spak-run", run)))
    assert "answered" in handed and "Your answer</span>" not in handed
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED
    assert (workspaces.folder_of(run.key) / "workspace" / "word.txt").read_text() == "a\nb"
    late = client.post(url("spak-run-answer", run), {"of": of, "text": "late"})
    assert late.status_code == 409
    assert "late</textarea>" in body(late)  # though the run has no form any more


def test_without_a_backend_calling_it_says_so(cast: Any, ran: Ran) -> None:
    run, client = ran(ASKING, mode="stepwise"), cast.client("bob")
    client.post(url("spak-run-answer", run), {"of": run.summary["waiting"]["id"], "call": "1"})
    assert "bob called the backend" in body(client.get(url("spak-run", run)))
    execute.advance(run.key)
    text = body(client.get(url("spak-run", run)))
    assert "no backend is set up where this run executes" in text and "<textarea" in text


def test_the_form_of_a_question_says_which_backends_work(
    cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Seen("manual", True), Seen("recorded", True), Seen("local", True), Seen("ollama", False, "off")]
    run, client = ran(ASKING, mode="stepwise"), cast.client("bob")
    monkeypatch.setattr(backends, "seen", lambda patience_s: rows)
    text = body(client.get(url("spak-run", run)))
    assert ">local</option>" in text and ">ollama (not available here)</option>" in text
    assert "No backend works on this host" not in text and ">manual</option>" not in text
    rows[2] = Seen("local", False, "not installed")
    assert "No backend works on this host" in body(client.get(url("spak-run", run)))
    rows[2] = Seen("local", None)
    assert "No backend works on this host" not in body(client.get(url("spak-run", run)))


def test_a_run_without_a_backend_takes_the_one_that_is_called(
    cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "seen", lambda patience_s: [Seen("recorded", True), Seen("local", None)])
    run, client = ran(ASKING, mode="stepwise"), cast.client("bob")
    assert '<select name="backend"' in body(client.get(url("spak-run", run)))
    asked = {"of": run.summary["waiting"]["id"], "call": "1"}
    odd = client.post(url("spak-run-answer", run), {**asked, "backend": "oracle"})
    assert odd.status_code == 400 and "There is no backend" in body(odd)
    assert client.post(url("spak-run-answer", run), {**asked, "backend": "recorded"}).status_code == 302
    client.post(url("spak-run-answer", run), {**asked, "backend": "local"})  # too late: one is called
    run.refresh_from_db()
    assert run.backend == "recorded"
    execute.advance(run.key)
    text = body(client.get(url("spak-run", run)))
    assert "Call recorded" in text and "The backend gave no answer (llm." in text


def test_a_viewer_reads_the_question_and_has_no_form(cast: Any, ran: Ran) -> None:
    run = ran(ASKING, mode="stepwise")
    text = body(cast.client("vera").get(url("spak-run", run)))
    assert "Say a word." in text and "<textarea" not in text and "Cancel</button>" not in text


@pytest.mark.parametrize(("word", "state"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_stopping_and_going_on(cast: Any, ran: Ran, word: str, state: State) -> None:
    run, client = ran(ASKING, mode="stepwise"), cast.client("bob")
    client.post(url("spak-run-control", run), {"do": word})
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == (state if word == "cancel" else State.WAITING)  # a question stays one
    assert not run.wanted
    assert client.post(url("spak-run-control", run), {"do": "explode"}).status_code == 400


def test_who_stopped_it_is_named_and_its_like_is_a_click_away(cast: Any, ran: Ran) -> None:
    run, client = ran(WITH_INPUT, advance=False, inputs={"size": "7"}, labels=["a&b"]), cast.client("bob")
    client.post(url("spak-run-control", run), {"do": "cancel"})
    execute.advance(run.key)
    page = body(client.get(url("spak-run", run)))
    assert f"Cancelled by {cast['bob']}." in page
    run.refresh_from_db()
    form = body(client.get(run_parts.retry_address(run)))
    assert 'value="7"' in form and 'value="a&amp;b"' in form and "Run again" in page
    assert "Run again" not in body(cast.client("vera").get(url("spak-run", run)))


def test_resuming(cast: Any, ran: Ran) -> None:
    run, client = ran(advance=False), cast.client("bob")
    Run.objects.update(state=State.PAUSED)
    assert "Resume</button>" in body(client.get(url("spak-run", run)))
    client.post(url("spak-run-control", run), {"do": "resume"})
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED


def test_cancelling_many(cast: Any, ran: Ran) -> None:
    runs = [ran(advance=False) for _ in range(3)]
    foreign = Run.objects.create(team=cast.other_team, key="foreign", name="theirs")
    address = reverse("spak-run-bulk", args=[cast.team.slug])
    keys = [run.key for run in runs[:2]] + [foreign.key]
    assert cast.client("vera").post(address, {"run": keys, "do": "cancel"}).status_code == 403
    cast.client("bob").post(address, {"run": keys, "do": "cancel"})
    states = list(Run.objects.order_by("pk").values_list("state", flat=True))
    assert states == ["cancelled", "cancelled", "queued", "queued"]
    assert "no records yet" in body(cast.client("vera").get(url("spak-run", runs[0])))
    late = Run.objects.select_related("team", "version", "parent").get(pk=runs[0].pk)
    with pytest.raises(LedgerError, match="another runner"):
        open_run.take(late)  # a worker that had chosen it before
    assert not execute.advance(runs[1].key) and not Run.objects.exclude(count=0).exists()


def test_a_fork_says_what_it_takes_over_and_does_so(cast: Any, ran: Ran) -> None:
    run, client = ran(), cast.client("bob")
    assert '<a class="mono" href="?task=Hello">' in body(client.get(url("spak-run-fork", run)))
    answer = client.get(url("spak-run-fork", run), {"task": "Hello"})
    assert answer.context["at"] == 1
    at = next(row["seq"] for row in client.get(
        url("spak-run", run), {"tab": "records", "kind": "route"}).context["rows"][::-1])  # fmt: skip
    text = body(client.get(url("spak-run-fork", run), {"at": at}))
    assert "Hello/greet" in text and "Will execute" in text
    made = client.post(url("spak-run-fork-go", run), {"at": at})
    child = Run.objects.get(parent=run)
    assert made["Location"] == run_parts.address(child) and child.parent_seq == at
    execute.advance(child.key)
    child.refresh_from_db()
    assert child.state == State.SUCCEEDED
    assert f'forked from <a href="{run_parts.address(run)}"' in body(client.get(url("spak-run", child)))
    whole = body(client.get(url("spak-run-fork", run), {"at": run.count}))
    assert "Nothing: everything the parent did is reused" in whole
    for wrong in ({"at": 0}, {"at": 999}, {"task": "Nowhere"}):
        assert client.get(url("spak-run-fork", run), wrong).status_code == 404
    assert client.post(url("spak-run-fork-go", run), {"at": at, "mode": "x"}).status_code == 400


def test_checking_replays_and_verifies(cast: Any, ran: Ran) -> None:
    run, client = ran(), cast.client("vera")
    assert "Replay and verify" in body(client.get(url("spak-run", run)))
    part = body(client.post(url("spak-run-check", run), headers={"HX-Request": "true"}))
    assert "chain whole, replay equal" in part and run.summary["summary_hash"][:10] in part
    assert "chain whole" in body(client.get(url("spak-run", run)))


def test_checking_finds_a_broken_chain(cast: Any, ran: Ran) -> None:
    from django.db import connection

    from spakweb.ground.database import appendonly

    run = ran()
    row = run.records.get(seq=2)
    appendonly.remove(connection)
    with connection.cursor() as cursor:
        line = bytes(row.line).replace(b'"allow":true', b'"allow":"ask"')
        cursor.execute("UPDATE runs_runrecord SET line = %s WHERE id = %s", [line, row.pk])
    appendonly.install(connection)
    vera = cast.client("vera")
    part = body(vera.post(url("spak-run-check", run), headers={"HX-Request": "true"}))
    assert "chain whole" not in part and "is not whole" in part
    for what in ("spak-run-export", "spak-run-report"):
        answer = vera.get(url(what, run), headers={"Accept": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (409, "web.run_damaged")


def test_the_events_are_offered_beside_the_ledger(cast: Any, ran: Ran) -> None:
    run, vera = ran(), cast.client("vera")
    page = body(vera.get(url("spak-run", run)))
    where = url("spak-run-export", run)
    assert page.index(f"{where}?as=events") < page.index(f'{where}"')
    answer = vera.get(where, {"as": "events"})
    assert answer["Content-Disposition"] == f'attachment; filename="{run.key}.events.jsonl"'
    lines = [json.loads(line) for line in answer.content.splitlines()]
    assert [line["type"] for line in lines][-1] == "end" and len(lines) > 1
    told = vera.get(where, {"as": "steps"})
    assert told["Content-Disposition"] == f'attachment; filename="{run.key}.steps.jsonl"'
    assert [set(json.loads(line)) >= {"state", "reward"} for line in told.content.splitlines()]
    wrong = vera.get(where, {"as": "trace"}, headers={"Accept": "application/json"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "web.filter")
    empty = vera.get(url("spak-run-export", ran(advance=False)), {"as": "events"})
    assert empty.status_code == 409


def test_a_pack_is_signed_and_comes_back(cast: Any, ran: Ran) -> None:
    run, vera = ran(), cast.client("vera")
    assert "?as=pack" in body(vera.get(url("spak-run", run)))
    answer = vera.get(url("spak-run-export", run), {"as": "pack"})
    assert answer["Content-Disposition"] == f'attachment; filename="{run.key}.pack.jsonl"'
    lines = answer.content.splitlines(keepends=True)
    approvers = json.loads(lines[1])["body"]["rules"]["keys"]
    public = next(key["public"] for key in approvers if key["name"] == "platform")
    found = verify_pack(lines, Keys(public))
    assert (found.problems, found.notes, found.replayed) == ((), (), True)
    assert found.to_json()["summary_hash"] == run.summary["summary_hash"]
    assert import_(io.BytesIO(answer.content), MemoryLedgers()) == run.key


def test_a_pack_has_the_proof_that_the_last_checkpoint_has_the_run(
    cast: Any, ran: Ran, settings: Any
) -> None:
    settings.CHECKPOINTS = Checkpoints(log="example.com/spak")
    run = ran()
    key = verifier(checkpoints.write(cast.team).key)
    answer = cast.client("vera").get(url("spak-run-export", run), {"as": "pack"})
    lines = answer.content.splitlines(keepends=True)
    assert verify_pack(lines, Keys(log=key)).problems == ()
    later = cast.client("vera").get(url("spak-run-export", ran()), {"as": "pack"})
    without = verify_pack(later.content.splitlines(keepends=True), Keys(log=key))
    assert [problem.code for problem in without.problems] == ["proof"]


def test_a_run_that_has_not_ended_has_no_pack(cast: Any, ran: Ran) -> None:
    run = ran(ASKING, mode="stepwise")
    page = body(cast.client("vera").get(url("spak-run", run)))
    assert "?as=pack" not in page
    asked = {"path": url("spak-run-export", run), "headers": {"Accept": "application/json"}}
    answer = cast.client("vera").get(**asked, data={"as": "pack"})
    assert (answer.status_code, answer.json()["code"]) == (409, "usage.not_ended")


def test_the_export_replays_and_comes_back(cast: Any, ran: Ran) -> None:
    run = ran()
    answer = cast.client("vera").get(url("spak-run-export", run))
    data = answer.content
    assert answer["Content-Disposition"] == f'attachment; filename="{run.key}.jsonl"'
    assert answer["X-Content-Type-Options"] == "nosniff" and "sandbox" in answer["Content-Security-Policy"]
    lines = data.splitlines(keepends=True)
    assert verify(lines, exported=True).ok
    found = replay(decode(line) for line in lines if line.startswith(b'{"#"'))
    assert found.difference is None and found.state.summary == run.summary["summary_hash"]
    bring = reverse("spak-run-import", args=[cast.team.slug])
    again = cast.client("bob").post(bring, {"file": SimpleUploadedFile("r.jsonl", data)})
    assert again["Location"] == run_parts.address(run)
    theirs = reverse("spak-run-import", args=[cast.other_team.slug])
    for sent in (data, data):  # that the id exists elsewhere is not told, and a second time changes nothing
        answer = cast.client("charlie").post(theirs, {"file": SimpleUploadedFile("r.jsonl", sent)})
        assert answer.status_code == 302
    there = Run.objects.get(team=cast.other_team)
    assert there.key != run.key and there.head == run.head
    assert cast.client("charlie").get(run_parts.address(there)).status_code == 200
    spoiled = data.replace(b"Hello", b"Jello", 1)
    refused = cast.client("bob").post(bring, {"file": SimpleUploadedFile("r.jsonl", spoiled)})
    assert refused.status_code == 400 and "web.run_import" in body(refused)
    assert cast.client("bob").post(bring).status_code == 400


def test_a_run_of_the_command_line_is_shown(cast: Any, ground: None, tmp_path: Any) -> None:
    from spak.ledger.export import export
    from spak.ledger.memory import MemoryLedgers
    from spak.records import Record

    genesis = Record("genesis", "proposal", {"host": {"run": "cli-1", "spec": "x.spak"}, "rules": {}, "v": 1})
    ledger = MemoryLedgers().create("cli-1", genesis)
    with (tmp_path / "f.jsonl").open("wb") as file:
        export(ledger, file)
    client = cast.client("bob")
    upload = SimpleUploadedFile("f.jsonl", (tmp_path / "f.jsonl").read_bytes())
    made = client.post(reverse("spak-run-import", args=[cast.team.slug]), {"file": upload})
    assert made.status_code == 302
    run = Run.objects.get(key__startswith="cli-1-")
    assert run.name == "x" and run.reason  # its rules are none: it is shown, and says so
    for tab in run_parts.TABS:
        assert client.get(url("spak-run", run), {"tab": tab}).status_code == 200
    assert client.post(url("spak-run-check", run), headers={"HX-Request": "true"}).status_code == 200


def test_a_pause_does_not_undo_a_cancel(cast: Any, ran: Ran) -> None:
    run, client = ran(ASKING, mode="stepwise"), cast.client("bob")
    for word in ("cancel", "pause", "resume"):
        client.post(url("spak-run-control", run), {"do": word})
    run.refresh_from_db()
    assert run.wanted == "cancel"
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.wanted) == (State.CANCELLED, "")
