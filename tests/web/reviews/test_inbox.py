"""Who is asked for which patch: in the inbox, on Home, by the count in the navigation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core import mail
from django.urls import reverse

from jobs_kit import do
from spakweb.face.reviews import inbox
from spakweb.store.reviews.models import Check, Patch
from spakweb.store.specs.models import Draft
from spakweb.work.reviews import actions, checks, talk
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import archive, save_draft

LAST = 'step two: tool.list_files { path: "docs" }'
OTHER = 'step one: tool.list_files { path: "tests" }'
ONE = 'step one: tool.list_files { path: "." }'


@pytest.fixture
def patch(cast: Any) -> Patch:
    text = cast.spec.head.text.replace(ONE, OTHER)
    return actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere")


def needs(cast: Any) -> dict[str, list[str]]:
    names = ("alice", "bob", "rita", "vera")
    found = {name: [one.need for one in inbox.waiting(cast[name], cast.team)] for name in names}
    assert {name: inbox.count(cast[name], cast.team) for name in names} == {
        name: len(rows) for name, rows in found.items()
    }
    return found


def test_a_team_without_an_open_patch_is_asked_for_none(
    cast: Any, patch: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page shows the count: the long statement is put together only where it can find something."""
    whole = inbox.waiting
    assert inbox.count(cast["rita"], cast.team) == 1
    archive(cast["alice"], cast.spec)
    monkeypatch.delattr(inbox, "waiting")
    assert inbox.count(cast["rita"], cast.team) == 0
    archive(cast["alice"], cast.spec, False)
    monkeypatch.setattr(inbox, "waiting", whole, raising=False)
    assert inbox.count(cast["rita"], cast.team) == 1
    actions.close(cast["bob"], patch, 1)
    monkeypatch.delattr(inbox, "waiting")
    assert inbox.count(cast["rita"], cast.team) == 0


def test_reviewers_are_asked_and_then_the_author(cast: Any, patch: Patch) -> None:
    assert needs(cast) == {"alice": ["review"], "bob": [], "rita": ["review"], "vera": []}
    actions.judge(cast["rita"], patch, 1, False, "Why?")
    assert needs(cast) == {"alice": ["review"], "bob": ["changes"], "rita": [], "vera": []}
    actions.revise(cast["bob"], patch, 1, patch.latest.text.replace("tests", "src"))
    assert needs(cast) == {"alice": ["review"], "bob": [], "rita": ["review"], "vera": []}
    actions.judge(cast["rita"], patch, 2, True)
    assert needs(cast) == {"alice": ["review"], "bob": ["merge"], "rita": [], "vera": []}
    protect(cast["alice"], cast.spec, 2)
    assert needs(cast)["bob"] == []
    actions.judge(cast["alice"], patch, 2, True)
    actions.merge(cast["bob"], patch, 2)
    assert needs(cast) == {"alice": [], "bob": [], "rita": [], "vera": []}


def test_who_changes_anothers_patch_tells_the_proposer_why(
    cast: Any, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    """By mail, in the inbox until the proposer says something, and on the page; the checks are run again."""
    settings.SENDS_MAIL = True
    text = cast.spec.head.text.replace(ONE, OTHER).replace('step two: tool.list_files { path: "." }', LAST)
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere")
    do(checks.CHECK, patch.latest.pk)
    with django_capture_on_commit_callbacks(execute=True):
        made = actions.drop_edit(cast["rita"], patch, 1, 1, "The docs are of no use")
    [sent] = mail.outbox
    assert sent.bcc == ["bob@spak.example"] and "Without edit 2: The docs are of no use" in sent.body
    assert {one.state for one in made.checks.all()} == {Check.State.QUEUED}
    assert needs(cast)["bob"] == ["revised"]
    where = reverse("spak-patch", args=[cast.team.slug, "small", 1])
    told = f"{cast['rita']} made revision 2. Without edit 2: The docs are of no use"
    assert told in cast.client("bob").get(where).content.decode()
    talk.comment(cast["bob"], patch, "Fine.")
    assert needs(cast)["bob"] == []
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        actions.revise(cast["bob"], patch, 2, text, "They are")
    assert mail.outbox == [] and needs(cast)["bob"] == [], "nobody is told of what they did themselves"
    with django_capture_on_commit_callbacks(execute=True):
        actions.keep_edit(cast["alice"], patch, 3, 0, "One is enough")
    assert "Only edit 1: One is enough" in mail.outbox[0].body


def test_archived_specs_and_other_teams_ask_for_nothing(cast: Any, patch: Patch) -> None:
    assert inbox.count(cast["charlie"], cast.team) == 0
    assert inbox.count(cast["rita"], cast.team) == 1
    archive(cast["alice"], cast.spec)
    assert inbox.count(cast["rita"], cast.team) == 0


def test_home_the_inbox_and_the_navigation_show_it(cast: Any, patch: Patch) -> None:
    rita = cast.client("rita")
    home = rita.get(reverse("spak-team-home", args=[cast.team.slug])).content.decode()
    assert "Look elsewhere" in home and "review it, by bob" in home
    assert '1<span class="visually-hidden"> waiting for you</span>' in home
    page = rita.get(reverse("spak-reviews", args=[cast.team.slug])).content.decode()
    assert "Review it" in page and "Open patches" in page
    vera = cast.client("vera").get(reverse("spak-reviews", args=[cast.team.slug])).content.decode()
    assert "No patch waits for you" in vera and "waiting for you</span>" not in vera


def test_the_editor_proposes_and_the_draft_goes_with_it(cast: Any) -> None:
    bob, text = cast.client("bob"), cast.spec.head.text.replace(ONE, OTHER)
    save_draft(cast["bob"], cast.spec, text, 1)
    where = reverse("spak-patch-propose", args=[cast.team.slug, "small"])
    asked = {"title": "Elsewhere", "rationale": "Faster.", "text": text, "base_version": 1}

    def send(body: Any) -> Any:
        return bob.post(where, json.dumps(body), "application/json", headers={"Accept": "application/json"})

    for wrong, code in (({**asked, "text": None}, "web.no_text"), ([], "web.json")):
        assert send(wrong).json()["code"] == code
    answer = send(asked)
    made = Patch.objects.get()
    assert (answer.status_code, answer.json()["patch"]) == (201, 1)
    assert answer.json()["url"] == reverse("spak-patch", args=[cast.team.slug, "small", 1])
    assert (made.title, made.rationale, made.latest.text) == ("Elsewhere", "Faster.", text)
    assert not Draft.objects.exists()


def test_a_draft_of_another_text_stays(cast: Any) -> None:
    """Typed further in another window, or a file was proposed: nothing of the draft is lost."""
    text = cast.spec.head.text.replace(ONE, OTHER)
    save_draft(cast["bob"], cast.spec, text + "// further\n", 1)
    actions.propose(cast["bob"], cast.spec, text, 1, "x", typed=True)
    assert Draft.objects.get().text == text + "// further\n"


def test_an_older_state_of_the_draft_goes_with_the_patch(cast: Any) -> None:
    """Proposed before the editor has sent the last keys: what it sent before is no draft any more, unless
    another window has changed it."""
    text = cast.spec.head.text.replace(ONE, OTHER)
    where = reverse("spak-patch-propose", args=[cast.team.slug, "small"])
    for typed, gone in (("// ear", True), ("// elsewhere", False)):
        seen = save_draft(cast["bob"], cast.spec, text + "// ea", 1).saved_at.isoformat()
        if not gone:
            save_draft(cast["bob"], cast.spec, text + typed, 1)
        body = {"title": "x", "text": f"{text}// early {gone}\n", "base_version": 1, "seen": seen}
        cast.client("bob").post(where, json.dumps(body), "application/json")
        assert Draft.objects.exists() != gone
    assert Patch.objects.count() == 2


def test_the_editor_of_a_protected_spec_offers_only_to_propose(cast: Any) -> None:
    where = reverse("spak-editor", args=[cast.team.slug, "small"])
    page = cast.client("bob").get(where).content.decode()
    assert 'data-act="propose"' in page and 'data-act="save"' in page
    protect(cast["alice"], cast.spec, 1)
    page = cast.client("bob").get(where).content.decode()
    assert 'data-act="propose"' in page and 'data-act="save"' not in page and '"protected": true' in page
