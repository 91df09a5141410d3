"""Reports of guarded sessions as a program sends them: tampered, out of order, of others; and their pages."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from spak import canon
from spak.client.reports import Report, Sent
from spak.config import catalog
from spak.files.disk import Disk
from spak.lang import parse
from spak.lang.check import check
from spak.workspace.store import Store
from spakweb.ground import clock
from spakweb.store.ledger.projection import rebuild
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, State
from spakweb.store.specs.models import Spec
from spakweb.work.runs import guarded
from spakweb.work.teams import tokens
from spakweb.work.worker import execute
from spakweb.work.worker.queue import due, pick
from spakweb.work.worker.tasks import sweep_up
from token_kit import program

pytestmark = [pytest.mark.sandbox, pytest.mark.django_db(transaction=True)]

KIND = "application/x-ndjson"


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "trace.jsonl").read_bytes().splitlines(keepends=True)


class Guard:
    """A program of a member that reports the session of a folder."""

    def __init__(self, cast: Any, who: str, name: str, scopes: tuple[str, ...] = ("start",)) -> None:
        self.client = program(tokens.make(cast[who], "guard", 7, cast.team, list(scopes))[1])
        self.where = reverse("spak-api-guarded", args=[cast.team.slug]) + f"?session={name}"

    def sends(self, *lines: bytes) -> Any:
        return self.client.post(self.where, b"".join(lines), content_type=KIND)


@pytest.fixture
def bob(ground: None, cast: Any, recorded: Path) -> Guard:
    return Guard(cast, "bob", recorded.name)


def test_what_was_changed_left_out_or_reordered_is_refused_and_nothing_of_it_kept(
    bob: Guard, recorded: Path
) -> None:
    lines = lines_of(recorded)
    assert bob.sends(*lines[1:4]).json()["code"] == "web.guarded_records", "no first record"
    assert not Run.objects.exists()
    assert bob.sends(*lines[:10]).json()["records"] == 10
    forged = lines[12].replace(b'"signal":"success"', b'"signal":"failing"')
    assert forged != lines[12]
    for wrong in (
        (lines[11],),
        (lines[10], lines[12]),
        (lines[11], lines[10]),
        (lines[10], lines[11], forged),
        (lines[9].replace(b"session", b"sessions"),),
        (lines[0].replace(b"guest", b"other"), *lines[1:10]),
    ):
        answer = bob.sends(*wrong)
        assert (answer.status_code, answer.json()["code"]) == (409, "web.guarded_records"), wrong
    for odd in (
        b"{}\n",
        b'{"blob":"x","data":"eA=="}\n',
        b"[1]\n",
        b'{"done":"x","outcome":""}\n',
        b"\xff\n",
    ):
        assert bob.sends(odd).json()["code"] == "web.guarded_report", odd
    run = Run.objects.get()
    assert (run.count, run.records.count()) == (10, 10)
    assert bob.sends(*lines[5:20]).json()["records"] == 20, "what is here already is left"
    assert bob.sends(*lines[5:20]).json()["records"] == 20
    assert bob.sends(*lines[20:]).json()["records"] == len(lines)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED


def test_a_session_is_of_who_sends_it(cast: Any, bob: Guard, recorded: Path) -> None:
    lines = lines_of(recorded)
    assert bob.sends(*lines[:10]).status_code == 200
    alice = Guard(cast, "alice", recorded.name)
    assert alice.sends(*lines[10:]).status_code == 409, "hers has not begun"
    assert alice.sends(*lines).json()["html_url"] != bob.sends().json()["html_url"]
    assert Guard(cast, "vera", recorded.name).sends(*lines).status_code == 403
    assert Guard(cast, "bob", recorded.name, ()).sends(*lines).status_code == 403
    assert Guard(cast, "bob", "another-id").sends(*lines).json()["code"] == "web.guarded_report"
    assert Guard(cast, "bob", "../x").sends(*lines).json()["code"] == "web.guarded_records"
    counts = {run.made_by.username: run.count for run in Run.objects.select_related("made_by")}
    assert counts == {"bob": 10, "alice": len(lines)}
    law = reverse("spak-api-law", args=[cast.team.slug])
    assert cast.client("vera").get(law).status_code == 200
    assert cast.client("charlie").get(law).status_code == 404


def test_no_worker_touches_it_and_one_that_is_silent_does_not_run_for_ever(
    cast: Any, bob: Guard, recorded: Path
) -> None:
    bob.sends(*lines_of(recorded)[:10])
    run = Run.objects.get()
    assert not Run.objects.filter(due()).exists() and pick("default", run.key) is None
    execute.advance(run.key)
    sweep_up()
    client, page = cast.client("bob"), reverse("spak-run", args=[cast.team.slug, run.key])
    for do in ("cancel", "pause", "resume"):
        client.post(reverse("spak-run-control", args=[cast.team.slug, run.key]), {"do": do})
    fork = client.post(reverse("spak-run-fork-go", args=[cast.team.slug, run.key]), {"at": "1"})
    assert fork.status_code == 409
    run.refresh_from_db()
    assert (run.state, run.count, run.wanted, run.holder) == (State.RUNNING, 10, "", "")
    assert "is at work on the machine of bob" in client.get(page).content.decode()
    listed = reverse("spak-run-list", args=[cast.team.slug])
    assert run.key in client.get(f"{listed}?state=running&guarded=1").content.decode()
    Run.objects.update(heard_at=clock.now() - timedelta(minutes=5))
    shown = client.get(page).content.decode()
    assert "Not heard of since" in shown and "at work" not in shown
    assert run.key not in client.get(f"{listed}?state=running").content.decode()
    assert run.key in client.get(f"{listed}?state=paused&guarded=1").content.decode()
    assert run.key not in client.get(f"{listed}?guarded=0").content.decode()
    found = client.get(reverse("spak-api-run", args=[cast.team.slug, run.key])).json()
    assert (found["state"], found["agent"]) == ("paused", run.agent)
    bob.sends()
    assert "is at work" in client.get(page).content.decode(), "its guard is heard of again"


def test_the_page_has_the_conversation_the_verdicts_and_what_changed(
    cast: Any, bob: Guard, recorded: Path
) -> None:
    store = Store(recorded / "store", Disk())
    store.look()
    report = Report(recorded, Sent(), store.read, lambda text: "abcdef123456secretvalue" in text)
    assert not report.fill()
    body = report.body({})
    assert b64encode(b"API_TOKEN=abcdef123456secretvalue\n") not in body
    assert bob.client.post(bob.where, body, content_type=KIND).status_code == 200
    run = Run.objects.get()
    shown = cast.client("vera").get(reverse("spak-run", args=[cast.team.slug, run.key])).content.decode()
    for text in (
        "mend the cart", "sed -i &#x27;s/", "taken back", "operator/law.mg:1 forbids it", "cart.py: changed",
        "return sum(prices)", "notes: new file", "Its contents are not here", "contained", "proposed", "kept",
        "440", f"spak apply {recorded.name}",
    ):  # fmt: skip
        assert text in shown, text
    before = (run.state, run.summary, run.task)
    rebuild(run, DatabaseLedgers().reader(run.key).read())
    run.refresh_from_db()
    assert (run.state, run.summary, run.task) == before
    made = cast.client("bob").post(reverse("spak-run-spec", args=[cast.team.slug, run.key]))
    spec = Spec.objects.get(name__contains=recorded.name)
    assert made.status_code == 302 and spec.slug in made["Location"]
    text = spec.head.text
    assert "tool.apply_patch" in text and "// notes: changed too" in text and "secretvalue" not in text
    assert not check(parse(text), catalog())


def test_what_was_deleted_stays_deleted(cast: Any, bob: Guard, recorded: Path) -> None:
    lines = lines_of(recorded)
    bob.sends(*lines)
    run = Run.objects.get()
    assert cast.client("alice").post(
        reverse("spak-run-delete", args=[cast.team.slug, run.key])
    ).status_code in (200, 302)
    assert bob.sends(*lines).json()["code"] == "web.run_deleted"


def test_a_report_may_have_what_was_done_of_others_only_for_its_own(
    cast: Any, bob: Guard, recorded: Path
) -> None:
    lines = lines_of(recorded)[:20]
    bob.sends(*lines)
    run = Run.objects.select_related("team").get()
    turn = next(json.loads(line)["seq"] for line in lines if b'"kind":"act"' in line and b'"r3"' in line)
    asked = guarded.take_back(cast["bob"], run, str(turn))
    done = canon.dumps({"done": asked.pk, "outcome": "it\0 was\u202e not"}) + b"\n"
    Guard(cast, "alice", recorded.name).sends(*lines, done)
    (told,) = bob.sends().json()["asked"]
    assert (told["id"], told["kind"], told["body"]) == (asked.pk, "take_back", {"seq": turn})
    assert bob.sends(done).json()["asked"] == []
    asked.refresh_from_db()
    assert asked.done_at is not None and asked.outcome.startswith("it")
