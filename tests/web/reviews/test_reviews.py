"""Patches: what is merged is what was reviewed, once, and by whom the rules say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from spakweb.ground.audit.models import Event
from spakweb.ground.audit.words import WORDS
from spakweb.ground.errors import Refused
from spakweb.store.reviews.models import Patch
from spakweb.store.specs.models import SpecVersion
from spakweb.work.reviews import actions, rules, talk
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import restore, save_version

OTHER = 'step one: tool.list_files { path: "tests" }'
LAST = 'step two: tool.list_files { path: "docs" }'
SHELL = 'step two: tool.run { cmd: "true" }'
ONE, TWO = 'step one: tool.list_files { path: "." }', 'step two: tool.list_files { path: "." }'


@pytest.fixture
def both(cast: Any) -> Patch:
    """Bob's patch with two edits."""
    text = cast.spec.head.text.replace(ONE, OTHER).replace(TWO, LAST)
    return actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere", "It is faster.")


def refused(code: str) -> Any:
    return pytest.raises(Refused, check=lambda why: why.code == code)


def test_what_was_reviewed_is_merged_once(cast: Any, both: Patch) -> None:
    kept = actions.drop_edit(cast["bob"], both, 1, 1)
    assert kept.text == cast.spec.head.text.replace(ONE, OTHER) and kept.why == "Without edit 2"
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], both, 2)
    actions.judge(cast["rita"], both, 2, True, "Good.")
    made = actions.merge(cast["bob"], both, 2)
    assert (made.text, made.number, made.content_hash) == (kept.text, 2, kept.content_hash)
    assert made.message == "Patch 1, revision 2: Look elsewhere"
    with refused("web.patch_closed"):
        actions.merge(cast["bob"], both, 2)
    assert cast.spec.versions.count() == 2
    event = Event.objects.get(action="patch.merged")
    assert event.after == made.content_hash and "approved by rita" in event.thing


def test_a_merged_patch_is_reverted_by_a_patch(cast: Any, both: Patch) -> None:
    actions.judge(cast["rita"], both, 1, True)
    actions.merge(cast["bob"], both, 1)
    both.refresh_from_db()
    back = actions.revert(cast["bob"], both)
    assert (back.number, back.reverts, back.latest.text) == (2, both, cast.spec.versions.get(number=1).text)
    actions.judge(cast["rita"], back, 1, True)
    assert actions.merge(cast["bob"], back, 1).number == 3


def test_a_revert_of_what_others_changed_since_is_a_patch_with_conflicts(cast: Any, both: Patch) -> None:
    """It begins with the merged version, so that the page of conflicts decides what comes of it."""
    actions.judge(cast["rita"], both, 1, True)
    actions.merge(cast["bob"], both, 1)
    spec = type(cast.spec).objects.get(pk=cast.spec.pk)
    save_version(cast["alice"], spec, spec.head.text.replace('"tests"', '"src"'), 2)
    back = actions.revert(cast["bob"], Patch.objects.get(pk=both.pk))
    assert (back.latest.base.number, back.latest.text) == (2, spec.versions.get(number=1).text)
    assert rules.missing(back)[-1].startswith("to be brought up to date")
    with refused("web.patch_conflict"):
        actions.update(cast["bob"], back, 1)
    [conflict] = actions.conflicts(back).conflicts
    assert conflict.part == "look"
    made = actions.decide(cast["bob"], back, 1, 3, {"look": conflict.mine})
    assert made.text == spec.versions.get(number=1).text


def test_a_revert_keeps_what_others_changed_beside_it(cast: Any, both: Patch) -> None:
    """Neighbouring tasks are told apart, as where a patch is brought up to date."""
    one = actions.drop_edit(cast["bob"], both, 1, 1)
    actions.judge(cast["rita"], both, 2, True)
    actions.merge(cast["bob"], both, 2)
    spec = type(cast.spec).objects.get(pk=cast.spec.pk)
    save_version(cast["alice"], spec, one.text.replace(TWO, LAST), 2)
    back = actions.revert(cast["bob"], Patch.objects.get(pk=both.pk))
    assert back.latest.base.number == 3
    assert back.latest.text == spec.versions.get(number=1).text.replace(TWO, LAST)
    save_version(cast["alice"], type(spec).objects.get(pk=spec.pk), spec.versions.get(number=1).text, 3)
    with refused("web.patch_empty"):
        actions.revert(cast["bob"], Patch.objects.get(pk=both.pk))


def test_authors_do_not_approve(cast: Any) -> None:
    text = cast.spec.head.text.replace(ONE, OTHER)
    patch = actions.propose(cast["rita"], cast.spec, text, 1, "Mine")
    with pytest.raises(PermissionDenied):
        actions.judge(cast["rita"], patch, 1, True)
    with pytest.raises(PermissionDenied):
        actions.judge(cast["bob"], patch, 1, True)  # an editor is no reviewer
    actions.judge(cast["alice"], patch, 1, True)
    actions.revise(cast["alice"], patch, 1, text + "// more\n")
    assert rules.standing_approvals(patch) == []  # she is one of its authors now


def test_approvals_fall_with_a_new_meaning_and_stay_with_new_formatting(cast: Any, both: Patch) -> None:
    text = both.latest.text
    actions.judge(cast["rita"], both, 1, True)
    actions.revise(cast["bob"], both, 1, text.replace("  START", "    START"))
    assert [one.user for one in rules.standing_approvals(both)] == [cast["rita"]]
    actions.revise(cast["bob"], both, 2, text.replace('"docs"', '"src"'))
    assert rules.standing_approvals(both) == []


@pytest.mark.parametrize(
    ("old", "new", "stands"),
    [
        ("// one\n", "// one \n\n", True),
        ("// one\n", "// two\n", False),
        ("// one\n", "", False),
        ("// one\n  START -> look\n", "START -> look\n  // one\n", False),
        ("// one\n", "// one\n# \u202eeno\n", False),
    ],
)
def test_a_comment_is_what_was_approved(cast: Any, old: str, new: str, stands: bool) -> None:
    """People read it and may be misled by it: neither its words nor its place change under an approval."""
    text = cast.spec.head.text.replace("START", "// one\n  START", 1)
    assert "// one\n  START -> look\n" in text
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Comment")
    actions.judge(cast["rita"], patch, 1, True)
    actions.revise(cast["bob"], patch, 1, text.replace(old, new))
    assert bool(rules.standing_approvals(patch)) is stands


@pytest.mark.parametrize("broken", ["{text}}}\n", "{text}TASK {{\n", "@@@ {text}"])
def test_a_text_that_can_no_longer_be_read_is_no_formatting(cast: Any, both: Patch, broken: str) -> None:
    """What the parser makes of it may be the same: the approvals were for a text that runs."""
    actions.judge(cast["rita"], both, 1, True)
    actions.revise(cast["bob"], both, 1, broken.format(text=both.latest.text))
    assert rules.standing_approvals(both) == []
    made = actions.propose(cast["bob"], cast.spec, broken.format(text=cast.spec.head.text), 1, "Broken")
    where = reverse("spak-patch", args=[cast.team.slug, "small", made.number])
    body = cast.client("rita").get(where).content.decode()
    assert "Only the layout" not in body and "It cannot be read as a whole" in body
    assert "Formatting only" not in body


def test_a_refusal_holds_a_patch_until_it_is_answered(cast: Any, both: Patch) -> None:
    actions.judge(cast["alice"], both, 1, True)
    actions.judge(cast["rita"], both, 1, False, "Why docs?")
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], both, 1)
    actions.judge(cast["rita"], both, 1, True)
    assert actions.merge(cast["bob"], both, 1).number == 2


def test_a_refusal_outlives_what_approvals_outlive(cast: Any, both: Patch) -> None:
    """Else an author answers a request for changes with a blank: the approvals stay and it falls."""
    text, held = both.latest.text, "an approval by the person who requested changes, or a new revision"
    actions.judge(cast["alice"], both, 1, True)
    actions.judge(cast["rita"], both, 1, False, "Why docs?")
    actions.revise(cast["bob"], both, 1, text.replace("  START", "    START"))
    assert rules.missing(both) == [held]
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], both, 2)
    actions.revise(cast["bob"], both, 2, text.replace('"docs"', '"src"'))
    assert rules.missing(both) == ["1 more approval"]
    actions.judge(cast["rita"], both, 3, True)
    actions.revise(cast["bob"], both, 3, text)
    assert held in rules.missing(both)
    actions.judge(cast["rita"], both, 4, True)
    assert rules.missing(both) == []


def test_a_refusal_of_who_revises_it_is_answered_by_that(cast: Any, both: Patch) -> None:
    """They approve no patch that they wrote a revision of: it would wait for ever."""
    actions.judge(cast["rita"], both, 1, False, "The layout.")
    actions.revise(cast["rita"], both, 1, both.latest.text.replace("  START", "    START"))
    actions.judge(cast["alice"], both, 2, True)
    assert rules.missing(both) == []


def test_what_widens_needs_an_admin(cast: Any) -> None:
    text = cast.spec.head.text.replace(TWO, SHELL)
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Run something")
    actions.judge(cast["rita"], patch, 1, True)
    assert any("admin" in need for need in rules.missing(patch))
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.missing(patch) == []


def test_a_protected_spec_takes_patches_alone(cast: Any, both: Patch) -> None:
    with pytest.raises(PermissionDenied):
        protect(cast["rita"], cast.spec, 2)
    with refused("web.approvals"):
        protect(cast["alice"], cast.spec, 10)
    protect(cast["alice"], cast.spec, 2)
    with refused("web.protected"):
        save_version(cast["alice"], cast.spec, both.latest.text, 1)
    actions.judge(cast["rita"], both, 1, True)
    assert rules.missing(Patch.objects.get(pk=both.pk)) == ["1 more approval"]
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], Patch.objects.get(pk=both.pk), 1)
    actions.judge(cast["alice"], both, 1, True)
    actions.merge(cast["bob"], both, 1)
    with refused("web.protected"):
        restore(cast["alice"], cast.spec.versions.get(number=1))


def test_a_base_that_moved_on(cast: Any, both: Patch) -> None:
    """Where others changed other lines both are kept; where they changed the same, it is said."""
    actions.judge(cast["rita"], both, 1, True)
    save_version(cast["alice"], cast.spec, "// first\n" + cast.spec.head.text, 1)
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], both, 1)
    found = actions.update(cast["bob"], both, 1)
    assert found.base.number == 2 and found.text == "// first\n" + both.revisions.get(number=1).text
    assert rules.standing_approvals(both) == []
    cast.spec.refresh_from_db()
    save_version(cast["alice"], cast.spec, cast.spec.head.text.replace(ONE, SHELL), 2)
    with refused("web.patch_conflict"):
        actions.update(cast["bob"], both, 2)


def test_a_page_that_is_old_is_told(cast: Any, both: Patch) -> None:
    actions.revise(cast["bob"], both, 1, both.latest.text + "// more\n")
    with refused("web.patch_moved"):
        actions.judge(cast["rita"], both, 1, True)
    actions.close(cast["bob"], both, 2)
    with refused("web.patch_closed"):
        actions.revise(cast["bob"], both, 2, "task A { }")


def test_a_unified_diff_is_applied_to_its_base(cast: Any) -> None:
    diff = "--- a/small.spak\n+++ b/small.spak\n@@ -1,2 +1,2 @@\n"
    diff += "-AGENT Small LEVEL 1 {\n+AGENT Small LEVEL 2 {\n   START -> look\n"
    patch = actions.propose(cast["bob"], cast.spec, diff, 1, "Up")
    assert patch.latest.text == cast.spec.head.text.replace("LEVEL 1", "LEVEL 2")
    with refused("web.patch_text"):
        actions.propose(cast["bob"], cast.spec, diff.replace("Small", "Large"), 1, "Up")


def test_what_cannot_be_proposed(cast: Any, both: Patch) -> None:
    text = cast.spec.head.text
    for code, given, base in (("web.patch_empty", text, 1), ("web.patch_base", text + "\n", 7)):
        with refused(code):
            actions.propose(cast["bob"], cast.spec, given, base, "x")
    with refused("web.patch_edit"):
        actions.drop_edit(cast["bob"], both, 1, 2)
    with refused("web.comment"):
        talk.comment(cast["bob"], both, "x" * 4001)
    assert Patch.objects.count() == 1 and SpecVersion.objects.filter(spec=cast.spec).count() == 1


def test_what_is_done_to_a_patch_is_an_event_of_the_team(cast: Any, both: Patch) -> None:
    """All but what somebody has viewed, which is theirs alone."""

    def told(act: Any) -> list[tuple[str, str]]:
        last = Event.objects.order_by("-pk").first()
        act()
        rows = Event.objects.filter(pk__gt=last.pk if last else 0).exclude(action="spec.saved").order_by("pk")
        assert {one.team for one in rows} <= {cast.team}
        return [(one.action, one.actor_name) for one in rows]

    def patch() -> Patch:
        return Patch.objects.get(pk=both.pk)

    bob, rita, alice = cast["bob"], cast["rita"], cast["alice"]
    line = {"line": 4, "seen": 1, "suggestion": "    // nothing"}
    assert told(lambda: talk.comment(rita, patch(), "Why?", **line)) == [("patch.commented", "rita")]
    key = both.comments.get().pk
    assert told(lambda: talk.resolve(bob, patch(), key)) == [("patch.resolved", "bob")]
    assert told(lambda: talk.resolve(bob, patch(), key)) == []
    assert told(lambda: talk.resolve(rita, patch(), key, False)) == [("patch.unresolved", "rita")]
    assert told(lambda: talk.take(bob, patch(), 1, key)) == [
        ("patch.revised", "bob"), ("patch.resolved", "bob"),
    ]  # fmt: skip
    assert told(lambda: actions.repeat_check(bob, patch(), 2)) == [("patch.checked", "bob")]
    assert told(lambda: actions.drop_edit(bob, patch(), 2, 0)) == [("patch.revised", "bob")]
    assert told(lambda: actions.fork(rita, patch(), "")) == [("patch.proposed", "rita")]
    assert told(lambda: actions.judge(alice, patch(), 3, False, "No")) == [("patch.refused", "alice")]
    assert told(lambda: actions.take_back(alice, patch(), 3)) == [("patch.taken_back", "alice")]
    assert told(lambda: actions.take_back(alice, patch(), 3)) == []
    assert told(lambda: actions.judge(alice, patch(), 3, True)) == [("patch.approved", "alice")]
    assert told(lambda: protect(alice, cast.spec, 1, queue=True)) == [("spec.protected", "alice")]
    assert told(lambda: actions.queue(bob, patch(), 3)) == [("patch.queued", "bob")]
    assert told(lambda: actions.unqueue(rita, patch())) == [("patch.unqueued", "rita")]
    protect(alice, cast.spec, 1)
    assert told(lambda: actions.merge(bob, patch(), 3)) == [("patch.merged", "bob")]
    assert told(lambda: actions.revert(bob, patch())) == [("patch.proposed", "bob")]
    assert told(lambda: actions.close(bob, Patch.objects.get(number=2), 1)) == [("patch.closed", "bob")]
    assert {one.action for one in Event.objects.all()} <= set(WORDS)


def test_no_two_elements_of_a_page_have_one_id(cast: Any, both: Patch) -> None:
    """A link to the conversation went to the region that tells screen readers what happened."""
    talk.comment(cast["rita"], both, "Why?", line=4, seen=1)
    protect(cast["alice"], cast.spec, 1, queue=True)
    for name in (
        "spak-patch",
        "spak-patch-list",
        "spak-patch-conflicts",
        "spak-spec-blame",
        "spak-review-rules",
    ):
        args = {"spak-patch-list": 2, "spak-spec-blame": 2, "spak-review-rules": 1}.get(name, 3)
        where = reverse(name, args=[cast.team.slug, "small", both.number][:args])
        body = cast.client("alice").get(where).content.decode()
        found = re.findall(r'\sid="([^"]*)"', body)
        assert len(found) == len(set(found)), (name, [one for one in found if found.count(one) > 1])
        assert set(re.findall(r'href="#([^"]+)"', body)) <= set(found), name


def test_the_page_shows_it_and_its_forms_act(cast: Any, both: Patch) -> None:
    args = [cast.team.slug, "small", both.number]
    bob, rita = cast.client("bob"), cast.client("rita")
    hostile = "<script>alert(1)</script>"
    do = reverse("spak-patch-do", args=args)
    assert rita.post(do, {"do": "comment", "text": hostile, "path": "task look"}).status_code == 302
    body = rita.get(reverse("spak-patch", args=args)).content.decode()
    assert (
        "Look elsewhere" in body
        and "This patch" in body
        and "Drop edit 2" in body
        and "1 more approval" in body
    )
    assert hostile not in body and "&lt;script&gt;" in body
    rita.post(do, {"do": "resolve", "comment": both.comments.get().pk})
    assert both.comments.get().resolved_at is not None
    assert rita.post(do, {"do": "nothing"}).status_code == 400
    tick = rita.get(reverse("spak-patch", args=args)).context["loosened_digest"]
    rita.post(do, {"do": "approve", "revision": "1", "loosened": tick})
    assert "It can be merged" in bob.get(reverse("spak-patch", args=args)).content.decode()
    assert bob.post(do, {"do": "merge", "revision": "1"}).status_code == 302
    assert bob.post(do, {"do": "merge", "revision": "1"}).status_code == 409
    assert "Revert as a patch" in bob.get(reverse("spak-patch", args=args)).content.decode()
    assert "No patches" in bob.get(reverse("spak-reviews", args=[cast.team.slug])).content.decode()
