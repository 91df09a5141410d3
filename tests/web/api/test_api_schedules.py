"""Schedules by the API: what is added, changed, turned off, run at once and removed, and what is refused."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from spakweb.ground import rights
from spakweb.ground.audit.models import Event
from spakweb.store.runs.models import Run, State
from spakweb.store.schedules.models import Schedule
from spakweb.work.schedules import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams import tokens
from spakweb.work.worker import queue
from token_kit import program

pytestmark = pytest.mark.django_db
HERE = "/api/v1/teams/kernel-tuners/"
ADD = f"{HERE}specs/weather/schedules/"
NIGHTLY = {"name": "nightly", "cron": "0 3 * * *", "zone": "Europe/Berlin", "inputs": {"city": "Kiel"}}
WEATHER = """\
AGENT Weather {
  INPUTS { city: string }
  START -> write
  TASK write { step one: tool.write_file { path: "a" content: "{{city}}" } NEXT { success -> end } }
}
"""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)


@pytest.fixture
def bob(cast: Any) -> Client:
    create_spec(cast["bob"], cast.team, "weather", WEATHER)
    return program(tokens.make(cast["bob"], "ci", 7, cast.team, rights.SCOPES)[1])


def post(client: Client, url: str, body: Any = None, **headers: str) -> Any:
    return client.post(url, json.dumps(body or {}), content_type="application/json", headers=headers)


def test_a_schedule_from_its_beginning_to_its_end(cast: Any, bob: Client) -> None:
    made = post(bob, ADD, NIGHTLY, **{"idempotency-key": "one"})
    again = post(bob, ADD, NIGHTLY, **{"idempotency-key": "one"})
    assert (made.status_code, again.json(), Schedule.objects.count()) == (201, made.json(), 1)
    shown, url = made.json(), made.json()["url"]
    assert made["Location"] == url and bob.get(url).json() == shown
    assert (shown["spec"], shown["person"], shown["active"], shown["missed"]) == (
        "weather",
        "bob",
        True,
        "skip",
    )
    assert [one["id"] for one in bob.get(f"{HERE}schedules/?spec=weather").json()["schedules"]] == [
        shown["id"]
    ]
    assert bob.get(f"{HERE}schedules/?spec=small").json()["schedules"] == []

    changed = post(bob, f"{url}change/", {"cron": "30 4 * * 1", "inputs": {"city": "Bonn"}}).json()
    assert (changed["cron"], changed["zone"], changed["inputs"]) == (
        "30 4 * * 1",
        "Europe/Berlin",
        {"city": "Bonn"},
    )
    assert changed["next_at"] != shown["next_at"]

    begun = post(bob, f"{url}run/")
    assert begun.status_code == 201 and begun["Location"] == begun.json()["url"]
    run = Run.objects.get(key=begun.json()["key"])
    assert (run.inputs, run.labels, run.made_by) == ({"city": "Bonn"}, ["schedule nightly"], cast["bob"])
    assert bob.get(url).json()["last_run"] == run.key
    busy = post(bob, f"{url}run/")
    assert (busy.status_code, busy.json()["code"], Run.objects.count()) == (409, "web.schedule_busy", 1)
    Run.objects.update(state=State.SUCCEEDED, ended_at=timezone.now())
    assert post(bob, f"{url}run/").status_code == 201

    for _ in range(2):
        off = post(bob, f"{url}off/").json()
        assert (off["active"], off["next_at"]) == (False, None)
    assert post(bob, f"{url}on/").json()["active"] is True
    assert post(bob, f"{url}remove/").status_code == 204
    assert bob.get(url).status_code == 404 and Run.objects.count() == 2
    done = list(
        Event.objects.filter(action__startswith="schedule.").order_by("pk").values_list("action", flat=True)
    )
    assert done == [
        f"schedule.{word}" for word in ("made", "changed", "started", "started", "off", "on", "removed")
    ]


@pytest.mark.parametrize(
    ("body", "code"),
    [({**NIGHTLY, "cron": "every day"}, "web.schedule_cron"),
     ({**NIGHTLY, "zone": "Mars"}, "web.schedule_zone"),
     ({**NIGHTLY, "name": " "}, "web.request"), ({**NIGHTLY, "missed": "twice"}, "web.request"),
     ({**NIGHTLY, "inputs": {"town": "Kiel"}}, "web.run_input"),
     ({**NIGHTLY, "source": "none"}, "git.source_unknown"), ({**NIGHTLY, "spec": "x"}, "web.request"),
     ({**NIGHTLY, "inputs": {"city": "a\0b"}}, "web.request"), ({"name": "nightly"}, "web.request")],
    ids=["cron", "zone", "name", "missed", "unknown input", "source", "member", "nul", "no cron"],
)  # fmt: skip
def test_what_cannot_be_added_or_changed(bob: Client, body: Any, code: str) -> None:
    answer = post(bob, ADD, body)
    assert answer.status_code in (400, 404, 422) and answer.json()["code"] == code, answer.content
    assert not Schedule.objects.exists()
    url = post(bob, ADD, NIGHTLY).json()["url"]
    before = bob.get(url).json()
    change = {name: value for name, value in body.items() if name != "name"}
    if change != {} and body.get("name") == "nightly":
        assert post(bob, f"{url}change/", change).json()["code"] == code
    assert bob.get(url).json() == before


def test_whoever_changes_it_is_the_person_of_its_runs(cast: Any, bob: Client) -> None:
    """Nobody lends another's rights by a change."""
    url = post(bob, ADD, NIGHTLY).json()["url"]
    alice = program(tokens.make(cast["alice"], "ci", 7, cast.team, ["admin", "start"])[1])
    assert post(alice, f"{url}change/", {"missed": "once"}).json()["person"] == "alice"
    with pytest.MonkeyPatch.context() as patch:
        due = Schedule.objects.select_related("spec__team", "person").get()
        patch.setattr("spakweb.ground.clock.now", lambda: due.next_at + timedelta(seconds=1))
        run = actions.fire(due)
    assert run is not None and run.made_by == cast["alice"]


def test_the_page_begins_one_too(cast: Any, bob: Client) -> None:
    made = post(bob, ADD, NIGHTLY).json()
    page = cast.client("bob")
    assert b"Run now" in page.get("/t/kernel-tuners/schedules/").content
    answer = page.post(f"/t/kernel-tuners/schedules/{made['id']}/do/", {"do": "run"})
    assert answer.status_code == 302 and answer["Location"].endswith(f"/runs/{Run.objects.get().key}/")
