"""Conflicts that are decided by task, forks, archived specs, and privileged changes."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from reviews_kit import LAST, ONE, OTHER, TWO, refused
from spakweb.store.reviews.models import HistoryRecord, Patch
from spakweb.store.specs.models import SpecVersion
from spakweb.work.reviews import actions, rules
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import archive, save_version


def test_conflicts_are_decided_by_task(cast: Any, patch: Patch) -> None:
    theirs = cast.spec.head.text.replace(TWO, TWO.replace('"."', '"src"'))
    save_version(cast["alice"], cast.spec, theirs, 1)
    args, bob = [cast.team.slug, "small", 1], cast.client("bob")
    do = reverse("spak-patch-do", args=args)
    answer = bob.post(do, {"do": "update", "revision": "1"})
    assert answer["Location"] == reverse("spak-patch-conflicts", args=args)
    body = bob.get(answer["Location"]).content.decode()
    assert "1 conflict of patch" in body and "Task <code>done</code>" in body
    form = {"do": "decide", "revision": "1", "head": "2", "part-0": "done", "side-0": "theirs"}
    assert bob.post(do, {**form, "side-0": ""}).status_code == 409
    assert bob.post(do, {**form, "head": "1"}).status_code == 409
    assert patch.revisions.count() == 1
    assert bob.post(do, form).status_code == 302
    made = patch.latest
    assert (made.base.number, made.text) == (2, theirs.replace(ONE, OTHER))


def test_neighbouring_tasks_of_two_people_need_no_decision(cast: Any, patch: Patch) -> None:
    first = cast.spec.head.text.replace(ONE, OTHER)
    mine = actions.propose(cast["bob"], cast.spec, first, 1, "First")
    save_version(cast["alice"], cast.spec, cast.spec.head.text.replace(TWO, LAST), 1)
    assert actions.update(cast["bob"], mine, 1).text == patch.latest.text


def test_a_fork_begins_with_the_newest_revision(cast: Any, patch: Patch) -> None:
    made = actions.fork(cast["rita"], patch, "", "")
    assert (made.number, made.author, made.latest.text) == (2, cast["rita"], patch.latest.text)
    assert made.title == "Look elsewhere (from patch 1)"


def test_a_spec_that_was_archived_meanwhile_takes_no_merge(cast: Any, patch: Patch) -> None:
    actions.judge(cast["rita"], patch, 1, True)
    archive(cast["alice"], cast.spec)
    with refused("web.archived"):
        actions.merge(cast["bob"], patch, 1)
    assert not HistoryRecord.objects.exists() and SpecVersion.objects.filter(spec=cast.spec).count() == 1
    body = cast.client("bob").get(reverse("spak-patch", args=[cast.team.slug, "small", 1])).content.decode()
    assert "is archived: nothing is merged" in body


def test_privileged_changes_can_ask_for_an_admin(cast: Any, patch: Patch) -> None:
    protect(cast["alice"], cast.spec, 1, by_admin=True)
    patch = Patch.objects.get(pk=patch.pk)
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == ["an admin to approve it, since it makes 2 privileged changes"]
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.missing(patch) == []
