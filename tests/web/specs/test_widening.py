"""What widens a spec is saved by an admin who confirms it, and is a patch of everybody else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reviews_kit import refused
from spakweb.ground.teams.models import Membership, Role
from spakweb.store.reviews.models import Patch
from spakweb.store.specs.models import Spec
from spakweb.work.reviews.protection import protect, protect_team
from spakweb.work.specs import actions, widening
from spakweb.work.teams import tokens
from spakweb.work.teams.actions import create_team

pytestmark = pytest.mark.findings("B3")

HTTP = 'step two: tool.http_request { url: "https://a.example/" }'
TWO = 'step two: tool.list_files { path: "." }'
PAGES = {"accept": "text/html"}


@pytest.fixture
def spec(cast: Any) -> Spec:
    """A spec whose team asks for the right to widen."""
    protect_team(cast["alice"], cast.team, 0, widening="shared")
    return Spec.objects.get(pk=cast.spec.pk)


@pytest.fixture
def wide(spec: Spec) -> str:
    """A text that gains a tool."""
    return spec.head.text.replace(TWO, HTTP)


def save(client: Client, spec: Spec, text: str, **more: Any) -> Any:
    form = {"text": text, "base_version": str(spec.head.number), **more}
    return client.post(reverse("spak-spec-save", args=[spec.team.slug, spec.slug]), form, headers=PAGES)


def fields(page: str, action: str) -> dict[str, str]:
    """What the form with this address would send."""
    form = re.search(rf'<form method="post" action="{re.escape(action)}".*?</form>', page, re.S)
    assert form is not None, page
    found = dict(re.findall(r'name="(\w+)"[^>]*? value="([^"]*)"', form[0]))
    return {name: value for name, value in found.items() if name != "csrfmiddlewaretoken"}


def test_an_editor_is_led_to_a_patch(cast: Any, spec: Spec, wide: str) -> None:
    bob, before = cast.client("bob"), spec.head.number
    answer = save(bob, spec, wide, message="Ask the web")
    page = answer.content.decode()
    assert answer.status_code == 409 and "This text widens what small may do" in page
    assert page.index("Widens</span>") < page.index("Propose as a patch")
    assert "tool <code>http_request</code>" in page and "Widen small" not in page
    propose = reverse("spak-patch-propose", args=[cast.team.slug, "small"])
    sent = fields(page, propose)
    assert (sent["base_version"], sent["title"]) == ("1", "Ask the web")
    assert bob.post(propose, {**sent, "text": wide}).status_code == 302
    assert Patch.objects.get().latest.text == wide
    spec.refresh_from_db()
    assert spec.head.number == before


def test_what_narrows_or_says_the_same_is_saved(cast: Any, spec: Spec) -> None:
    text = spec.head.text.replace("START", "CONFIG { BUDGET { steps: 5 } }\n  START")
    assert save(cast.client("bob"), spec, text).status_code == 302
    assert Spec.objects.get(pk=spec.pk).head.provenance == {}


def test_an_admin_is_asked_once_and_the_version_says_who(cast: Any, spec: Spec, wide: str) -> None:
    alice = cast.client("alice")
    where = reverse("spak-spec-save", args=[cast.team.slug, "small"])
    answer = save(alice, spec, wide, message="Ask the web")
    sent = {**fields(answer.content.decode(), where), "text": wide}
    assert answer.status_code == 409 and "Widen small: save as version 2" in answer.content.decode()
    assert alice.post(where, {**sent, "text": wide + "// more\n"}).status_code == 409, "another text"
    assert cast.client("bob").post(where, sent).status_code == 409, "another person"
    assert alice.post(where, sent).status_code == 302
    head = Spec.objects.get(pk=spec.pk).head
    assert (head.number, head.message, head.provenance["widened"]["by"]) == (2, "Ask the web", "alice")
    for name in ("spak-version-detail", "spak-spec-history", "spak-spec-blame"):
        more = [2] if name == "spak-version-detail" else []
        assert (
            "widened by alice"
            in alice.get(reverse(name, args=[cast.team.slug, "small", *more])).content.decode()
        )


def test_an_old_version_is_restored_by_the_same_rule(cast: Any, spec: Spec, wide: str) -> None:
    protect_team(cast["alice"], cast.team, 0, widening="never")
    actions.save_version(cast["alice"], spec, wide, 1)
    actions.save_version(cast["alice"], Spec.objects.get(pk=spec.pk), spec.head.text, 2)
    protect_team(cast["alice"], cast.team, 0, widening="shared")
    where = reverse("spak-version-restore", args=[cast.team.slug, "small", 2])
    assert "Widen small" not in cast.client("bob").post(where, headers=PAGES).content.decode()
    page = cast.client("alice").post(where, headers=PAGES).content.decode()
    assert Spec.objects.get(pk=spec.pk).head.number == 3
    assert cast.client("alice").post(where, fields(page, where)).status_code == 302
    head = Spec.objects.get(pk=spec.pk).head
    assert (head.number, head.restored_from.number, head.message) == (4, 2, "Restore version 2")
    assert head.provenance["widened"]["by"] == "alice"


@pytest.mark.parametrize("name", ["bob", "alice"])
def test_a_program_is_told_to_propose(cast: Any, spec: Spec, wide: str, name: str) -> None:
    """An admin's too: nobody looks at what it widens."""
    secret = tokens.make(cast[name], "ci", 7, cast.team, ["edit"])[1]
    ci = Client(headers={"authorization": f"Bearer {secret}"})
    here = "/api/v1/teams/kernel-tuners/specs/small/versions/"
    headers = {"If-Match": ci.get(here)["ETag"]}
    answer = ci.post(here, json.dumps({"text": wide}), content_type="application/json", headers=headers)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (409, "web.widens")
    assert (
        "http_request in done" in problem["detail"] and "POST /api/v1/teams/kernel-tuners" in problem["hint"]
    )
    narrow = json.dumps({"text": spec.head.text + "// more\n"})
    made = ci.post(here, narrow, content_type="application/json", headers=headers)
    assert (made.status_code, made.json()["widened_by"]) == (201, "")


def test_a_program_restores_nothing_that_widens(cast: Any, spec: Spec, wide: str) -> None:
    protect_team(cast["alice"], cast.team, 0, widening="never")
    actions.save_version(cast["alice"], spec, wide, 1)
    actions.save_version(cast["alice"], Spec.objects.get(pk=spec.pk), spec.head.text, 2)
    protect_team(cast["alice"], cast.team, 0, widening="shared")
    secret = tokens.make(cast["alice"], "ci", 7, cast.team, ["edit"])[1]
    ci = Client(headers={"authorization": f"Bearer {secret}"})
    answer = ci.post("/api/v1/teams/kernel-tuners/specs/small/versions/2/restore/")
    assert (answer.status_code, answer.json()["code"]) == (409, "web.widens")
    assert "POST /api/v1/teams/kernel-tuners" in answer.json()["hint"]


def test_the_editor_gets_the_code(cast: Any, spec: Spec, wide: str) -> None:
    where = reverse("spak-spec-save", args=[cast.team.slug, "small"])
    body = json.dumps({"text": wide, "base_version": 1})
    answer = cast.client("alice").post(
        where, body, content_type="application/json", headers={"accept": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "web.widens")


def test_a_text_that_cannot_be_read_hides_nothing(cast: Any, spec: Spec, wide: str) -> None:
    """A text with an error of grammar is saved, and the next one is judged by the last that could be read."""
    broken = spec.head.text.replace("TASK done {", "TASK done {{{ ")
    assert actions.save_version(cast["bob"], spec, broken, 1).number == 2
    with refused("web.widens"):
        actions.save_version(cast["bob"], spec, wide, 2)
    assert actions.save_version(cast["bob"], spec, spec.head.text, 2).number == 3


def test_the_rule_is_off_for_one_person_alone(cast: Any) -> None:
    team = create_team(cast["bob"], "Alone")
    spec = actions.create_spec(cast["bob"], team, "mine", cast.spec.head.text)
    assert not widening.is_asked(spec)
    assert actions.save_version(cast["bob"], spec, spec.head.text.replace(TWO, HTTP), 1).number == 2
    page = cast.client("bob").get(reverse("spak-review-rules", args=[team.slug])).content.decode()
    assert "You are alone in this team" in page and "&quot;always&quot;" in page.replace(
        '"always"', "&quot;always&quot;"
    )
    Membership.objects.create(team=team, user=cast["vera"], role=Role.VIEWER)
    assert widening.is_asked(Spec.objects.get(pk=spec.pk)), "a new team protects by itself"


def test_always_and_the_rules_of_a_spec(cast: Any, spec: Spec, wide: str) -> None:
    protect(cast["alice"], spec, 0, widening="never")
    assert save(cast.client("bob"), spec, wide).status_code == 302
    form = {"approvals": "0", "widening": "always"}
    cast.client("alice").post(reverse("spak-spec-protect", args=[cast.team.slug, "small"]), form)
    assert Spec.objects.get(pk=spec.pk).widening == "always"
    with refused("web.widening"):
        protect(cast["alice"], spec, 0, widening="sometimes")
