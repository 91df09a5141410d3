"""The merge queue: one patch after the other, each checked on top of those before it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from django.utils import timezone

from spakweb.audit.models import Event
from spakweb.errors import Refused
from spakweb.reviews import actions, checks, inbox, jobs, merge_queue, queue_steps, rules
from spakweb.reviews.models import Check, Patch, Queued
from spakweb.reviews.protection import follow_team, protect, protect_team
from spakweb.specs.actions import archive
from spakweb.teams.models import Membership, Role

ONE, TWO = 'step one: tool.list_files { path: "." }', 'step two: tool.list_files { path: "." }'
EDGE, TASK = "NEXT { success -> done }", f"  TASK done {{\n    {TWO}\n  }}\n"


def refused(code: str) -> Any:
    return pytest.raises(Refused, check=lambda why: why.code == code)


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What workers were asked to do."""
    found: list[tuple[str, Any]] = []
    monkeypatch.setattr(merge_queue, "ask", lambda spec: found.append(("queue", spec)))
    monkeypatch.setattr(checks, "send", lambda key: found.append(("check", key)))
    return found


@pytest.fixture
def team(cast: Any) -> Any:
    """The cast, whose spec is merged by the queue and whose approvals follow."""
    protect(cast["alice"], cast.spec, 1, queue=True, follow=True)
    cast.spec.refresh_from_db()
    return cast


def proposed(cast: Any, old: str, new: str, title: str = "A change", by: str = "bob") -> Patch:
    """A patch against version 1, approved, whose checks have ended."""
    base = cast.spec.versions.get(number=1)
    made = actions.propose(cast[by], cast.spec, base.text.replace(old, new), 1, title)
    actions.judge(cast["rita"], made, 1, True)
    checks.check(made.latest.pk)
    return made


def work(cast: Any) -> None:
    """What workers do until the queue is empty."""
    for _ in range(20):
        if not queue_steps.step(cast.spec.pk):
            entry = merge_queue.waiting(cast.spec).first()
            if entry is None:
                return
            checks.check(entry.patch.latest.pk)
    raise AssertionError("the queue does not end")


def ended(patch: Patch) -> tuple[str, str]:
    last = Queued.objects.filter(patch=patch).latest("pk")
    return last.state, last.words


def test_two_patches_that_pass_alone_and_not_together_are_found(team: Any) -> None:
    """One renames the task, the other adds an edge to it under its old name."""
    text = team.spec.head.text
    first = actions.propose(
        team["bob"], team.spec, text.replace("-> done", "-> last").replace("TASK done", "TASK last"), 1, "One"
    )
    second = proposed(team, "AGENT", "// Small.\nAGENT", "Two")
    third = proposed(team, EDGE, "NEXT { success -> done, fail -> done }", "Three")
    fourth = proposed(
        team, "  TASK done", "  TASK extra {\n    NEXT { success -> done }\n  }\n  TASK done", "Four"
    )
    actions.judge(team["rita"], first, 1, True)
    checks.check(first.latest.pk)
    for one in (first, second, third, fourth):
        assert one.latest.checks.get(name="text").state == "passed"
        actions.judge(team["alice"], one, 1, True)  # what changes the ways of a run needs an admin
        actions.queue(team["bob"], one, 1)
    assert [one.patch for one in merge_queue.waiting(team.spec)] == [first, second, third, fourth]
    work(team)
    assert ended(first) == ("merged", "Merged as version 2")
    assert ended(second) == ("merged", "Merged as version 3")
    assert ended(third) == ("refused", "it conflicts with version 3 in 1 place")
    assert ended(fourth) == ("refused", "it needs a check to pass: the text is free of errors")
    assert [one.number for one in team.spec.versions.all()] == [3, 2, 1]
    result = fourth.latest.checks.get(name="text").result
    assert any("done" in one["message"] for one in result["errors"])


def test_a_rebased_patch_is_merged_as_it_was_checked(team: Any) -> None:
    first = proposed(team, ONE, ONE.replace('"."', '"tests"'), "One")
    second = proposed(team, TWO, TWO.replace('"."', '"docs"'), "Two")
    for one in (first, second):
        actions.queue(team["bob"], one, 1)
    work(team)
    team.spec.refresh_from_db()
    latest = second.latest
    assert (
        team.spec.head.text
        == latest.text
        == team.spec.versions.get(number=1)
        .text.replace(ONE, ONE.replace('"."', '"tests"'))
        .replace(TWO, TWO.replace('"."', '"docs"'))
    )
    assert (latest.number, latest.base.number, latest.rebases.number) == (2, 2, 1)
    assert {one.state for one in latest.checks.filter(name="text")} == {"passed"}
    kept = team.spec.head.provenance
    assert (kept["merged_by"], kept["by_queue"]) == ("bob", True)
    assert [(one["by"], one["revision"]) for one in kept["approved"]] == [("rita", 1)]
    second.refresh_from_db()
    assert second.merged == team.spec.head


def test_approvals_fall_unless_the_rules_say_otherwise(team: Any) -> None:
    protect(team["alice"], team.spec, 1, queue=True)
    first = proposed(team, ONE, ONE.replace('"."', '"tests"'), "One")
    second = proposed(team, TWO, TWO.replace('"."', '"docs"'), "Two")
    for one in (first, second):
        actions.queue(team["bob"], one, 1)
    work(team)
    assert ended(first)[0] == "merged"
    assert ended(second) == ("refused", "it needs 1 more approval")
    second = Patch.objects.get(pk=second.pk)
    assert second.latest.base.number == 2 and second.state == "open"
    actions.judge(team["rita"], second, 2, True)
    actions.queue(team["bob"], second, 2)
    work(team)
    assert ended(second) == ("merged", "Merged as version 3")


def test_who_queues_does_not_write_what_the_queue_makes(team: Any) -> None:
    """Rita approved it and queues it: bringing it up to date makes her no author."""
    save_version_as_patch(team, ONE, ONE.replace('"."', '"tests"'))
    second = proposed(team, TWO, TWO.replace('"."', '"docs"'), "Two")
    actions.queue(team["rita"], second, 1)
    work(team)
    assert ended(second)[0] == "merged" and rules.authors(second) == {team["bob"].pk}


def save_version_as_patch(cast: Any, old: str, new: str) -> None:
    made = proposed(cast, old, new)
    actions.judge(cast["alice"], made, 1, True)
    actions.queue(cast["bob"], made, 1)
    work(cast)


def test_a_refusal_is_not_lost_with_the_revision_that_the_queue_makes(team: Any) -> None:
    first = proposed(team, ONE, ONE.replace('"."', '"tests"'), "One")
    second = proposed(team, TWO, TWO.replace('"."', '"docs"'), "Two")
    for one in (first, second):
        actions.queue(team["bob"], one, 1)
    actions.judge(team["alice"], second, 1, False, "Not yet.")
    work(team)
    assert ended(second) == ("refused", "it needs who asked for changes to approve it, or a new revision")
    second = Patch.objects.get(pk=second.pk)
    actions.judge(team["alice"], second, 1, True)
    actions.update(team["bob"], second, 1)
    actions.judge(team["alice"], second, 2, False)
    save_version_as_patch(team, EDGE, EDGE.replace("success", "timeout"))
    second = Patch.objects.get(pk=second.pk)
    actions.update(team["bob"], second, 2)
    assert any("asked for changes" in one for one in rules.missing(Patch.objects.get(pk=second.pk)))


def test_merging_goes_by_the_queue_alone_and_only_where_there_is_one(team: Any) -> None:
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    with refused("web.patch_queue"):
        actions.merge(team["bob"], patch, 1)
    with pytest.raises(PermissionDenied):
        actions.queue(team["vera"], patch, 1)
    entry = actions.queue(team["bob"], patch, 1)
    assert actions.queue(team["rita"], patch, 1) == entry and Queued.objects.count() == 1
    actions.unqueue(team["rita"], patch)
    actions.unqueue(team["rita"], patch)
    assert ended(patch) == ("left", "rita took it out")
    assert Event.objects.filter(action="patch.unqueued").count() == 1
    protect(team["alice"], team.spec, 1)
    with refused("web.patch_queue"):
        actions.queue(team["bob"], patch, 1)
    assert actions.merge(team["bob"], patch, 1).number == 2


def test_what_lacks_approvals_or_failed_is_not_queued(team: Any) -> None:
    text = team.spec.head.text
    patch = actions.propose(team["bob"], team.spec, text.replace(ONE, "step one: tool.nothing { }"), 1, "x")
    with refused("web.patch_waits"):
        actions.queue(team["bob"], patch, 1)
    actions.judge(team["alice"], patch, 1, True)
    assert actions.queue(team["bob"], patch, 1).state == "waiting"  # its checks have not ended
    actions.unqueue(team["bob"], patch)
    checks.check(patch.latest.pk)
    with refused("web.patch_waits"):
        actions.queue(team["bob"], patch, 1)
    archive(team["alice"], team.spec)
    with refused("web.archived"):
        actions.queue(team["bob"], patch, 1)


def test_a_new_revision_a_close_and_a_person_that_left_take_it_out(team: Any) -> None:
    one, two, three = (proposed(team, ONE, ONE.replace('"."', f'"{name}"'), name) for name in "abc")
    for patch in (one, two, three):
        actions.queue(team["bob"], patch, 1)
    actions.revise(team["bob"], one, 1, one.latest.text + "// more\n")
    actions.close(team["bob"], two, 1)
    assert ended(one) == ("left", "bob made revision 2") and ended(two) == ("left", "bob closed it")
    Membership.objects.filter(user=team["bob"]).update(role=Role.VIEWER)
    work(team)
    assert ended(three) == ("refused", "bob queued it and may no longer merge")
    assert team.spec.versions.count() == 1


def test_an_archived_spec_and_a_change_that_is_there_already(team: Any) -> None:
    one, two, three = (proposed(team, ONE, ONE.replace('"."', '"tests"'), name) for name in "abc")
    for patch in (one, two):
        actions.queue(team["bob"], patch, 1)
    work(team)
    assert ended(two) == ("refused", "version 2 has all of it already")
    actions.queue(team["bob"], three, 1)
    archive(team["alice"], team.spec)
    work(team)
    assert ended(three) == ("refused", "small is archived")


def test_reverts_go_through_the_queue_of_a_protected_spec(team: Any) -> None:
    """With approvals of their own; of two the second has nothing left; one that conflicts is thrown out."""
    first = team.spec.head.text
    one = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    actions.queue(team["bob"], one, 1)
    work(team)
    backs = [actions.revert(team["bob"], Patch.objects.get(pk=one.pk)) for _ in range(2)]
    with refused("web.patch_waits"):
        actions.queue(team["bob"], backs[0], 1)
    for back in backs:
        actions.judge(team["rita"], back, 1, True)
        actions.queue(team["bob"], back, 1)
    work(team)
    team.spec.refresh_from_db()
    assert ended(backs[0]) == ("merged", "Merged as version 3") and team.spec.head.text == first
    assert ended(backs[1]) == ("refused", "version 3 has all of it already")
    made = actions.propose(team["bob"], team.spec, first.replace(ONE, ONE.replace('"."', '"z"')), 3, "Other")
    actions.judge(team["rita"], made, 1, True)
    actions.queue(team["bob"], made, 1)
    work(team)
    late = actions.revert(team["bob"], Patch.objects.get(pk=one.pk))
    assert late.latest.base.number == 2
    actions.judge(team["rita"], late, 1, True)
    actions.queue(team["bob"], late, 1)
    work(team)
    assert ended(late) == ("refused", "it conflicts with version 4 in 1 place")


def test_rules_of_the_team_that_change_hold_for_what_waits(team: Any) -> None:
    follow_team(team["alice"], team.spec)
    protect_team(team["alice"], team.team, 1, queue=True, follow=True)
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    actions.queue(team["bob"], patch, 1)
    protect_team(team["alice"], team.team, 2, queue=True, follow=True)
    work(team)
    assert ended(patch) == ("refused", "it needs 1 more approval")
    protect_team(team["alice"], team.team, 1, queue=True, follow=True)
    actions.queue(team["bob"], Patch.objects.get(pk=patch.pk), 1)
    protect_team(team["alice"], team.team, 1)
    assert actions.merge(team["bob"], Patch.objects.get(pk=patch.pk), 1).number == 2
    assert ended(patch) == ("merged", "Merged as version 2")


def test_checks_that_are_stale_or_lost_begin_again(team: Any, asked: list[tuple[str, Any]]) -> None:
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    key = patch.latest.pk
    rows = Check.objects.filter(revision=key)
    actions.queue(team["bob"], patch, 1)
    rows.update(law="another")
    assert not queue_steps.step(team.spec.pk) and set(rows.values_list("state", flat=True)) == {"queued"}
    assert not queue_steps.step(team.spec.pk)
    late = timezone.now() - queue_steps.RESEND_AFTER - timedelta(seconds=1)
    rows.update(made_at=timezone.now() + timedelta(hours=1))  # the clock was set back
    assert all(map(checks.is_lost, rows))
    rows.update(made_at=late)
    assert not queue_steps.step(team.spec.pk)
    assert min(rows.values_list("made_at", flat=True)) < late + timedelta(
        seconds=30
    )  # `replay` decides nothing
    assert max(rows.values_list("made_at", flat=True)) > late + timedelta(seconds=30)
    lost = timezone.now() - timedelta(seconds=checks.LOST_S + 1)
    for _ in range(queue_steps.LOST_MOST):
        rows.update(made_at=lost, state="running", ended_at=None)
        assert not queue_steps.step(team.spec.pk)
        assert set(rows.values_list("state", flat=True)) == {"queued"}
    rows.update(made_at=lost, state="running", ended_at=None)
    assert queue_steps.step(team.spec.pk)
    assert ended(patch) == ("refused", "its checks did not end")
    actions.queue(team["bob"], patch, 1)
    checks.check(key)
    work(team)
    assert ended(patch)[0] == "merged"


def test_workers_are_asked_when_something_may_go_on(
    team: Any, asked: list[tuple[str, Any]], django_capture_on_commit_callbacks: Any
) -> None:
    key, message = team.spec.pk, ("queue", team.spec.pk)
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    assert message not in asked
    with django_capture_on_commit_callbacks(execute=True):
        actions.queue(team["bob"], patch, 1)
    assert asked.count(message) == 1
    checks.check(patch.latest.pk)
    assert asked.count(message) == 2
    jobs.cache.delete(f"reviews.queue.{key}")
    jobs.put_back()
    jobs.put_back()
    assert asked.count(message) == 3  # the sweep asks now and then
    jobs.go_on(key)
    assert ended(patch)[0] == "merged"
    jobs.cache.delete(f"reviews.queue.{key}")
    jobs.put_back()
    assert asked.count(message) == 3


def test_the_reason_reaches_author_and_who_queued_it(
    team: Any, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.REVIEW_MAIL = True
    save_version_as_patch(team, ONE, ONE.replace('"."', '"tests"'))
    mail.outbox.clear()
    patch = proposed(team, ONE, ONE.replace('"."', '"docs"'), "Late")
    actions.queue(team["rita"], patch, 1)
    with django_capture_on_commit_callbacks(execute=True):
        work(team)
    last = mail.outbox[-1]
    assert sorted(last.bcc) == ["bob@spak.example", "rita@spak.example"]
    assert "The merge queue took it out: it conflicts with version 2 in 1 place." in last.body
    for name, need in (("bob", "queue"), ("rita", "queue"), ("alice", "review"), ("vera", "")):
        needs = {one.number: one.need for one in inbox.waiting(team[name], team.team)}
        assert needs.get(patch.number, "") == need
    body = team.client("bob").get(reverse("spak-patch", args=[team.team.slug, "small", patch.number]))
    assert "The merge queue took it out: it conflicts with version 2" in body.content.decode()


def test_the_page_shows_the_place_and_takes_it_out(team: Any) -> None:
    one = proposed(team, ONE, ONE.replace('"."', '"tests"'), "One")
    two = proposed(team, TWO, TWO.replace('"."', '"docs"'), "Two")
    bob, slug = team.client("bob"), team.team.slug
    for patch in (one, two):
        do = reverse("spak-patch-do", args=[slug, "small", patch.number])
        assert bob.post(do, {"do": "queue", "revision": "1"}).status_code == 302
    address = reverse("spak-patch", args=[slug, "small", two.number])
    body = bob.get(address).content.decode()
    assert "place 2: it waits for the patches before it" in body and "Take out of the queue" in body
    assert [(row.number, row.need) for row in inbox.waiting(team["bob"], team.team)] == []
    listed = bob.get(reverse("spak-patch-list", args=[slug, "small"])).content.decode()
    waiting = listed[listed.index(">Merge queue<") :]
    assert waiting.index("#1: One") < waiting.index("#2: Two")
    assert 'name="merge_queue" value="1" checked' not in listed  # an editor sets no rules
    answer = bob.post(do, {"do": "unqueue", "back": "list"})
    assert answer["Location"] == reverse("spak-patch-list", args=[slug, "small"])
    assert "Queue to merge" in bob.get(address).content.decode()
    rules_form = {"approvals": "1", "merge_queue": "1", "approvals_follow": "1"}
    alice = team.client("alice")
    alice.post(reverse("spak-spec-protect", args=[slug, "small"]), rules_form)
    team.spec.refresh_from_db()
    assert team.spec.merge_queue and team.spec.approvals_follow
    assert (
        'name="merge_queue" value="1" checked'
        in alice.get(reverse("spak-patch-list", args=[slug, "small"])).content.decode()
    )
