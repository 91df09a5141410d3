"""Suites, experiments, findings, campaigns, runners and the audit by the API."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client
from django.utils import timezone

from run_rows_kit import begun
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.store.campaigns.models import Campaign
from spakweb.store.fleet.models import Runner
from spakweb.store.runs.models import Run, State
from spakweb.store.suites.models import Case, Experiment, Suite
from spakweb.work.specs.actions import save_version, set_tag
from spakweb.work.teams import tokens
from spakweb.work.worker import queue

HERE = "/api/v1/teams/kernel-tuners/"
SUITE = HERE + "suites/nightly/"
OTHER = 'task A { step b: tool.run { cmd: "true" } }\n'


def program(user: Any, team: Any, *scopes: str) -> Client:
    return Client(headers={"authorization": f"Bearer {tokens.make(user, 'ci', 7, team, scopes)[1]}"})


def post(client: Client, address: str, body: Any = None, **headers: str) -> Any:
    text = json.dumps({} if body is None else body)
    return client.post(address, text, content_type="application/json", headers=headers)


@pytest.fixture
def ci(cast: Any, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    return program(cast["bob"], cast.team, "start")


@pytest.fixture
def suite(cast: Any) -> Suite:
    made = Suite.objects.create(team=cast.team, slug="nightly", name="Nightly", seed=1, made_by=cast["bob"])
    for name, split in (("one", "gate"), ("two", "train"), ("three", "sealed")):
        Case.objects.create(
            suite=made, name=name, content_hash=name, split=split, state="succeeded", made_by=cast["bob"]
        )
    return made


# ---- suites and experiments


def test_suites_and_their_cases(suite: Suite, ci: Client) -> None:
    found = ci.get(HERE + "suites/").json()["suites"]
    assert [(one["slug"], one["cases"], one["experiments"]) for one in found] == [
        ("nightly", {"train": 1, "gate": 1, "sealed": 1}, 0)
    ]
    assert [one["name"] for one in ci.get(SUITE + "cases/").json()["cases"]] == ["one", "three", "two"]
    gate = ci.get(SUITE + "cases/?split=gate&fields=name,state").json()["cases"]
    assert gate == [{"name": "one", "state": "succeeded"}]
    assert ci.get(SUITE + "cases/?kind=gate").json()["code"] == "web.filter"


def test_an_experiment_from_begin_to_report(cast: Any, suite: Suite, ci: Client) -> None:
    set_tag(cast["rita"], save_version(cast["bob"], cast.spec, OTHER, 1, "Less"), "gold")
    save_version(cast["bob"], cast.spec, OTHER.replace("true", "true 1"), 2, "More")
    body = {"versions": [{"spec": "small", "tag": "gold"}, {"spec": "small"}], "times": 2}
    one, two = (post(ci, SUITE + "experiments/", body, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert one.status_code == 201, one.json()
    assert one.json() == two.json() and Experiment.objects.count() == 1
    found = one.json()
    assert (found["state"], found["runs"], found["open"], found["sealed"]) == ("running", 8, 8, 0)
    assert found["versions"] == ["small v2", "small v3"] and ci.get(one["Location"]).json() == found
    here = one["Location"].removeprefix("http://testserver")
    report = ci.get(here + "report.json").json()
    assert [row["missing"] and row["passed"] for row in report["specs"]] == [0, 0] and not report["ok"]
    suites = ElementTree.fromstring(ci.get(here + "junit.xml").content).findall("testsuite")
    assert [(row.get("name"), row.get("tests"), row.get("failures")) for row in suites] == [
        ("small v2", "4", "0"),
        ("small v3", "5", "1"),
    ]
    assert b"<html" in ci.get(here + "report.html").content
    stopped = ci.post(here + "stop/")
    assert (stopped.status_code, stopped.json()["state"]) == (202, "stopped")
    assert set(Run.objects.values_list("state", flat=True)) == {State.CANCELLED}
    rows = ci.get(SUITE + "experiments/").json()["experiments"]
    assert [(row["number"], row["stopped"], row["url"]) for row in rows] == [(1, True, one["Location"])]


def test_experiments_that_do_not_begin(cast: Any, suite: Suite, ci: Client) -> None:
    for body, status, code in (
        ({}, 422, "web.request"),
        ({"versions": []}, 400, "web.experiment"),
        ({"versions": [{"spec": "none"}]}, 404, "web.404"),
        ({"versions": [{"spec": "small", "version": 9}]}, 422, "web.run_version"),
        ({"versions": [{"spec": "small"}], "splits": ["all"]}, 400, "web.experiment"),
        ({"versions": [{"spec": "small"}], "times": 5000}, 400, "web.experiment"),
        ({"versions": [{"spec": "small"}], "times": "often"}, 422, "web.request"),
    ):
        answer = post(ci, SUITE + "experiments/", body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), body
    assert not Experiment.objects.exists() and not Run.objects.exists()


# ---- findings and campaigns


def test_findings_of_runs(cast: Any, ci: Client) -> None:
    address = HERE + "specs/small/findings/"
    nothing = ci.get(address).json()
    assert (nothing["version"], nothing["runs"], nothing["findings"]) == (None, [], [])
    run = begun(cast.team, cast.spec.head, "live-run")
    Run.objects.filter(pk=run.pk).update(state=State.FAILED, ended_at=timezone.now())
    found = ci.get(address).json()
    assert (found["version"], found["runs"], found["left_out"]) == (1, [], 1), "it has no step to read"
    assert ci.get(address + "?version=x").json()["code"] == "web.filter"


def test_a_campaign_from_begin_to_stop(cast: Any, suite: Suite, ci: Client) -> None:
    body = {"suite": "nightly", "candidates": 3, "runs": 20, "tokens": 1000}
    address = HERE + "specs/small/campaigns/"
    one, two = (post(ci, address, body, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert one.status_code == 201 and one.json() == two.json() and Campaign.objects.count() == 1
    found = one.json()
    assert (found["spec"], found["version"], found["suite"]) == ("small", 1, "nightly")
    assert (found["state"], found["records"]) == ("running", 1)
    here = one["Location"].removeprefix("http://testserver")
    assert ci.get(here).json() == found
    for word, state in (("pause", "paused"), ("resume", "running"), ("stop", "stopped"), ("stop", "stopped")):
        answer = ci.post(f"{here}{word}/")
        assert (answer.status_code, answer.json()["state"]) == (202, state)
    plan = json.loads(ci.get(here + "ledger.jsonl").content.splitlines()[0])["body"]
    assert (plan["candidates"], plan["runs"], plan["tokens"]) == (3, 20, 1000)
    listed = HERE + "campaigns/?fields=number&"
    assert ci.get(listed + "state=stopped&spec=small").json()["campaigns"] == [{"number": 1}]
    assert ci.get(listed + "state=running").json()["campaigns"] == []
    assert ci.get(listed + "state=odd").json()["code"] == "web.filter"


def test_campaigns_that_do_not_begin(cast: Any, suite: Suite, ci: Client) -> None:
    for body, status, code in (
        ({}, 422, "web.request"),
        ({"suite": "none"}, 400, "web.campaign_plan"),
        ({"suite": "nightly", "version": 9}, 422, "web.run_version"),
        ({"suite": "nightly", "proposer": "luck"}, 400, "web.campaign_plan"),
        ({"suite": "nightly", "candidates": 10**6}, 400, "web.campaign_plan"),
        ({"suite": "nightly", "candidates": 10**30}, 422, "web.request"),
        ({"suite": "nightly", "pairs": "many"}, 422, "web.request"),
    ):
        answer = post(ci, HERE + "specs/small/campaigns/", body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), body
    assert not Campaign.objects.exists()


# ---- runners and the audit


def test_runners_and_what_waits(cast: Any, ci: Client) -> None:
    Runner.objects.create(name="desk", queues=["default"], seen_at=clock.now(), slots=2)
    Run.objects.create(
        team=cast.team, version=cast.spec.head, key="mine", name="m", enqueued_at=timezone.now()
    )
    found = ci.get(HERE + "runners/").json()
    assert [(one["name"], one["alive"], one["slots"]) for one in found["runners"]] == [("desk", True, 2)]
    assert [(one["name"], one["depth"], one["runners"]) for one in found["queues"]] == [("default", 1, 1)]
    assert [one["run"] for one in found["waiting"]] == ["mine"] and "a runner is free" in found["waiting"][0][
        "why"
    ]
    assert ci.get(HERE + "runners/?team=other").json()["code"] == "web.filter"


def test_the_audit_is_read_by_pages(cast: Any, ci: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spakweb.face.api.reading.PAGE", 2)
    admin = program(cast["alice"], cast.team, "admin")
    admin.get(HERE + "audit/")
    wanted = list(Event.objects.filter(team=cast.team).order_by("-pk").values_list("pk", flat=True))
    seen, address = [], HERE + "audit/"
    while address:
        found = admin.get(address).json()
        seen += [one["id"] for one in found["events"]]
        address = found["next"]
    assert seen == wanted and len(seen) > 2
    saved = admin.get(HERE + "audit/?action=spec.created&q=alice").json()["events"]
    assert [(one["actor"], one["action"]) for one in saved] == [("alice", "spec.created")]
    assert admin.get(HERE + "audit/?since=2999-01-01").json()["events"] == []
    for query, code in (("since=soon", "web.date"), ("before=x", "web.filter"), ("page=2", "web.filter")):
        assert admin.get(f"{HERE}audit/?{query}").json()["code"] == code
    assert program(cast["alice"], cast.team, "start").get(HERE + "audit/").status_code == 403
