"""Runs of an earlier kernel on the platform: their pages show them, nobody goes on with them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from spak import canon
from spak.ledger.chain import is_record_line
from spak.program.semantics import REPLAYS_EARLIER
from spak.records import Record, decode, place
from spakweb.face.runs import run_parts
from spakweb.ground.errors import Refused
from spakweb.store.ledger import salvage
from spakweb.store.ledger.export import checked
from spakweb.store.runs.models import Run, State
from spakweb.work.runs.actions import ask, fork
from spakweb.work.sources import leaving
from spakweb.work.suites import report
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)
EARLIER = Path(__file__).parents[2] / "earlier"
Brought = Callable[[str], Run]
TABS = ("", "records", "registers", "candidates", "files", "timeline", "log", "spec")


def ended(waiting: bytes) -> bytes:
    """The same run with an end."""
    lines = waiting.splitlines(keepends=True)
    last = decode([line for line in lines if is_record_line(line)][-1])
    body = {"state": "succeeded", "r3": last.hash}
    end = Record("end", "commit", body, last.task, last.step, 2, at=last.at)
    _, line = place(end, last.seq + 1, last.hash)
    footer = {**json.loads(lines[-1]), "count": last.seq + 2, "head": decode(line).hash}
    return b"".join([*lines[: last.seq + 1], line, *lines[last.seq + 1 : -1], canon.dumps(footer), b"\n"])


@pytest.fixture
def brought(ground: None, cast: Any) -> Brought:
    def make(name: str) -> Run:
        data = (EARLIER / "waiting.jsonl").read_bytes()
        data = ended(data) if name == "ended" else data
        where = reverse("spak-run-import", args=[cast.team.slug])
        answer = cast.client("bob").post(where, {"file": SimpleUploadedFile("r.jsonl", data)})
        assert answer.status_code == 302, answer.content[:300]
        return Run.objects.select_related("team").get(key=answer["Location"].rstrip("/").rpartition("/")[2])

    return make


def of_here(run: Run, **fields: Any) -> Run:
    """The run as if it had been made on this platform, by its version before this one."""
    Run.objects.filter(pk=run.pk).update(only_shown="", reason="", **fields)
    run.refresh_from_db()
    return run


@pytest.mark.parametrize(("name", "state"), [("ended", "succeeded"), ("waiting", "cancelled")])
def test_its_pages_show_it_as_it_was_recorded(cast: Any, brought: Brought, name: str, state: str) -> None:
    run, bob = brought(name), cast.client("bob")
    assert run.state == state and run.only_shown.startswith("ledger.semantics: an earlier kernel made it")
    page = run_parts.address(run)
    for tab in TABS:
        assert bob.get(f"{page}?tab={tab}").status_code == 200, tab
    for seq in range(run.count):
        where = [cast.team.slug, run.key, seq]
        assert bob.get(reverse("spak-run-record", args=where)).status_code == 200, seq
        assert bob.get(reverse("spak-run-prompt", args=where)).status_code == 200, seq
    for what in ("run-export", "run-log", "run-head", "run-fork", "api-files", "api-live"):
        where = [cast.team.slug, run.key]
        assert bob.get(reverse(f"spak-{what}", args=where)).status_code in (200, 409), what
    told = bob.get(reverse("spak-run-report", args=[cast.team.slug, run.key])).content.decode()
    assert "an earlier kernel made it" in told and "DIFFERENT" not in told
    found = checked(run)
    assert (found["ok"], found["equal"]) == (True, False) and found["unreplayed"] in found["problems"]
    check = reverse("spak-run-check", args=[cast.team.slug, run.key])
    assert "not replayed" in bob.post(check, headers={"HX-Request": "true"}).content.decode()
    assert salvage.Compared(run).removed() == ""


@pytest.mark.parametrize("state", [State.WAITING, State.PAUSED, State.QUEUED, State.RUNNING])
def test_one_that_has_not_ended_ends_with_that_cause(cast: Any, brought: Brought, state: State) -> None:
    """By a worker that gets it, and by the upgrade, which finds those that nobody asks anything of."""
    run = of_here(
        brought("waiting"), state=state, ended_at=None, summary={"waiting": {"id": "x"}, "steps": 1}
    )
    assert execute.advance(run.key) is False
    after = Run.objects.get(pk=run.pk)
    assert (after.state, after.count, after.holder) == (State.CANCELLED, run.count, "")
    assert after.reason.startswith("ledger.semantics: ") and after.summary == {"steps": 1}
    of_here(run, state=state, ended_at=None, summary={"waiting": {"id": "x"}})
    importlib.import_module("spakweb.store.runs.migrations.0020_earlier_kernels").end(apps, None)
    after.refresh_from_db()
    assert (after.state, after.summary) == (State.CANCELLED, {}) and after.ended_at is not None
    assert after.reason.startswith("ledger.semantics: ")
    call_command("rebuild", run.key)
    after.refresh_from_db()
    assert (after.state, after.reason) == (State.CANCELLED, "ledger.semantics")


def test_the_upgrade_leaves_runs_of_this_kernel(cast: Any, ran: Callable[..., Run]) -> None:
    run = ran('task T { step s: llm.query { prompt: "A word?" } }')
    assert run.state == State.WAITING
    importlib.import_module("spakweb.store.runs.migrations.0020_earlier_kernels").end(apps, None)
    assert Run.objects.get(pk=run.pk).state == State.WAITING


def test_what_needs_a_replay_is_refused(cast: Any, brought: Brought) -> None:
    run = of_here(brought("ended"))
    with pytest.raises(Refused) as why:
        fork(cast["bob"], run, 2)
    assert (why.value.code, why.value.status) == ("ledger.semantics", 409)
    assert f"commit {REPLAYS_EARLIER}" in why.value.hint
    assert Run.objects.count() == 1
    with pytest.raises(Refused) as why:
        leaving.by_law(run)
    assert why.value.code == "ledger.semantics"
    with pytest.raises(Refused) as why:
        ask(cast["bob"], run, "answer", "x", text="y")
    assert why.value.code == "web.run_ended"
    assert cast.client("bob").get(run_parts.address(run)).status_code == 200


def test_it_says_nothing_about_a_case(cast: Any, brought: Brought) -> None:
    """A trial that an upgrade broke off has no result; its place may be filled again."""
    run = of_here(brought("waiting"), state=State.WAITING, trial="experiment")
    execute.advance(run.key)
    run.refresh_from_db()
    assert report._void(None, run).startswith("ledger.semantics: ")  # type: ignore[arg-type]
