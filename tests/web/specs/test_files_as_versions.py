"""A file brought to a spec's page, and the draft that its person has: neither overwrites anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from spak.config import catalog
from spak.lang import check, parse
from spak.templates import TEMPLATES
from spakweb.store.specs.models import Draft, Spec
from spakweb.work.specs import actions


def bring(cast: Any, text: str, base: str | None, **more: str) -> Any:
    file = {"file": SimpleUploadedFile("small.spak", text.encode())}
    given = more | ({} if base is None else {"base_version": base})
    return cast.client("bob").post(reverse("spak-spec-save", args=[cast.team.slug, "small"]), file | given)


def test_the_page_sends_the_version_that_it_shows(cast: Any, saved: Callable[..., Any]) -> None:
    address = reverse("spak-spec-detail", args=[cast.team.slug, "small"])
    text = cast.client("bob").get(address).content.decode()
    assert '<input type="hidden" name="base_version" value="1">' in text
    base = cast.spec.head.text
    saved(base.replace("look", "peek"))
    answer = bring(cast, base.replace("done", "finish"), "1", message="From my disk")
    page = answer.content.decode()
    assert answer.status_code == 409 and cast.spec.versions.count() == 2
    assert "alice saved version 2" in page and "From my disk" in page
    assert "peek" in page and "finish" in page


@pytest.mark.parametrize("base", [None, "", "x", "99", "-1", "9" * 40])
def test_a_file_without_a_base_overwrites_nothing(cast: Any, base: str | None) -> None:
    assert bring(cast, cast.spec.head.text + "// more\n", base).status_code == 409
    assert cast.spec.versions.count() == 1


def test_a_draft_outlives_a_file_and_a_restored_version(cast: Any, saved: Callable[..., Any]) -> None:
    actions.save_draft(cast["bob"], cast.spec, "// typed and not saved\n", 1)
    assert bring(cast, cast.spec.head.text + "// a file\n", "1").status_code == 302
    actions.restore(cast["bob"], cast.spec.versions.get(number=1))
    assert cast.spec.versions.count() == 3
    assert Draft.objects.get(user=cast["bob"]).text == "// typed and not saved\n"
    stale = bring(cast, cast.spec.head.text + "// another\n", "1").content.decode()
    assert '<input type="hidden" name="typed" value="0">' in stale
    address = reverse("spak-spec-save", args=[cast.team.slug, "small"])
    merged = {"text": cast.spec.head.text + "// joined\n", "base_version": "3"}
    cast.client("bob").post(address, merged | {"typed": "0"})
    assert cast.spec.versions.count() == 4 and Draft.objects.filter(user=cast["bob"]).exists()
    cast.client("bob").post(address, merged | {"text": "// typed\n", "base_version": "4"})
    assert not Draft.objects.filter(user=cast["bob"]).exists()


def test_a_draft_of_another_window_is_not_overwritten(cast: Any) -> None:
    named = {"team": cast.team.slug, "spec": "small"}
    client, draft = cast.client("bob"), reverse("spak-editor-draft", kwargs=named)

    def keep(text: str, **more: Any) -> Any:
        given = {"text": text, "base_version": 1, **more}
        return client.post(draft, given, content_type="application/json")

    one = keep("// one\n", seen="").json()["saved_at"]
    refused = keep("// two\n", seen="")
    assert (refused.status_code, refused.json()["code"]) == (409, "web.draft_elsewhere")
    assert keep("// one\n", seen="").status_code == 200  # the same text harms nothing
    assert keep(cast.spec.head.text, seen="").status_code == 409
    seen = client.get(reverse("spak-editor", kwargs=named)).context["config"]["seen"]
    assert seen > one and keep("// three\n", seen=seen).status_code == 200
    saved = {"text": "// four\n", "base_version": 1, "seen": seen}
    save = reverse("spak-spec-save", kwargs=named)
    assert (
        client.post(
            save, saved, content_type="application/json", headers={"Accept": "application/json"}
        ).status_code
        == 201
    )
    assert Draft.objects.get(user=cast["bob"]).text == "// three\n"
    assert keep("// five\n", seen=None).status_code == 200


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("http://testserver/t/kernel-tuners/specs/small/", True),
        ("http://testserver/t/kernel-tuners/specs/small/save/", False),
        ("https://evil.example/t/", False),
        ("//evil.example", False),
        ("javascript:alert(1)", False),
        ("", False),
    ],
)
def test_a_file_that_is_refused_leads_back_to_its_form(cast: Any, page: str, shown: bool) -> None:
    file = SimpleUploadedFile("small.spak", b"\xff\xfe")
    address = reverse("spak-spec-save", args=[cast.team.slug, "small"])
    answer = cast.client("bob").post(address, {"file": file}, headers={"Referer": page})
    assert answer.status_code == 400
    here = page.removeprefix("http://testserver")
    assert f'href="{here}"' in answer.content.decode() if shown else b"Back to" not in answer.content


@pytest.mark.parametrize("template", ["", *TEMPLATES])
def test_a_new_spec_begins_with_a_template(cast: Any, template: str) -> None:
    alice = cast.client("alice")
    address = reverse("spak-spec-new", args=[cast.team.slug])
    answer = alice.post(address, {"name": "My job 2", "template": template})
    assert answer.status_code == 302 and answer["Location"].endswith("/my-job-2/edit/")
    text = Spec.objects.get(slug="my-job-2").head.text
    assert ("AGENT My_Job_2 " in text) is bool(template)
    assert text.startswith("// ") and "spak run" not in text and "//\n//\n" not in text
    assert not [item for item in check(parse(text), catalog()) if item.severity == "error"]


def test_a_template_that_is_none_keeps_the_form(cast: Any) -> None:
    sent = {"name": "mine", "template": "nope"}
    answer = cast.client("alice").post(reverse("spak-spec-new", args=[cast.team.slug]), sent)
    page = answer.content.decode()
    assert answer.status_code == 400 and "no such template" in page and 'value="mine"' in page
