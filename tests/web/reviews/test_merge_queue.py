"""The merge queue: one patch after the other, each checked on top of those before it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from jobs_kit import do, wanted, worked
from spakweb.ground import clock
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Membership, Role
from spakweb.store.jobs.models import Job
from spakweb.store.reviews.models import Check, Patch, Queued
from spakweb.work.reviews import actions, checks, merge_queue, queue_steps, rules
from spakweb.work.reviews.protection import follow_team, protect, protect_team
from spakweb.work.specs.actions import archive

ONE, TWO = 'step one: tool.list_files { path: "." }', 'step two: tool.list_files { path: "." }'
EDGE, TASK = "NEXT { success -> done }", f"  TASK done {{\n    {TWO}\n  }}\n"


def refused(code: str) -> Any:
    return pytest.raises(Refused, check=lambda why: why.code == code)


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
    do(checks.CHECK, made.latest.pk)
    return made


def work(cast: Any) -> None:
    """What workers do until the queue is empty."""
    for _ in range(20):
        if not queue_steps.step(cast.spec.pk):
            entry = merge_queue.waiting(cast.spec).first()
            if entry is None:
                return
            do(checks.CHECK, entry.patch.latest.pk)
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
    do(checks.CHECK, first.latest.pk)
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
    assert ended(second) == (
        "refused",
        "it needs an approval by the person who requested changes, or a new revision",
    )
    second = Patch.objects.get(pk=second.pk)
    actions.judge(team["alice"], second, 1, True)
    actions.update(team["bob"], second, 1)
    actions.judge(team["alice"], second, 2, False)
    save_version_as_patch(team, EDGE, EDGE.replace("success", "timeout"))
    second = Patch.objects.get(pk=second.pk)
    actions.update(team["bob"], second, 2)
    assert any("requested changes" in one for one in rules.missing(Patch.objects.get(pk=second.pk)))


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
    do(checks.CHECK, patch.latest.pk)
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


def test_checks_that_are_stale_begin_again(team: Any) -> None:
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    rows = Check.objects.filter(revision=patch.latest)
    actions.queue(team["bob"], patch, 1)
    rows.update(law="another")
    assert not queue_steps.step(team.spec.pk) and set(rows.values_list("state", flat=True)) == {"queued"}
    assert not queue_steps.step(team.spec.pk), "it waits"
    work(team)
    assert ended(patch)[0] == "merged"


def test_a_patch_whose_checks_end_their_workers_leaves_the_queue(team: Any) -> None:
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    actions.queue(team["bob"], patch, 1)
    actions.repeat_check(team["bob"], patch, 1)
    Job.objects.filter(kind=checks.CHECK).update(tries=len(checks.KIND.waits) + 1)
    do(checks.CHECK, patch.latest.pk)
    assert queue_steps.step(team.spec.pk)
    assert ended(patch) == ("refused", "its checks did not end")
    actions.repeat_check(team["bob"], patch, 1)
    actions.queue(team["bob"], patch, 1)
    work(team)
    assert ended(patch)[0] == "merged"


@pytest.mark.parametrize("other", ["queued", "running"])
def test_a_required_check_that_failed_ends_the_waiting_for_others(team: Any, other: str) -> None:
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    actions.queue(team["bob"], patch, 1)
    rows = Check.objects.filter(revision=patch.latest)
    rows.filter(name="text").update(state=Check.State.FAILED)
    rows.filter(name="actions").update(state=other, ended_at=None)
    assert queue_steps.step(team.spec.pk)
    assert ended(patch) == ("refused", "it needs a check to pass: the text is free of errors")


def test_a_failure_that_is_stale_is_judged_again(team: Any) -> None:
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    actions.queue(team["bob"], patch, 1)
    Check.objects.filter(revision=patch.latest, name="text").update(state="failed", law="another")
    assert not queue_steps.step(team.spec.pk) and ended(patch)[0] == "waiting"
    work(team)
    assert ended(patch)[0] == "merged"


def test_a_queue_goes_on_by_itself(team: Any) -> None:
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    assert worked(merge_queue.ADVANCE) == []
    actions.queue(team["bob"], patch, 1)
    Check.objects.filter(revision=patch.latest).update(law="another")
    key = str(team.spec.pk)
    assert worked(merge_queue.ADVANCE) == [key]
    assert worked(merge_queue.ADVANCE) == [], "it waits for the checks"
    Job.objects.update(done_at=clock.now() - queue_steps.REPEAT * 2)
    assert worked(merge_queue.ADVANCE) == [key] and ended(patch)[0] == "waiting"
    do(checks.CHECK, patch.latest.pk)
    Job.objects.update(done_at=clock.now() - queue_steps.REPEAT * 2)
    assert worked(merge_queue.ADVANCE) == [key] and ended(patch)[0] == "merged"
    Job.objects.update(done_at=clock.now() - queue_steps.REPEAT * 2)
    assert worked(merge_queue.ADVANCE) == []


def test_the_end_of_a_check_asks_for_its_queue(team: Any, django_capture_on_commit_callbacks: Any) -> None:
    patch = proposed(team, ONE, ONE.replace('"."', '"tests"'))
    with django_capture_on_commit_callbacks(execute=True):
        actions.queue(team["bob"], patch, 1)
    assert wanted(merge_queue.ADVANCE) == [str(team.spec.pk)]
    Job.objects.filter(kind=merge_queue.ADVANCE).delete()
    actions.repeat_check(team["bob"], patch, 1)
    with django_capture_on_commit_callbacks(execute=True):
        do(checks.CHECK, patch.latest.pk)
    assert wanted(merge_queue.ADVANCE) == [str(team.spec.pk)]
