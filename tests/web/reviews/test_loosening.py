"""What a patch loosens: shown before all else, ticked before an approval, which can be taken back."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from reviews_kit import ONE, OTHER, refused
from spakweb.face.reviews import page
from spakweb.ground.teams.models import Membership, Role
from spakweb.store.reviews.models import Patch, Verdict
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import actions, rules
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import create_spec, save_version

PROTECTS = """\
AGENT Fixes LEVEL 4 {
  START -> fix
  TASK fix {
    step ask: llm.query { prompt_template: "A patch." output_var: fix }
    step apply: tool.apply_patch { patch: "{{fix}}" protect: ["tests/"] }
    success: exit_code(apply) == 0
  }
}
"""
BARE = PROTECTS.replace(' protect: ["tests/"]', "")
JUDGED = """\
AGENT A LEVEL 4 {
  START -> plan
  TASK plan {
    step a: tool.read_file { path: "a.txt" }
    NEXT { success -> build, fail -> verify }
  }
  TASK build {
    step make: tool.write_file { path: "a.py" content: "x = 1" }
    NEXT { success -> verify }
  }
  TASK verify {
    step test: tool.run { cmd: "python3 a.py" }
    success: exit_code(test) == 0
  }
}
"""


def proposed(cast: Any, spec: Spec, text: str) -> Patch:
    return actions.propose(cast["bob"], spec, text, 1, "Only layout")


def shown(cast: Any, patch: Patch, name: str = "rita") -> Any:
    where = reverse("spak-patch", args=[cast.team.slug, patch.spec.slug, patch.number])
    return cast.client(name).get(where)


@pytest.fixture
def bare(cast: Any) -> Patch:
    """A patch that takes the protection of the tests away."""
    return proposed(cast, create_spec(cast["alice"], cast.team, "fixes", PROTECTS), BARE)


@pytest.mark.findings("B1", "B7")
def test_what_is_loosened_comes_first_and_the_verdict_last(cast: Any, bare: Patch) -> None:
    body = shown(cast, bare).content.decode()
    head = body[body.index('id="patch"') : body.index("</h2>", body.index('id="patch"'))]
    assert "Widens</span>" in head and "Privileged</span>" in head
    order = [
        'aria-label="What the patch loosens"', "the spec may change tests/ in fix", 'aria-label="Checks"',
        'id="changes"', 'id="evidence"', 'id="text"', 'id="verdict"', 'value="approve"', 'id="conversation"',
    ]  # fmt: skip
    places = [body.index(one) for one in order]
    assert places == sorted(places), list(zip(order, places, strict=True))


@pytest.mark.findings("A3", "B1")
def test_a_team_whose_only_admin_is_the_author_is_told_so(cast: Any) -> None:
    made = create_spec(cast["alice"], cast.team, "fixes", PROTECTS)
    text = PROTECTS.replace(' protect: ["tests/"]', "")
    patch = actions.propose(cast["alice"], made, text, 1, "Mine")
    actions.judge(cast["rita"], patch, 1, True)
    asks = "an admin to approve it, since it widens what the spec may do"
    assert rules.missing(patch) == [
        f"{asks}; no admin may, since nobody approves a patch of their own: add another"
    ]
    Membership.objects.filter(team=cast.team, user=cast["rita"]).update(role=Role.ADMIN)
    assert rules.missing(Patch.objects.get(pk=patch.pk)) == []
    Membership.objects.filter(team=cast.team, user=cast["rita"]).update(role=Role.REVIEWER)
    Membership.objects.filter(team=cast.team, user=cast["bob"]).update(role=Role.ADMIN)
    assert rules.missing(Patch.objects.get(pk=patch.pk)) == [asks]


@pytest.mark.parametrize(
    ("text", "less", "pill", "words"),
    [
        (PROTECTS, ' protect: ["tests/"]', "Widens", "may change tests/ in fix, which was protected"),
        (JUDGED, "    NEXT { success -> verify }\n", "Widens", "a run ends without verify"),
        (JUDGED, "python3 ", "Look", "a judgement goes by test in verify"),
    ],
    ids=["protection", "way to the judge", "command of the judge"],
)
def test_what_is_smuggled_past_a_reviewer_needs_an_admin(
    cast: Any, text: str, less: str, pill: str, words: str
) -> None:
    patch = proposed(cast, create_spec(cast["alice"], cast.team, "fixes", text), text.replace(less, ""))
    before_checks = shown(cast, patch).content.decode().partition('aria-label="Checks"')[0]
    assert f"{pill}</span>" in before_checks and words in before_checks
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == ["an admin to approve it, since it widens what the spec may do"]
    do, bob = reverse("spak-patch-do", args=[cast.team.slug, "fixes", 1]), cast.client("bob")
    form = {"do": "merge", "revision": "1"}
    answer = bob.post(do, form, headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (409, "web.patch_waits")
    ticked = shown(cast, patch, "alice").context["loosened_digest"]
    cast.client("alice").post(do, {"do": "approve", "revision": "1", "loosened": ticked})
    assert bob.post(do, form).status_code == 302
    assert Patch.objects.get().merged.text == patch.latest.text


SETS = """\
AGENT A LEVEL 4 {
  START -> t
  TASK t {
    step a: tool.run { cmd: "make" output_var: out }
    NEXT { success -> u }
  }
  TASK u {
    step z: tool.run { cmd: "ls" }
  }
}
"""


@pytest.mark.findings("B1", "B7")
def test_an_admin_approves_no_more_than_they_saw(cast: Any) -> None:
    """The patch sets a variable that a condition reads since; the approval was given before that."""
    spec = create_spec(cast["alice"], cast.team, "sets", SETS)
    judged = SETS.replace("    NEXT { success -> u }", '    success: out == "yes"\n    NEXT { success -> u }')
    save_version(cast["alice"], spec, judged, 1)
    protect(cast["alice"], spec, 1, follow=True)
    more = SETS.replace('"ls" }', '"ls" }\n    step y: tool.run { cmd: "echo yes" output_var: out }')
    patch = proposed(cast, Spec.objects.get(pk=spec.pk), more)
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.for_an_admin(patch, patch.latest) == ""
    actions.update(cast["bob"], patch, 1)
    patch = Patch.objects.get()
    assert rules.of_people(patch) == ["an admin to approve it, since it widens what the spec may do"]
    actions.judge(cast["alice"], patch, 2, True)
    assert rules.of_people(patch) == []


@pytest.mark.findings("B1", "B7")
def test_one_person_approves_once_and_an_old_page_approves_nothing(cast: Any, bare: Patch) -> None:
    protect(cast["alice"], bare.spec, 2)
    actions.judge(cast["rita"], bare, 1, True)
    actions.judge(cast["rita"], bare, 1, True)
    assert rules.of_people(Patch.objects.get())[0] == "1 more approval"
    seen = shown(cast, bare, "alice").context["loosened_digest"]
    actions.revise(cast["bob"], bare, 1, BARE.replace('"A patch."', '"A good patch."'))
    do = reverse("spak-patch-do", args=[cast.team.slug, "fixes", 1])
    form = {"do": "approve", "loosened": seen, "revision": "1"}
    answer = cast.client("alice").post(do, form, headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (409, "web.patch_moved")
    assert rules.of_people(Patch.objects.get())[0] == "2 more approvals"


@pytest.mark.findings("B1")
@pytest.mark.parametrize("broken_first", [False, True])
def test_a_text_that_cannot_be_read_hides_nothing(cast: Any, broken_first: bool) -> None:
    """Neither one that a patch makes unreadable, nor an unreadable version that a patch takes as its base."""
    broken = PROTECTS.replace("TASK fix {", "TASK fix {{{ ")
    spec = create_spec(cast["alice"], cast.team, "fixes", broken if broken_first else PROTECTS)
    patch = proposed(cast, spec, BARE if broken_first else broken)
    actions.judge(cast["rita"], patch, 1, True)
    assert "an admin to approve it, since it cannot be read as a whole" in rules.missing(patch)
    assert "cannot be read as a whole" in shown(cast, patch).content.decode().partition('id="changes"')[0]


@pytest.mark.findings("B7")
def test_a_patch_that_loosens_nothing_has_no_tick(cast: Any) -> None:
    patch = proposed(cast, cast.spec, cast.spec.head.text + "// more\n")
    body = shown(cast, patch).content.decode()
    assert "What the patch loosens" not in body and 'name="loosened"' not in body
    do = reverse("spak-patch-do", args=[cast.team.slug, "small", 1])
    assert cast.client("rita").post(do, {"do": "approve", "revision": "1"}).status_code == 302


@pytest.mark.findings("B7")
def test_what_is_loosened_is_ticked_before_an_approval(cast: Any, bare: Patch) -> None:
    rita, do = cast.client("rita"), reverse("spak-patch-do", args=[cast.team.slug, "fixes", 1])
    found = shown(cast, bare).context
    form = {"do": "approve", "revision": "1"}
    for tick in ({}, {"loosened": "1"}):
        answer = rita.post(do, form | tick, headers={"accept": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (409, "web.patch_ticked")
    assert not Verdict.objects.exists()
    assert rita.post(do, {"do": "refuse", "revision": "1"}).status_code == 302, "that needs no tick"
    assert rita.post(do, form | {"loosened": found["loosened_digest"]})["Location"].endswith("#verdict")
    actions.revise(cast["bob"], bare, 1, BARE.replace("exit_code(apply) == 0", "exit_code(apply) != 1"))
    answer = rita.post(do, {**form, "revision": "2", "loosened": found["loosened_digest"]})
    assert answer.status_code == 409, "the tick was for other changes"


@pytest.mark.findings("B7")
def test_a_verdict_is_taken_back_until_the_merge(cast: Any) -> None:
    patch = proposed(cast, cast.spec, cast.spec.head.text.replace(ONE, OTHER))
    do, rita = reverse("spak-patch-do", args=[cast.team.slug, "small", 1]), cast.client("rita")
    actions.judge(cast["rita"], patch, 1, False, "Why?")
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == []
    back = {"do": "take-back", "revision": "1"}
    assert "Take it back" in shown(cast, patch).content.decode()
    assert "Take it back" not in shown(cast, patch, "alice").content.decode(), "it is rita's"
    assert cast.client("bob").post(do, back).status_code == 403
    assert rita.post(do, back).status_code == 302
    assert rules.missing(patch) == [
        "1 more approval", "an approval by the person who requested changes, or a new revision",
    ], "as before the approval"  # fmt: skip
    assert [one.approves for one in page.status(cast["rita"], patch)["verdicts"]] == [False]
    assert rita.post(do, back).status_code == 302
    assert rules.missing(patch) == ["1 more approval"]
    actions.judge(cast["rita"], patch, 1, True)
    actions.merge(cast["bob"], patch, 1)
    with refused("web.patch_closed"):
        actions.take_back(cast["rita"], Patch.objects.get(pk=patch.pk), 1)
    with pytest.raises(PermissionDenied):
        actions.take_back(cast["vera"], patch, 1)


@pytest.mark.findings("B7")
def test_single_letters_can_be_switched_off(cast: Any) -> None:
    rita = cast.client("rita")
    assert "data-keys" not in rita.get("/me/").content.decode()
    assert rita.post(reverse("spak-single-keys"), {"on": "0"}).status_code == 302
    body = rita.get("/me/").content.decode()
    assert 'data-keys="off"' in body and "Shortcuts of single letters are off" in body
    assert "data-keys" not in cast.client("bob").get("/me/").content.decode(), "it is hers"
    rita.post(reverse("spak-single-keys"), {"on": "1"})
    assert "data-keys" not in rita.get("/me/").content.decode()
