"""Imports that would go on under a law of the importer's choice: they are shown, and go nowhere."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from spak.ledger.export import export
from spak.ledger.memory import MemoryLedgers
from spak.records import Record, decode
from spak.workspace.store import Store
from spakweb.face.runs import run_parts
from spakweb.store.ledger import export as export_of_runs
from spakweb.store.ledger.export import as_jsonl
from spakweb.store.runs.models import Command, Run, RunRecord, State
from spakweb.work.teams import tokens
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute
from spakweb.work.worker.queue import due, pick
from spakweb.work.worker.tasks import sweep_up
from token_kit import program

pytestmark = pytest.mark.django_db(transaction=True)
Ran = Callable[..., Run]

WHO = {"id": "k", "name": "mallory", "public": "A" * 43, "roles": ["approver"]}


def weak(rules: Any, host: Any) -> None:
    rules["policy"]["constitution"] = {"any.mg": "permitted(A) :- tool(A)."}


def none(rules: Any, host: Any) -> None:
    del rules["policy"]


def keys(rules: Any, host: Any) -> None:
    rules["keys"] = [WHO]


def other_text(rules: Any, host: Any) -> None:
    rules["spec"] = rules["spec"].replace("hello.txt", "other.txt")


def loose_tool(rules: Any, host: Any) -> None:
    tool = next(iter(rules["catalog"]["tools"].values()))
    tool["schema"] = {"type": "object"}


def limits(rules: Any, host: Any) -> None:
    rules["limits"] = {"steps": 10**9}


def proposer(rules: Any, host: Any) -> None:
    rules["proposer"] = "model"


def more(rules: Any, host: Any) -> None:
    rules["free"] = True


def no_host(rules: Any, host: Any) -> None:
    host.pop("spec")
    rules["inputs"] = {"none": "such"}


def file_of(run: Run, change: Callable[[Any, Any], None] | None, key: str = "theirs-1") -> bytes:
    """An export with the run's first record alone, changed."""
    body = copy.deepcopy(dict(decode(bytes(RunRecord.objects.get(run=run, seq=0).line)).body))
    body["host"]["run"] = key
    if change:
        change(body["rules"], body["host"])
    out = io.BytesIO()
    export(MemoryLedgers().create(key, Record("genesis", "proposal", body, at=5)), out)
    return out.getvalue()


def brought(cast: Any, data: bytes, key: str = "theirs-1") -> Run:
    where = reverse("spak-run-import", args=[cast.team.slug])
    answer = cast.client("bob").post(where, {"file": SimpleUploadedFile("r.jsonl", data)})
    assert answer.status_code == 302, answer.content[:300]
    found: Run = Run.objects.select_related("team").get(key__startswith=f"{key}-")
    return found


def test_a_run_under_our_law_goes_on_and_not_without_its_files(
    cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = file_of(ran(), None)
    found = brought(cast, data)
    assert "the files that it works on" in found.only_shown and found.state == State.PAUSED
    monkeypatch.setattr(Store, "knows", lambda store, digest: True)
    other = brought(cast, file_of(Run.objects.exclude(version=None).get(), None, "theirs-2"), "theirs-2")
    assert (other.only_shown, other.state) == ("", State.QUEUED)


def test_each_team_that_imports_a_ledger_has_its_own(cast: Any, ran: Ran) -> None:
    """Neither is told of the other's: not by a refusal, not by a key, not where the contents differ."""
    run, third = ran(), create_team(cast["nobody"], "Further away")
    whole, begun = b"".join(as_jsonl(run)), file_of(run, None, run.key)
    answers: dict[int, str] = {}
    for who, team, data in (
        ("nobody", third, whole), ("charlie", cast.other_team, begun), ("charlie", cast.other_team, begun),
        ("nobody", third, whole), ("bob", cast.team, whole),
    ):  # fmt: skip
        where = reverse("spak-run-import", args=[team.slug])
        answer = cast.client(who).post(where, {"file": SimpleUploadedFile("r.jsonl", data)})
        assert answer.status_code == 302, answer.content[:300]
        assert answers.setdefault(team.pk, answer["Location"]) == answer["Location"], "another one each time"
    one, other = Run.objects.get(team=third), Run.objects.get(team=cast.other_team)
    assert Run.objects.get(team=cast.team) == run and len({run.key, one.key, other.key}) == 3
    assert (one.count, other.count) == (run.count, 1)
    for who, run_of_others, own in (("nobody", other, one), ("charlie", one, other)):
        browser = cast.client(who)
        assert browser.get(run_parts.address(run_of_others)).status_code == 404
        assert run_of_others.key not in browser.get(run_parts.address(own)).content.decode()


def test_programs_import_what_pages_import(cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    data = file_of(ran(), None)
    where = reverse("spak-api-import", args=[cast.team.slug])
    bob = program(tokens.make(cast["bob"], "ci", 7, cast.team, ["start"])[1])

    def imported(sent: bytes, client: Any = bob) -> Any:
        return client.post(where, sent, content_type="application/x-ndjson")

    for sent in (b"", b"no record", data[:-30], data.replace(b'"genesis"', b'"act"', 1)):
        refused = imported(sent)
        assert (refused.status_code, refused.json()["code"]) == (400, "web.run_import"), sent[:40]
    looks = program(tokens.make(cast["bob"], "ci", 7, cast.team, [])[1])
    some = program(tokens.make(cast["bob"], "ci", 7, cast.team, ["start"], [cast.spec.slug])[1])
    assert [imported(data, one).status_code for one in (looks, some)] == [403, 403]
    assert Run.objects.filter(labels=["imported"]).count() == 0
    made = imported(data)
    assert made.status_code == 201 and made.json()["key"].startswith("theirs-1-")
    found = Run.objects.get(key=made.json()["key"])
    assert "the files that it works on" in found.only_shown and made["Location"].endswith(f"/{found.key}/")
    assert imported(data).json()["key"] == found.key and brought(cast, data) == found
    monkeypatch.setattr(export_of_runs, "IMPORT_BYTES", 100)
    large = imported(data)
    assert (large.status_code, large.json()["code"]) == (413, "web.run_import")


def test_what_is_under_another_law_is_only_shown(cast: Any, ran: Ran) -> None:
    run, bob, rita = ran(), cast.client("bob"), cast.client("rita")
    for change in (weak, none, keys, other_text, loose_tool, limits, proposer, more, no_host):
        key = f"theirs-{change.__name__}"
        found = brought(cast, file_of(run, change, key), key)
        assert found.only_shown and found.state == State.PAUSED, change.__name__
        assert ("signed with other keys" in found.only_shown) == (change is keys)
        assert not Run.objects.filter(due(), pk=found.pk).exists()
        for who, name, sent in (
            (bob, "control", {"do": "resume"}), (bob, "control", {"do": "cancel"}), (bob, "fork-go", {}),
            (bob, "answer", {"of": "x", "text": "y"}), (rita, "decide", {"of": "x", "decision": "approve"}),
        ):  # fmt: skip
            answer = who.post(reverse(f"spak-run-{name}", args=[cast.team.slug, found.key]), sent)
            assert answer.status_code == 409, (change.__name__, name)
        Run.objects.filter(pk=found.pk).update(wanted="cancel")
        execute.advance(found.key)
        page = bob.get(run_parts.address(found)).content.decode()
        assert (
            "does not continue on this platform" in page and ">Resume<" not in page and ">Fork<" not in page
        )
        assert Run.objects.get(pk=found.pk).count == found.count
    assert sweep_up(at_once=True) == 0 and pick("default") is None and not Command.objects.exists()


@pytest.mark.parametrize("parent", ["x", 5, [{"at": 1}]])
def test_a_first_record_that_no_page_can_read_is_refused(cast: Any, ran: Ran, parent: Any) -> None:
    data = file_of(ran(), lambda rules, host: host.update(parent=parent))
    where = reverse("spak-run-import", args=[cast.team.slug])
    answer = cast.client("bob").post(where, {"file": SimpleUploadedFile("r.jsonl", data)})
    assert answer.status_code == 400 and b"no run begins like this" in answer.content
    assert not Run.objects.filter(key__startswith="theirs-1").exists()


def test_records_that_do_not_follow_are_only_shown(cast: Any, ran: Ran) -> None:
    run, out = ran(), io.BytesIO()
    body = copy.deepcopy(dict(decode(bytes(RunRecord.objects.get(run=run, seq=0).line)).body))
    body["host"]["run"] = "theirs-2"
    ledger = MemoryLedgers().create("theirs-2", Record("genesis", "proposal", body, at=5))
    ledger.append([Record("permit", "commit", {"act": "tool", "name": "shell", "allow": True}, "Hello")])
    export(ledger, out)
    found = brought(cast, out.getvalue(), "theirs-2")
    assert "do not follow" in found.only_shown and found.state == State.PAUSED


def test_an_import_that_was_cut_off_is_taken_up_by_the_next(
    cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spakweb.store.ledger import export as exports

    data = file_of(ran(), None)
    with monkeypatch.context() as cut:
        cut.setattr(exports, "_known", lambda found: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            brought(cast, data)
    assert not Run.objects.filter(due(), key="theirs-1").exists()
    assert "files" in brought(cast, data).only_shown


def test_a_looser_sandbox_and_a_higher_mode_are_not_had_by_import_or_fork(cast: Any, ran: Ran) -> None:
    run = ran('AGENT One LEVEL 1 {\n START -> a\n TASK a { step s: tool.list_files { path: "." } }\n}\n')
    assert run.state == State.SUCCEEDED, run.summary
    strict = brought(cast, file_of(run, lambda rules, host: host.update(launcher="docker")))
    assert strict.sandbox == "docker"
    high = brought(cast, file_of(run, lambda r, host: host.update(mode="full_auto"), "high-1"), "high-1")
    assert "usage.mode" in high.only_shown
    sent = {"at": str(run.count), "mode": "full_auto"}
    answer = cast.client("bob").post(reverse("spak-run-fork-go", args=[cast.team.slug, run.key]), sent)
    assert answer.status_code == 400 and not Run.objects.filter(parent=run).exists()


def test_only_a_known_act_is_done_to_the_chosen(cast: Any, ran: Ran) -> None:
    run = ran(advance=False)
    where = reverse("spak-run-bulk", args=[cast.team.slug])
    for do in ("", "pause", "Cancel", "delete"):
        assert cast.client("bob").post(where, {"do": do, "run": run.key}).status_code == 400
    assert Run.objects.get().state == State.QUEUED
    assert cast.client("bob").post(where, {"do": "cancel", "run": run.key}).status_code == 302
    assert Run.objects.get().state == State.CANCELLED
