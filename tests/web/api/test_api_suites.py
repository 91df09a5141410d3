"""Suites by the API: created, renamed, removed, brought; runs kept as cases; experiments with a budget."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from run_rows_kit import begun
from spakweb.ground import rights
from spakweb.ground.audit.models import Event
from spakweb.store.runs.models import Run, State
from spakweb.store.suites.models import Case, Experiment, Suite
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams import tokens
from spakweb.work.worker import queue
from token_kit import program

pytestmark = pytest.mark.django_db
AUTO = """\
AGENT Auto LEVEL 4 {
  START -> write
  TASK write { step one: tool.write_file { path: "a.txt" content: "good" } NEXT { success -> end } }
}
"""
HERE = "/api/v1/teams/kernel-tuners/suites/"


@pytest.fixture
def bob(cast: Any, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    return program(tokens.make(cast["bob"], "ci", 7, cast.team, rights.SCOPES)[1])


def post(client: Client, url: str, body: Any = None, **headers: str) -> Any:
    return client.post(url, json.dumps(body or {}), content_type="application/json", headers=headers)


def test_a_suite_with_a_case_and_an_experiment(cast: Any, bob: Client) -> None:
    made = post(bob, HERE, {"name": "Each Night"}, **{"idempotency-key": "a"})
    assert (made.status_code, made.json()["slug"]) == (201, "each-night")
    assert made.json() == bob.get(f"{HERE}each-night/").json()
    assert post(bob, f"{HERE}each-night/rename/", {"name": "Nights"}).json()["name"] == "Nights"
    assert Suite.objects.get().slug == "each-night"

    run = begun(cast.team, cast.spec.head, "ended", state=State.SUCCEEDED)
    waits = begun(cast.team, cast.spec.head, "waits")
    for key, code in ((waits.key, "web.case"), ("none", "web.404")):
        answer = post(bob, f"{HERE}each-night/cases/", {"run": key})
        assert answer.json()["code"] == code and not Case.objects.exists()
    kept = post(bob, f"{HERE}each-night/cases/", {"run": run.key, "name": "first"})
    assert kept.status_code == 201
    assert (kept.json()["origin"], kept.json()["state"]) == (run.key, "succeeded")
    twice = post(bob, f"{HERE}each-night/cases/", {"run": run.key, "name": "second"})
    assert (twice.status_code, twice.json()["code"]) == (409, "web.case")

    create_spec(cast["bob"], cast.team, "auto", AUTO)
    body = {
        "versions": [{"spec": "auto"}],
        "splits": [kept.json()["split"]],
        "most_runs": 3,
        "most_nanousd": 7,
    }
    begun_now = post(bob, f"{HERE}each-night/experiments/", body)
    assert begun_now.status_code == 201, begun_now.content
    plan = Experiment.objects.get().plan
    assert (plan["budget"]["runs"], plan["budget"]["cost_nanousd"]) == (3, 7)
    for wrong in ({"most_runs": -1}, {"most_tokens": "many"}, {"most_seconds": 10**18}):
        assert post(bob, f"{HERE}each-night/experiments/", {**body, **wrong}).status_code == 422
    used = post(bob, f"{HERE}each-night/remove/")
    assert (used.status_code, used.json()["code"]) == (409, "web.suite_used") and Suite.objects.exists()
    runs = Run.objects.filter(labels=["experiment each-night 1"])
    assert runs.update(state=State.SUCCEEDED) == 1
    page = bob.get(f"{HERE}each-night/experiments/1/report.html").content.decode()
    assert f'<a href="http://testserver/t/kernel-tuners/runs/{runs.get().key}/">' in page


def test_an_empty_suite_is_removed(cast: Any, bob: Client) -> None:
    post(bob, HERE, {"name": "nightly"})
    assert post(bob, HERE, {"name": "nightly"}).json()["code"] == "web.suite_name"
    assert post(bob, f"{HERE}nightly/rename/", {"name": "..."}).json()["code"] == "web.suite_name"
    assert post(bob, f"{HERE}nightly/remove/").status_code == 204 and not Suite.objects.exists()
    done = Event.objects.filter(action__startswith="suite.").order_by("pk").values_list("action", flat=True)
    assert list(done) == ["suite.made", "suite.removed"]
    page = cast.client("bob")
    page.post("/t/kernel-tuners/suites/new/", {"name": "weekly"})
    page.post("/t/kernel-tuners/suites/weekly/change/", {"name": "Weekly runs"})
    assert b"Weekly runs" in page.get("/t/kernel-tuners/suites/weekly/").content
    page.post("/t/kernel-tuners/suites/weekly/change/", {"do": "remove"})
    assert not Suite.objects.exists()


@pytest.mark.parametrize("sent", [b"", b"no zip", b"PK\5\6" + bytes(18)], ids=["empty", "text", "no case"])
def test_a_zip_that_is_no_suite(bob: Client, sent: bytes) -> None:
    answer = bob.post(f"{HERE}bring/?name=x", sent, content_type="application/zip")
    assert answer.status_code == 400 and answer.json()["code"].startswith(("upload.", "suite.", "web.suite"))
    assert not Suite.objects.exists()
