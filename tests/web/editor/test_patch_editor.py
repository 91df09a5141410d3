"""A patch in the editor: what is saved is its next revision, and a draft of it is kept by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from spakweb.store.reviews.models import Patch
from spakweb.store.specs.models import Draft, Spec
from spakweb.work.reviews import actions
from spakweb.work.specs.actions import save_draft

ONE, TWO = 'step one: tool.list_files { path: "." }', 'step two: tool.list_files { path: "." }'


def to(step: str, path: str) -> str:
    return step.replace('"."', f'"{path}"')


@pytest.fixture
def patch(cast: Any) -> Patch:
    return actions.propose(cast["bob"], cast.spec, cast.spec.head.text.replace(ONE, to(ONE, "src")), 1, "One")


def page(cast: Any, name: str = "bob") -> Any:
    return cast.client(name).get(reverse("spak-patch-editor", args=[cast.team.slug, "small", 1]))


def config(cast: Any, name: str = "bob") -> Any:
    return page(cast, name).context["config"]


def send(cast: Any, url: str, name: str = "bob", **body: Any) -> Any:
    return cast.client(name).post(
        url, json.dumps(body), content_type="application/json", headers={"accept": "application/json"}
    )


def test_the_editor_opens_with_the_newest_revision_and_saves_the_next(cast: Any, patch: Patch) -> None:
    draft = save_draft(cast["bob"], cast.spec, "// of the spec itself\n", 1)
    found = config(cast)
    assert (found["text"], found["base_version"], found["head_version"]) == (patch.latest.text, 1, 1)
    assert found["patch"]["opened"] and found["draft"] is None
    body = page(cast).content.decode()
    assert "Save revision" in body and "Save version" not in body and 'data-act="propose"' not in body
    text = patch.latest.text.replace(TWO, to(TWO, "docs"))
    kept = send(cast, found["urls"]["draft"], text=text, base_version=1, seen="").json()
    assert kept["base_version"] == 1
    again = config(cast)
    assert again["text"] == text and again["draft"] and again["seen"] == kept["saved_at"]
    assert "Continue your draft" in cast.client("bob").get(found["patch"]["url"]).content.decode()
    home = cast.client("bob").get(reverse("spak-team-home", args=[cast.team.slug])).content.decode()
    assert reverse("spak-patch-editor", args=[cast.team.slug, "small", 1]) in home
    answer = send(cast, found["patch"]["revise"], text=text, revision=1, why="Docs too")
    assert answer.status_code == 201 and answer.json() == {"revision": 2, "url": found["patch"]["url"]}
    assert (patch.latest.text, patch.latest.why, patch.latest.author) == (text, "Docs too", cast["bob"])
    assert Patch.objects.count() == 1 and Spec.objects.get(pk=cast.spec.pk).head.number == 1
    assert list(Draft.objects.all()) == [draft]  # the other draft is as it was


def test_a_revision_in_between_is_joined_or_told(cast: Any, patch: Patch) -> None:
    url, text = config(cast)["patch"]["revise"], patch.latest.text
    save_draft(cast["bob"], cast.spec, text.replace(TWO, to(TWO, "docs")), 1, 1)
    actions.revise(cast["rita"], patch, 1, text.replace(to(ONE, "src"), to(ONE, "tests")))
    assert (config(cast)["base_version"], config(cast)["head_version"]) == (1, 2)
    fits = send(cast, url, text=text.replace(TWO, to(TWO, "docs")), revision=1)
    both = cast.spec.head.text.replace(ONE, to(ONE, "tests")).replace(TWO, to(TWO, "docs"))
    told = fits.json()
    assert (fits.status_code, told["code"]) == (409, "web.patch_moved")
    assert (told["revision"], told["by"], told["joined"]) == (2, "rita", both)
    clash = send(cast, url, text=text.replace(to(ONE, "src"), to(ONE, "lib")), revision=1)
    assert clash.status_code == 409 and clash.json()["joined"] is None
    assert send(cast, url, text=text + "// x\n", revision=9).json()["joined"] is None
    assert patch.latest.number == 2 and Draft.objects.count() == 1
    assert send(cast, url, text=both, revision=2).status_code == 201
    assert patch.latest.text == both


def test_a_draft_of_a_closed_patch_is_kept_and_can_be_proposed(cast: Any, patch: Patch) -> None:
    text = patch.latest.text.replace(TWO, to(TWO, "docs"))
    url = config(cast)["patch"]["revise"]
    save_draft(cast["bob"], cast.spec, text, 1, 1)
    actions.close(cast["bob"], patch, 1)
    assert send(cast, url, text=text, revision=1).json()["code"] == "web.patch_closed"
    found = config(cast)
    assert found["text"] == text and not found["patch"]["opened"]
    assert "Save revision" not in page(cast).content.decode()
    assert page(cast, "rita")["Location"] == found["patch"]["url"]  # she has no draft of it
    made = send(
        cast, found["urls"]["propose"], text=text, base_version=found["patch"]["base_version"], title="x"
    )
    assert made.json()["patch"] == 2 and not Draft.objects.exists()
    assert page(cast)["Location"] == found["patch"]["url"]


def test_who_may_not_edit_is_led_to_the_patch(cast: Any, patch: Patch) -> None:
    assert page(cast, "vera").status_code == 302
    assert page(cast, "charlie").status_code == 404
    url = reverse("spak-patch-revise", args=[cast.team.slug, "small", 1])
    assert send(cast, url, "vera", text="x", revision=1).status_code == 403
    assert send(cast, url, "charlie", text="x", revision=1).status_code == 404
    assert send(cast, url, revision=1).json()["code"] == "web.no_text"
    missing = reverse("spak-patch-editor", args=[cast.team.slug, "small", 7])
    assert cast.client("bob").get(missing).status_code == 404
    draft = reverse("spak-editor-draft", args=[cast.team.slug, "small"])
    assert send(cast, f"{draft}?patch=7", text="x", base_version=1).status_code == 404


def test_an_older_state_of_the_draft_goes_with_the_revision(cast: Any, patch: Patch) -> None:
    found = config(cast)
    text = patch.latest.text + "// earl"
    seen = save_draft(cast["bob"], cast.spec, text, 1, 1).saved_at.isoformat()
    answer = send(cast, found["patch"]["revise"], text=text + "y\n", revision=1, seen=seen)
    assert answer.status_code == 201 and not Draft.objects.exists()


def test_discarding_gives_the_newest_revision(cast: Any, patch: Patch) -> None:
    save_draft(cast["bob"], cast.spec, "// mine\n", 1, 1)
    other = save_draft(cast["bob"], cast.spec, "// of the spec\n", 1)
    answer = send(cast, config(cast)["urls"]["draft"], drop=True).json()
    assert (answer["text"], answer["base_version"]) == (patch.latest.text, 1)
    assert list(Draft.objects.all()) == [other]
