"""What a patch is judged by: its checks, and when what they found no longer counts."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from jobs_kit import do, wanted
from reviews_kit import LAST, ONE, OTHER, TWO, checked, ran, refused
from run_rows_kit import begun
from spakweb.face.reviews import page
from spakweb.store.jobs.models import Job
from spakweb.store.reviews.models import Check, Patch
from spakweb.work.reviews import actions, checks, rules
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import create_spec, save_version

HOUSE = """\
TASK shared {
  step two: tool.list_files { path: "." }
}
"""
IMPORTS = """\
AGENT Imports LEVEL 1 {
  IMPORT "house.spak"
  START -> look
  TASK look {
    step one: tool.list_files { path: "." }
    NEXT { success -> shared }
  }
}
"""


def test_a_text_with_errors_fails_and_holds_the_merge(cast: Any, patch: Patch) -> None:
    protect(cast["alice"], cast.spec, 1, required=["text", "none such"])
    patch.refresh_from_db()
    actions.judge(cast["rita"], patch, 1, True)
    assert "a check to end: the text is free of errors" in rules.missing(patch)
    assert checked(patch)["text"] == ("passed", "It has no errors.")
    assert rules.missing(patch) == []
    actions.revise(cast["bob"], patch, 1, patch.latest.text.replace("-> done", "-> nowhere"))
    assert checked(patch)["text"][0] == "failed"
    assert "a check to pass: the text is free of errors" in rules.missing(patch)
    body = cast.client("bob").get(reverse("spak-patch", args=[cast.team.slug, "small", 1]))
    assert "nowhere" in body.content.decode() and "it could not run" in body.content.decode()


def test_without_runs_there_is_nothing_to_judge(cast: Any, patch: Patch) -> None:
    found = checked(patch)
    assert found["actions"] == ("nothing", "No run of the spec has recorded an action yet.")
    assert found["replay"] == ("nothing", "No run of the spec can be replayed yet.")


def test_a_law_that_changed_makes_evidence_stale(cast: Any, patch: Patch) -> None:
    protect(cast["alice"], cast.spec, 1, required=["text"])
    actions.judge(cast["rita"], patch, 1, True)
    checked(patch)
    patch = Patch.objects.get(pk=patch.pk)
    assert rules.missing(patch) == []
    cast.team.rules = 'allowed_host("x.example").'
    cast.team.save(update_fields=["rules"])
    patch = Patch.objects.get(pk=patch.pk)
    assert rules.missing(patch) == ["a check to run again: the text is free of errors"]
    assert page.status(cast["bob"], patch)["again"]
    actions.repeat_check(cast["bob"], patch, 1)
    checked(patch)
    assert rules.missing(patch) == []


def test_a_file_that_is_imported_and_changed_makes_evidence_stale(cast: Any) -> None:
    """The patch is as it was, and no longer free of errors; a version of another spec changes nothing."""
    house = create_spec(cast["alice"], cast.team, "house", HOUSE)
    spec = create_spec(cast["alice"], cast.team, "imports", IMPORTS)
    protect(cast["alice"], spec, 1, required=["text"])
    patch = actions.propose(cast["bob"], spec, IMPORTS.replace('"."', '"tests"'), 1, "Elsewhere")
    assert checked(patch)["text"][0] == "passed"
    actions.judge(cast["alice"], Patch.objects.get(pk=patch.pk), 1, True)
    save_version(cast["alice"], cast.spec, cast.spec.head.text + "// more\n", 1)
    assert rules.missing(Patch.objects.get(pk=patch.pk)) == []
    save_version(cast["alice"], house, HOUSE.replace("TASK shared", "TASK other"), 1)
    patch = Patch.objects.get(pk=patch.pk)
    assert rules.missing(patch) == ["a check to run again: the text is free of errors"]
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], patch, 1)
    assert page.status(cast["bob"], patch)["again"]
    actions.repeat_check(cast["bob"], patch, 1)
    assert checked(patch)["text"][0] == "failed"


def test_a_check_of_an_older_revision_or_a_closed_patch_is_left(cast: Any, patch: Patch) -> None:
    first = patch.latest
    actions.revise(cast["bob"], patch, 1, patch.latest.text + "// more\n")
    do(checks.CHECK, first.pk)
    assert set(first.checks.values_list("state", flat=True)) == {Check.State.QUEUED}
    actions.close(cast["bob"], patch, 2)
    assert set(checked(patch).values()) == {("queued", "")}
    do(checks.CHECK, 0)  # a revision that is not there


def test_a_merge_waits_until_it_is_known_what_it_permits(cast: Any, patch: Patch) -> None:
    """Else a patch that is merged before the check ends needs no admin. Where an admin approved it that is
    decided already."""
    ran(cast, "odd")
    wait = "a check to end, or an admin to approve it: recorded actions under both texts"
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == [wait]
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], patch, 1)
    checked(patch)
    assert rules.missing(patch) == []
    patch.latest.checks.update(law="another")
    assert rules.missing(patch) == [wait]
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.missing(patch) == []


def test_recorded_actions_that_could_not_be_judged_need_an_admin(cast: Any) -> None:
    """What it newly permits is not known then, as before the check ends."""
    run = begun(cast.team, cast.spec.head, "odd", state="succeeded")
    type(run).objects.filter(pk=run.pk).update(count=5)
    text = cast.spec.head.text.replace("success -> done", "success -> done, timeout -> nowhere", 1)
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Elsewhere")
    assert checked(patch)["actions"][0] == "failed"
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == ["an admin to approve it, since its recorded actions could not be judged"]
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.missing(patch) == []


def test_the_first_runs_after_the_check_are_judged_before_the_merge(cast: Any, patch: Patch) -> None:
    """It found nothing to judge then; what the patch newly permits is known from these runs alone."""
    assert checked(patch)["actions"][0] == "nothing"
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == []
    ran(cast, "late")
    assert rules.missing(patch) == [
        "a check to end, or an admin to approve it: recorded actions under both texts"
    ]
    assert page.status(cast["bob"], patch)["again"]
    actions.repeat_check(cast["bob"], patch, 1)
    checked(patch)
    assert rules.missing(patch) == []


def test_what_cannot_be_read_is_said_and_fails_no_worker(cast: Any, patch: Patch) -> None:
    """A run whose records are damaged is left out of the actions, and unusable for a replay. Where no other
    is there it is not known what is newly permitted."""
    ran(cast, "odd", first=1)
    found = checked(patch)
    assert found["actions"] == ("look", "No recorded action could be judged: 1 run left out.")
    assert found["replay"][0] == "nothing"
    assert (
        "1 run left out, such as odd: "
        in cast.client("rita").get(reverse("spak-patch", args=[cast.team.slug, "small", 1])).content.decode()
    )
    assert "an admin to approve it, since it may permit actions that were denied" in rules.missing(patch)
    result = patch.latest.checks.get(name="replay").result
    assert [one["run"] for one in result["unusable"]] == ["odd"]
    ran(cast, "whole")
    actions.repeat_check(cast["bob"], patch, 1)
    found = checked(patch)
    assert found["actions"][0] == "nothing", "the patch calls both steps otherwise"
    assert found["actions"][1].endswith(", 2 not judged. 1 run left out.")
    assert found["replay"][1].startswith("1 recorded run, ")


def shown(cast: Any, patch: Patch) -> dict[str, tuple[str, str]]:
    """Pill and word of each check, as the page has them."""
    return {one["name"]: (one["pill"], one["word"]) for one in page.status(cast["rita"], patch)["checks"]}


@pytest.mark.findings("B6")
def test_what_is_known_of_no_run_to_its_end_is_not_green(cast: Any) -> None:
    """The first step is known, what the second one does under the patch is not."""
    ran(cast, "whole")
    text = cast.spec.head.text.replace(TWO, LAST)
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere")
    found = checked(patch)
    assert found["replay"][0] == "nothing" and "coverage 50 %: 0 end alike" in found["replay"][1]
    assert shown(cast, patch)["replay"] == ("cancelled", "Nothing known")


@pytest.mark.findings("B6")
def test_an_action_that_the_patch_takes_otherwise_is_not_judged(cast: Any) -> None:
    ran(cast, "whole")
    text = cast.spec.head.text.replace(TWO, LAST)
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere")
    state, words = checked(patch)["actions"]
    assert (state, words.endswith("0 newly denied, 1 not judged.")) == ("passed", True)
    assert shown(cast, patch)["actions"] == ("cancelled", "Partly known")
    row = patch.latest.checks.get(name="actions")
    assert row.result["unknown"][0]["why"] == "its step two calls list_files otherwise"
    actions.revise(cast["bob"], patch, 1, text.replace(ONE, OTHER))
    assert checked(patch)["actions"][0] == "nothing"
    assert shown(cast, patch)["actions"] == ("cancelled", "Nothing known")
    actions.revise(cast["bob"], patch, 2, cast.spec.head.text + "// more\n")
    checked(patch)
    assert set(shown(cast, patch).values()) == {("succeeded", "Passed")}


def test_checks_that_end_their_workers_are_left_to_a_person(cast: Any, patch: Patch) -> None:
    """It may be the check that kills them."""
    key = str(patch.latest.pk)
    assert not page.status(cast["bob"], patch)["again"]
    Job.objects.filter(kind=checks.CHECK, key=key).update(tries=len(checks.KIND.waits) + 1)
    do(checks.CHECK, key)
    assert wanted(checks.CHECK) == [] and page.status(cast["bob"], patch)["again"]
    actions.repeat_check(cast["bob"], patch, 1)
    assert wanted(checks.CHECK) == [key] and not page.status(cast["bob"], patch)["again"]
    assert {outcome for outcome, _ in checked(patch).values()} <= {"passed", "nothing"}
