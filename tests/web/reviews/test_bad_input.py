"""What comes from odd or late forms: told in words, nothing lost, nothing merged twice."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse

from spakweb.reviews import actions
from spakweb.reviews.models import Comment, Patch
from spakweb.specs.models import SpecVersion

ONE, OTHER = 'tool.list_files { path: "." }', 'tool.list_files { path: "tests" }'


@pytest.fixture
def patch(cast: Any) -> Patch:
    return actions.propose(cast["bob"], cast.spec, cast.spec.head.text.replace(ONE, OTHER), 1, "Elsewhere")


@pytest.mark.parametrize("revision", ["2", "999999999", "-1", "x", "", "1" * 50])
@pytest.mark.parametrize("do", ["approve", "merge", "drop", "update", "decide", "close", "take", "check"])
def test_a_forged_revision_does_nothing(cast: Any, patch: Patch, do: str, revision: str) -> None:
    actions.judge(cast["rita"], patch, 1, True)
    where = reverse("spak-patch-do", args=[cast.team.slug, "small", 1])
    answer = cast.client("alice").post(where, {"do": do, "revision": revision, "edit": "1"})
    assert answer.status_code == 409
    patch.refresh_from_db()
    assert (patch.state, patch.revisions.count()) == ("open", 1)
    assert SpecVersion.objects.filter(spec=cast.spec).count() == 1


def test_a_text_as_large_as_a_spec_may_be_and_one_byte_more(cast: Any) -> None:
    where, bob = reverse("spak-patch-propose", args=[cast.team.slug, "small"]), cast.client("bob")
    text = cast.spec.head.text
    text += "//" + "x" * (settings.UPLOAD_BYTES - len(text) - 3) + "\n"
    form = {"title": "Large", "text": text, "base_version": "1"}
    made = bob.post(where, form)
    assert made.status_code == 302 and bob.get(made["Location"]).status_code == 200
    refused = bob.post(where, {**form, "text": f"{text}x"})
    assert refused.status_code == 413 and "a spec has at most" in refused.content.decode()
    assert Patch.objects.count() == 1


def test_a_comment_of_a_megabyte_is_refused_in_words(cast: Any, patch: Patch) -> None:
    where = reverse("spak-patch-do", args=[cast.team.slug, "small", 1])
    answer = cast.client("rita").post(where, {"do": "comment", "revision": "1", "text": "x" * 1_000_000})
    assert answer.status_code == 413 and "1 to 4000 characters" in answer.content.decode()
    assert not Comment.objects.exists()


def test_a_proposer_who_left_leaves_the_patch_to_others(cast: Any, patch: Patch) -> None:
    cast.team.memberships.filter(user=cast["bob"]).delete()
    type(cast["bob"]).objects.filter(pk=cast["bob"].pk).update(is_active=False)
    actions.judge(cast["rita"], patch, 1, True)
    version = actions.merge(cast["alice"], patch, 1)
    assert (version.text, version.provenance["proposer"]) == (patch.latest.text, "bob")
