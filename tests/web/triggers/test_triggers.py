"""Triggers, by signed requests: which messages begin a run, with which inputs, and which begin none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse

from signed_kit import FORMS, github, post, push, standard
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Membership
from spakweb.store.api.models import KeptAnswer
from spakweb.store.incoming.models import Received, Receiver
from spakweb.store.runs.models import Run, State
from spakweb.store.sources.models import RunSource
from spakweb.store.specs.models import Spec
from spakweb.store.triggers.models import Trigger
from spakweb.work.incoming import actions as incoming
from spakweb.work.sources import actions as sources
from spakweb.work.specs.actions import archive, create_spec, save_version, set_tag
from spakweb.work.teams import tokens
from spakweb.work.triggers import actions

HERE = "/t/kernel-tuners/triggers/"
TEXT = """\
AGENT Weather LEVEL 2 {
  INPUTS {
    city: string
    days: int = 3
    ratio: float = 0.5
    deep: bool = false
    kind: enum("fast", "slow") = "fast"
  }
  START -> write
  TASK write {
    step one: tool.write_file { path: "a" content: "{{input.city}}" }
  }
}
"""
MAPPING = {"city": "/data/city", "days": "/data/days", "ratio": "/r", "deep": "/flags/0", "kind": "/kind"}


@pytest.fixture
def weather(cast: Any) -> Spec:
    return create_spec(cast["alice"], cast.team, "weather", TEXT)


Send = Callable[..., Any]


@pytest.fixture
def send(cast: Any, weather: Spec) -> Send:
    """`send(body, **about)`: makes a trigger of bob's the first time, and sends it a message."""
    secrets: dict[int, str] = {}

    def make(body: bytes, form: str = "github", sends: str = "push", message: str = "", **about: Any) -> Any:
        trigger = Trigger.objects.select_related("receiver").first()
        if trigger is None:
            given = {"mapping": MAPPING, **about}
            trigger, secret = actions.add(cast["bob"], weather, "deploy", **given)
            secrets[trigger.receiver.pk] = secret
        address = reverse("spak-hook-receive", args=[trigger.receiver.key])
        headers = FORMS[form](secrets[trigger.receiver.pk], body, sends, message)
        return post(address, body, headers)

    return make


def body(**more: Any) -> bytes:
    return json.dumps({"data": {"city": "Ulm"}, **more}).encode()


def end() -> None:
    Run.objects.update(state=State.SUCCEEDED, ended_at=clock.now())


# ---- what is begun


@pytest.mark.parametrize("form", FORMS)
def test_a_message_begins_one_run_with_inputs_from_it(
    cast: Any, weather: Spec, send: Send, form: str
) -> None:
    given = body(ref="refs/heads/main", kind="slow", r=2, flags=[True], unknown={"x": None})
    answer = send(given, form, message="one")
    assert answer.status_code == 200, answer.content
    run = Run.objects.get()
    assert answer.json() == {"state": "done", "reason": f"Started run {run.key}.", "run": run.key}
    assert run.inputs == {"city": "Ulm", "ratio": "2", "deep": "true", "kind": "slow"}
    assert (run.made_by, run.version, run.labels) == (cast["bob"], weather.head, ["trigger deploy"])
    end()
    again = send(given, form, message="one")
    assert (again.status_code, again.json()["state"], again.json()["run"]) == (200, "repeated", run.key)
    assert Run.objects.count() == 1
    assert Trigger.objects.get().last_run == run
    assert Event.objects.filter(action="trigger.started", detail__run=run.key).count() == 1


def test_no_run_beside_one_that_has_not_ended(send: Send) -> None:
    send(body(n=1))
    answer = send(body(n=2), message="later")
    assert (answer.status_code, answer.json()["state"], answer.json()["run"]) == (200, "held", None)
    assert "has not ended" in answer.json()["reason"] and Run.objects.count() == 1
    told = Event.objects.filter(action__startswith="trigger.").order_by("pk")
    assert list(told.values_list("action", flat=True)) == ["trigger.made", "trigger.started"]
    end()
    assert send(body(n=2), message="later").json()["state"] == "done"  # what began nothing may come again


@pytest.mark.parametrize(
    ("about", "event", "sent", "state"),
    [
        ({"event": "push"}, "push", {}, "done"),
        ({"event": "push"}, "issues", {}, "ignored"),
        ({"ref": "main"}, "push", {"ref": "refs/heads/main"}, "done"),
        ({"ref": "main"}, "push", {"ref": "main"}, "done"),
        ({"ref": "main"}, "push", {"ref": "refs/heads/dev"}, "ignored"),
        ({"ref": "main"}, "push", {}, "ignored"),
        ({"ref": "main"}, "push", {"ref": ["refs/heads/main"]}, "ignored"),
        ({"ref": "refs/tags/v*"}, "push", {"ref": "refs/tags/v1.2"}, "done"),
        ({"ref": "topic", "ref_at": "/pr/head"}, "push", {"pr": {"head": "topic"}}, "done"),
        ({}, "push", {"ref": "refs/heads/main", "after": "0" * 40}, "ignored"),
    ],
)
def test_event_and_ref_choose(
    send: Send, about: dict[str, str], event: str, sent: dict[str, Any], state: str
) -> None:
    answer = send(body(**sent), sends=event, **about)
    assert (answer.status_code, answer.json()["state"]) == (200, state)
    assert Run.objects.count() == (state == "done")
    assert Received.objects.get().reason == answer.json()["reason"]


def test_the_event_of_standard_webhooks_is_the_type(send: Send) -> None:
    answer = send(body(type="invoice.paid"), "standard", "")
    assert answer.json()["state"] == "done" and Received.objects.get().event == "invoice.paid"


def test_a_header_that_is_not_signed_is_no_event_beside_the_type(send: Send) -> None:
    answer = send(body(type="invoice.paid"), "standard", "release.cut", event="release.cut")
    assert answer.json()["state"] == "ignored" and Received.objects.get().event == "invoice.paid"


def test_a_ping_is_answered_and_begins_nothing(send: Send) -> None:
    answer = send(body(zen="x"), sends="ping")
    assert (answer.status_code, answer.json()["state"], answer.json()["run"]) == (200, "done", None)
    assert not Run.objects.exists()


@pytest.mark.parametrize("what", ["version", "tag", "newest"])
def test_which_version_runs(cast: Any, weather: Spec, send: Send, what: str) -> None:
    set_tag(cast["rita"], weather.head, "stable")
    save_version(cast["alice"], weather, TEXT.replace("Weather", "Later"), 1)
    about = {"version": {"version": 1}, "tag": {"tag": "stable"}, "newest": {}}[what]
    assert send(body(), **about).json()["state"] == "done"
    run = Run.objects.select_related("version").get()
    assert run.version is not None and run.version.number == (2 if what == "newest" else 1)


def test_files_of_the_source_at_the_commit_that_was_pushed(cast: Any, send: Send) -> None:
    sources.add(cast["alice"], cast.team, "app", "https://git.example/app.git", ["main"])
    about = {"source": "app", "mapping": {"city": "/ref"}}
    assert send(push(commit="c" * 40), **about).json()["state"] == "done"
    begun = RunSource.objects.get()
    assert (begun.name, begun.ref, begun.wanted) == ("app", "refs/heads/main", "c" * 40)
    end()
    for sent, code in [
        (push("refs/heads/dev"), "git.ref_not_allowed"),
        (json.dumps({"ref": "refs/heads/main"}).encode(), "web.trigger_commit"),
        (push(commit="main"), "web.trigger_commit"),
    ]:
        answer = send(sent)
        assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert Run.objects.count() == 1


def test_the_log_has_the_ref_that_the_trigger_names_whatever_became_of_the_message(send: Send) -> None:
    about = {"ref_at": "/pr/ref", "commit_at": "/pr/sha", "ref": "topic"}
    pull = {"ref": "refs/heads/main", "pr": {"ref": "topic", "sha": "c" * 40}}
    assert send(body(**pull), **about).json()["state"] == "done"
    assert send(body(**pull)).json()["state"] == "repeated"
    assert send(body(n=2, **pull)).json()["state"] == "held"
    end()
    assert send(body(n=3, data={}, **pull)).status_code == 422
    rows = Received.objects.values_list("state", "ref", "commit")
    assert [row[0] for row in rows] == ["refused", "held", "repeated", "done"]
    assert {row[1:] for row in rows} == {("topic", "c" * 40)}


def test_a_captured_message_that_was_held_keeps_no_other_out(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "PER_MINUTE", 3)
    send(body(n=1))
    held = body(n=2)
    assert [send(held).json()["state"] for _ in range(6)] == ["held"] * 6
    assert Received.objects.filter(state="held").count() == 1
    end()
    assert send(body(n=3)).json()["state"] == "done"


# ---- what begins none


@pytest.mark.parametrize(
    "sent",
    [{"data": {}}, {"data": None}, {"data": {"city": 5}}, {"data": {"city": ["Ulm"]}},
     {"data": {"city": True}},
     {"data": {"city": {"a": 1}}}, {"data": {"city": "x" * 70_000}}, {"data": {"city": "a\0b"}},
     {"data": {"city": "Ulm", "days": "many"}}, {"data": {"city": "Ulm", "days": 1.5}},
     {"data": {"city": "Ulm", "days": 10**18}}, {"data": {"city": "Ulm", "days": True}},
     {"data": {"city": "Ulm"}, "kind": "other"}, {"data": {"city": "Ulm"}, "flags": ["yes"]},
     {"data": {"city": "Ulm"}, "r": "x"}],
    ids=range(15),
)  # fmt: skip
def test_an_input_of_another_type_is_refused_and_begins_nothing(send: Send, sent: dict[str, Any]) -> None:
    answer = send(json.dumps(sent).encode())
    assert answer.status_code in (400, 422) and answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] in ("web.trigger_input", "web.text")
    assert not Run.objects.exists() and Received.objects.get().state == "refused"


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 5000, b'{"data": {"city": 1e999}}']
)
def test_a_body_that_is_none(send: Send, raw: bytes) -> None:
    answer = send(raw)
    assert answer.status_code in (400, 422) and answer.json()["code"].startswith("web.")
    assert not Run.objects.exists()


def test_what_is_null_or_missing_is_left_to_the_default(send: Send) -> None:
    assert send(body(kind=None, flags=[])).json()["state"] == "done"
    assert Run.objects.get().inputs == {"city": "Ulm"}


def test_who_may_start_no_more_turns_it_off(cast: Any, send: Send) -> None:
    send(body(n=1))
    end()
    Membership.objects.filter(user=cast["bob"]).update(role="viewer")
    answer = send(body(n=2))
    assert (answer.status_code, answer.json()["state"]) == (200, "held")
    assert Run.objects.count() == 1 and not Trigger.objects.get().active
    assert send(body(n=3)).json()["reason"] == "The trigger is off."
    assert Event.objects.get(action="trigger.off").detail["why"] == answer.json()["reason"]
    Membership.objects.filter(user=cast["bob"]).update(role="editor")
    actions.switch(cast["rita"], Trigger.objects.select_related("spec__team").get(), True)
    assert send(body(n=4)).json()["state"] == "done"
    assert Run.objects.order_by("-pk")[0].made_by == cast["rita"]


def test_a_spec_that_is_archived_or_changed_its_inputs(cast: Any, weather: Spec, send: Send) -> None:
    send(body(n=1))
    end()
    save_version(cast["alice"], weather, TEXT.replace("deep:", "wide:"), 1)
    answer = send(body(n=2))
    assert (answer.status_code, answer.json()["code"]) == (422, "web.trigger_input")
    archive(cast["alice"], weather)
    assert send(body(n=3)).json()["state"] == "held"
    assert Run.objects.count() == 1


def test_the_teams_rules_hold_as_for_a_start_by_hand(
    cast: Any, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spakweb.work.runs import actions as runs

    send(body(n=1))
    end()

    def refuse(*given: Any, **more: Any) -> Any:
        raise Refused("web.run_mode", "The team's rules forbid it.", "", 409)

    monkeypatch.setattr(runs.modes, "require_permitted", refuse)
    answer = send(body(n=2))
    assert (answer.status_code, answer.json()["code"]) == (409, "web.run_mode")
    assert Run.objects.count() == 1 and Received.objects.first().reason.startswith("web.run_mode")


def test_two_triggers_have_secrets_of_their_own(cast: Any, weather: Spec) -> None:
    made = [actions.add(cast["bob"], weather, name, mapping=MAPPING) for name in ("a", "b")]
    address = reverse("spak-hook-receive", args=[made[0][0].receiver.key])
    assert post(address, body(), github(made[1][1], body())).status_code == 401
    assert post(address, body(), standard(made[0][1], body())).status_code == 200


# ---- adding


@pytest.mark.parametrize(
    ("about", "code"),
    [({"name": " "}, "web.trigger_name"), ({"name": "deploy"}, "web.trigger_name"),
     ({"version": 9}, "web.trigger_version"), ({"version": 1, "tag": "x"}, "web.trigger_version"),
     ({"tag": "none"}, "web.trigger_version"), ({"ref": "a b?"}, "git.refs"),
     ({"mapping": {"city": "data"}}, "web.trigger_pointer"),
     ({"mapping": {"city": "/a~2"}}, "web.trigger_pointer"),
     ({"mapping": {"city": "/" + "a" * 300}}, "web.trigger_pointer"),
     ({"mapping": {**MAPPING, "town": "/a"}}, "web.trigger_input"), ({"mapping": {}}, "web.trigger_input"),
     ({"inputs": {"city": "Ulm"}}, "web.trigger_input"),
     ({"mapping": {"city": "/a"}, "inputs": {"days": "x"}}, "web.trigger_input"),
     ({"source": "none"}, "git.source_unknown"), ({"source": "a\0"}, "web.text"),
     ({"ref_at": "x"}, "web.trigger_pointer")],
    ids=range(16),
)  # fmt: skip
def test_what_cannot_be_added(cast: Any, weather: Spec, about: dict[str, Any], code: str) -> None:
    actions.add(cast["bob"], weather, "deploy", mapping=MAPPING)
    given = {"name": "other", "mapping": MAPPING, **about}
    with pytest.raises(Refused) as why:
        actions.add(cast["bob"], weather, given.pop("name"), **given)
    assert why.value.code == code
    assert (Trigger.objects.count(), Receiver.objects.count()) == (1, 1)


def test_a_team_has_so_many(cast: Any, weather: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MOST", 0)
    with pytest.raises(Refused) as why:
        actions.add(cast["bob"], weather, "a", mapping=MAPPING)
    assert why.value.code == "web.trigger_many" and not Receiver.objects.exists()


def test_who_only_looks_changes_nothing(cast: Any, weather: Spec) -> None:
    made, _ = actions.add(cast["bob"], weather, "deploy", mapping=MAPPING)
    for act in (
        lambda: actions.add(cast["vera"], weather, "mine", mapping=MAPPING),
        lambda: actions.switch(cast["vera"], made, False),
        lambda: actions.rotate(cast["vera"], made),
        lambda: actions.remove(cast["vera"], made),
    ):
        with pytest.raises(PermissionDenied):
            act()


def test_the_pages(cast: Any, weather: Spec) -> None:
    bob = cast.client("bob")
    form = {"spec": "weather", "name": "deploy", "runs": "1", "event": "push", "ref": "main",
            "mapping": "city = /data/city\n", "inputs": "days=5", "source": "", "ref_at": "/ref",
            "commit_at": "/after"}  # fmt: skip
    wrong = bob.post(f"{HERE}new/", {**form, "mapping": "city = data"})
    assert wrong.status_code == 422 and "no JSON pointer" in wrong.content.decode()
    assert "city = data" in wrong.content.decode()
    for about in ({"mapping": "city"}, {"spec": "none"}, {"spec": "a\0"}, {"runs": "0"}, {"runs": "99"}):
        assert bob.post(f"{HERE}new/", {**form, **about}).status_code in (400, 409, 422), about
    page = bob.post(f"{HERE}new/", form).content.decode()
    made = Trigger.objects.get()
    key = made.receiver.key
    assert key in page and "shown only once" in page and made.inputs == {"days": "5"}
    here = f"{HERE}{made.pk}/"
    assert (
        "deploy" in bob.get(HERE).content.decode() and "shown only once" not in bob.get(here).content.decode()
    )
    seen = cast.client("vera").get(here).content.decode()
    assert "version 1" in seen and key not in seen and "Rotate" not in seen
    assert bob.post(f"{here}do/", {"do": "dance"}).status_code == 400
    assert "Turn on" in bob.post(f"{here}do/", {"do": "off"}, follow=True).content.decode()
    assert bob.post(f"{here}do/", {"do": "on"}).status_code == 302
    assert "shown only once" in bob.post(f"{here}do/", {"do": "rotate"}).content.decode()
    assert bob.post(f"{here}do/", {"do": "remove"}).status_code == 302
    assert not Receiver.objects.exists()
    done = Event.objects.filter(action__startswith="trigger.").order_by("pk")
    names = [action.removeprefix("trigger.") for action in done.values_list("action", flat=True)]
    assert names == ["made", "off", "on", "rotated", "removed"]


def test_a_program_adds_one_and_no_table_has_its_secret(cast: Any, weather: Spec) -> None:
    token = tokens.make(cast["alice"], "ci", 7, cast.team, ["admin", "start"])[1]
    ci = Client(headers={"authorization": f"Bearer {token}", "idempotency-key": "one"})
    where = "/api/v1/teams/kernel-tuners"
    given = {"name": "deploy", "mapping": {"city": "/data/city"}, "event": "push"}
    answer = ci.post(f"{where}/specs/weather/triggers/", given, content_type="application/json")
    made = answer.json()
    assert answer.status_code == 201 and made["secret"].startswith("whsec_"), made
    again = ci.post(f"{where}/specs/weather/triggers/", given, content_type="application/json")
    assert (again.status_code, again.json()) == (201, {**made, "secret": ""})
    assert made["secret"] not in str(list(KeptAnswer.objects.values()) + list(Receiver.objects.values()))
    address = made["url"].removeprefix("http://testserver")
    run = post(address, body(), github(made["secret"], body())).json()["run"]
    ci = Client(headers={"authorization": f"Bearer {token}"})
    one = f"{where}/triggers/{made['id']}"
    assert ci.get(f"{one}/").json()["last_run"] == run
    assert [(row["state"], row["run"]) for row in ci.get(f"{one}/deliveries/").json()["deliveries"]] == [
        ("done", run)
    ]
    assert not ci.post(f"{one}/off/").json()["active"]
    new = ci.post(f"{one}/rotate/").json()
    assert new["url"] == made["url"] and new["secret"] != made["secret"]
    for wrong in ({"name": "x", "mapping": {"city": 5}}, {"name": "x", "mapping": []}, {"nme": "x"}, []):
        answer = ci.post(
            f"{where}/specs/weather/triggers/", json.dumps(wrong), content_type="application/json"
        )
        assert answer.status_code in (400, 422) and answer.json()["code"].startswith("web.")
    assert ci.post(f"{one}/remove/").status_code == 204
    assert post(address, body(n=2), github(new["secret"], body(n=2))).status_code == 401
