"""What people say about lines and steps of a patch, suggestions, and what they have viewed."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from reviews_kit import ONE, OTHER, refused
from spakweb.face.reviews import page
from spakweb.ground.teams.models import Membership, Role
from spakweb.store.reviews.models import Patch
from spakweb.work.reviews import actions, rules, talk


def test_a_comment_on_a_line_stays_and_is_outdated_when_the_line_goes(cast: Any, patch: Patch) -> None:
    at = patch.latest.text.split("\n").index(f"    {OTHER}") + 1
    made = talk.comment(cast["rita"], patch, "Why tests?", line=at, seen=1)
    answer = talk.comment(cast["bob"], patch, "They are small.", answers=made.pk)
    deeper = talk.comment(cast["rita"], patch, "Fine.", answers=answer.pk)
    assert deeper.parent == made and made.quote == f"    {OTHER}"
    actions.revise(cast["bob"], patch, 1, "// first\n" + patch.latest.text)
    thread = page.context(cast["rita"], patch)["threads"][0]
    assert (thread.outdated, thread.now) == (False, at + 1)
    assert [one.text for one in thread.replies] == ["They are small.", "Fine."]
    actions.revise(cast["bob"], patch, 2, patch.latest.text.replace('"tests"', '"src"'))
    thread = page.context(cast["rita"], patch)["threads"][0]
    assert thread.outdated and thread.text == "Why tests?"
    for place in ({"line": 99}, {"answers": 999}, {"seen": 9}):
        with refused("web.comment_place"):
            talk.comment(cast["rita"], patch, "x", **place)


def test_a_suggestion_becomes_an_edit(cast: Any, patch: Patch) -> None:
    at = patch.latest.text.split("\n").index(f"    {OTHER}") + 1
    wanted = f"    {OTHER.replace('tests', 'src')}"
    made = talk.comment(cast["rita"], patch, "", line=at, seen=1, suggestion=wanted)
    revision = talk.take(cast["bob"], patch, 1, made.pk)
    assert wanted in revision.text and OTHER not in revision.text
    assert revision.why == f"Suggestion of rita, line {at}"
    made.refresh_from_db()
    assert made.resolved_at is not None
    with refused("web.suggestion"):
        talk.take(cast["bob"], patch, 2, made.pk)
    with refused("web.comment"):
        talk.comment(cast["rita"], patch, "x" * 1_000_000)


@pytest.mark.findings("A10")
def test_who_suggested_what_was_applied_does_not_approve_it(cast: Any, patch: Patch) -> None:
    at = patch.latest.text.split("\n").index(f"    {OTHER}") + 1
    wanted = f"    {OTHER.replace('tests', 'src')}"
    made = talk.comment(cast["rita"], patch, "", line=at, seen=1, suggestion=wanted)
    actions.judge(cast["rita"], patch, 1, True)
    talk.take(cast["bob"], patch, 1, made.pk)
    assert rules.author_names(patch) == ["bob", "rita"]
    assert not any(one.user == cast["rita"] for one in rules.standing_approvals(patch))
    with pytest.raises(PermissionDenied):
        actions.judge(cast["rita"], patch, 2, True)
    actions.judge(cast["alice"], patch, 2, True)
    assert rules.missing(Patch.objects.get(pk=patch.pk)) == []
    version = actions.merge(cast["bob"], Patch.objects.get(pk=patch.pk), 2)
    assert version.provenance["authors"] == ["bob", "rita"]


@pytest.mark.findings("A10")
def test_who_wrote_a_patch_does_not_approve_one_that_begins_from_it(cast: Any, patch: Patch) -> None:
    forked = actions.fork(cast["rita"], patch, "")
    assert rules.author_names(forked) == ["bob", "rita"]
    Membership.objects.filter(user=cast["bob"]).update(role=Role.REVIEWER)
    with pytest.raises(PermissionDenied):
        actions.judge(cast["bob"], forked, 1, True)
    form = {"text": forked.latest.text + "// more\n", "base_version": "1", "title": "Mine", "patch": "1"}
    address = reverse("spak-patch-propose", args=[cast.team.slug, "small"])
    assert cast.client("alice").post(address, form).status_code == 302
    assert rules.author_names(Patch.objects.get(number=3)) == ["alice", "bob"]


def test_a_suggestion_needs_a_line(cast: Any, patch: Patch) -> None:
    with refused("web.comment_place"):
        talk.comment(cast["rita"], patch, "So?", suggestion="// so")
    assert not patch.comments.exists()


def test_a_suggestion_is_applied_by_its_button(cast: Any, patch: Patch) -> None:
    at = patch.latest.text.split("\n").index(f"    {OTHER}") + 1
    args, bob, rita = [cast.team.slug, "small", 1], cast.client("bob"), cast.client("rita")
    do, where = reverse("spak-patch-do", args=args), reverse("spak-patch", args=args)
    assert f'href="?line={at}#comment"' in rita.get(where).content.decode(), "a comment on the edit"
    form = {"do": "comment", "revision": "1", "line": str(at), "text": "Better:", "suggestion": "    // gone"}
    assert rita.post(do, form).status_code == 302
    body = bob.get(where).content.decode()
    assert "Apply suggestion" in body and "    // gone" in body
    key = str(patch.comments.get().pk)
    assert bob.post(do, {"do": "take", "revision": "1", "comment": key}).status_code == 302
    assert patch.latest.text.split("\n")[at - 1] == "    // gone" and patch.latest.number == 2
    assert bob.post(do, {"do": "take", "revision": "2", "comment": key}).status_code == 409


def test_a_comment_on_a_step_stays_with_its_task_until_the_step_is_as_it_was(cast: Any, patch: Patch) -> None:
    made = talk.comment(cast["rita"], patch, "Why tests?", "tasks/look/steps/one/path")
    by_part = {one.name: one.comments for one in page.context(cast["rita"], patch)["parts"]}
    assert by_part["tasks/look"] == [made] and by_part["tasks/done"] == []
    actions.revise(cast["bob"], patch, 1, patch.latest.text.replace('"docs"', '"src"'))
    assert not page.context(cast["rita"], patch)["threads"][0].outdated
    actions.revise(cast["bob"], patch, 2, patch.latest.text.replace(OTHER, ONE))
    assert page.context(cast["rita"], patch)["threads"][0].outdated


def test_viewed_falls_when_that_part_changes_and_no_other(cast: Any, patch: Patch) -> None:
    def seen() -> dict[str, bool]:
        return {one.name: one.viewed for one in page.context(cast["rita"], patch)["parts"]}

    for part in page.context(cast["rita"], patch)["parts"]:
        talk.view(cast["rita"], patch, part.name, part.digest)
    assert seen() == {"tasks/look": True, "tasks/done": True}
    actions.revise(cast["bob"], patch, 1, patch.latest.text.replace('"docs"', '"src"'))
    assert seen() == {"tasks/look": True, "tasks/done": False}
    talk.view(cast["rita"], patch, "tasks/look", "", viewed=False)
    assert seen() == {"tasks/look": False, "tasks/done": False}
