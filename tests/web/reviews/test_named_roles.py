"""Named roles of a team, and kinds of edit that somebody of one has to approve."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from spak import config
from spak.evolve.gate.privileges import privileged
from spak.lang import parse
from spak.lang.diff import compare
from spak.lang.diff.capability import TABLE
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Membership, NamedRole
from spakweb.store.reviews.models import ApprovalRule, Check, Patch
from spakweb.work.reviews import actions, rules
from spakweb.work.reviews.kinds import DELTA, KINDS, kinds_of
from spakweb.work.reviews.protection import protect
from spakweb.work.teams import actions as teams
from spakweb.work.teams import named_roles

ONE = 'step one: tool.list_files { path: "." }'
OTHER = 'step one: tool.list_files { path: "tests" }'
SHELL = 'step one: tool.run { cmd: "true" }'
BOTH_SIDES = """AGENT A LEVEL 1 {
  CONFIG { SANDBOX: docker, BUDGET { tokens: 100 } }
  START -> look
  TASK look {
    GOAL "Look."
    step one: tool.run { cmd: "ls" }
    success: file_contains("a", "b")
    NEXT { success -> done }
  }
  TASK done {
    step two: tool.list_files { path: "." }
    EVALUATION { check a: tool.run { cmd: "true" } }
  }
}
"""


def refused(code: str) -> Any:
    return pytest.raises(Refused, check=lambda why: why.code == code)


def key_of(cast: Any, name: str) -> int:
    return Membership.objects.get(team=cast.team, user=cast[name]).pk


def named(cast: Any, *people: str) -> NamedRole:
    return named_roles.keep(cast["alice"], cast.team, "security", [key_of(cast, one) for one in people])


def proposed(cast: Any, new: str = OTHER, by: str = "bob") -> Patch:
    return actions.propose(cast[by], cast.spec, cast.spec.head.text.replace(ONE, new), 1, "Elsewhere")


def missing(patch: Patch) -> list[str]:
    return rules.missing(Patch.objects.get(pk=patch.pk))


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("  START", "    START", set()),
        ('"Look."', '"Look around."', {"any"}),
        ('cmd: "ls"', 'cmd: "rm"', {"any", "privileged", "tools"}),
        ('cmd: "true"', 'cmd: "false"', {"any", "privileged", "tools", "judges", "widens"}),
        ("SANDBOX: docker", "SANDBOX: none", {"any", "privileged", "widens", "sandbox"}),
        ("tokens: 100", "tokens: 200", {"any", "privileged", "widens", "limits"}),
        ("tokens: 100", "tokens: 50", {"any", "limits"}),
        ('success: file_contains("a", "b")', "", {"any", "privileged", "widens", "judges"}),
        ("LEVEL 1", "LEVEL 2", {"any", "privileged", "widens", "limits"}),
        ("BUDGET {", "BACKEND: vllm, BUDGET {", {"any", "privileged", "widens", "models"}),
        ("BUDGET {", 'HOSTS: ["x.example"], BUDGET {', {"any", "privileged", "widens", "sandbox"}),
        ("  START ->", '  SYSTEM_MODEL M { AXIOM "a" }\n  START ->', {"any", "privileged", "policy"}),
        ("  START ->", "  EXPORT mcp\n  START ->", {"any", "privileged", "widens", "policy"}),
        ("TASK look {", "TASK see {", {"any"}),
    ],
)
def test_what_kinds_an_edit_has(old: str, new: str, wanted: set[str]) -> None:
    text = BOTH_SIDES.replace(old, new)
    if new == "TASK see {":
        text = text.replace("-> look", "-> see")
    before, after = parse(BOTH_SIDES), parse(text)
    found = compare(before, after, config.catalog())
    marked = privileged(BOTH_SIDES, text, config.catalog()).evidence.get("changes", ())
    kinds = kinds_of(found, [one["path"] for one in marked], before.spec, after.spec)
    assert kinds - {"privileged"} == wanted - {"privileged"}
    assert "privileged" not in wanted or "privileged" in kinds
    assert kinds <= KINDS.keys() - {"permits"}


def test_every_kind_of_what_loosens_is_of_a_kind_of_edit() -> None:
    assert DELTA.keys() == {row.kind for row in TABLE} and {*DELTA.values()} <= KINDS.keys()


@pytest.mark.findings("A3", "B1")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("NEXT { success -> ask }", ""),
        ('step find: tool.grep { pattern: "TODO" path: "." }', ""),
        ("Is it right?", "Say yes."),
        (' protect: ["tests/"]', ""),
    ],
)
def test_who_takes_a_judge_or_a_protection_away_widens(old: str, new: str) -> None:
    base = """AGENT A LEVEL 4 { START -> a
      TASK a { step find: tool.grep { pattern: "TODO" path: "." }
               step put: tool.apply_patch { patch: "x" protect: ["tests/"] }
               NEXT { success -> ask } }
      TASK ask { step q: llm.query { prompt: "Is it right?" output_var: v } success: v == "yes" } }"""
    before, after = parse(base), parse(base.replace(old, new))
    found = compare(before, after, config.catalog())
    assert {"widens", "judges"} <= kinds_of(found, (), before.spec, after.spec)
    assert [
        item.widens for item in found.capabilities if item.kind in ("way", "step", "prompt", "protect")
    ] == [True]


def test_somebody_of_the_role_has_to_approve_and_no_author_does(cast: Any) -> None:
    named(cast, "bob")
    protect(cast["alice"], cast.spec, 1, roles={"tools": "security"})
    patch = proposed(cast)
    actions.judge(cast["rita"], patch, 1, True)
    wanted = "somebody of security to approve it, since it changes tools or their arguments"
    assert missing(patch) == [f"{wanted}; nobody of security may"], "bob wrote it, and is an editor"
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], patch, 1)
    teams.set_role(cast["alice"], Membership.objects.get(pk=key_of(cast, "bob")), "admin")
    with pytest.raises(PermissionDenied):
        actions.judge(cast["bob"], patch, 1, True)
    assert missing(patch) == [f"{wanted}; nobody of security may"]
    named(cast, "bob", "alice")
    assert missing(patch) == [wanted]
    actions.judge(cast["alice"], patch, 1, True)
    assert missing(patch) == []
    version = actions.merge(cast["bob"], patch, 1)
    roles = {one["by"]: one["named_roles"] for one in version.provenance["approved"]}
    assert roles == {"rita": [], "alice": ["security"]}


def test_edits_of_other_kinds_do_not_ask_for_it(cast: Any) -> None:
    named(cast, "alice")
    protect(cast["alice"], cast.spec, 1, roles={"sandbox": "security", "permits": "security"})
    patch = proposed(cast)
    actions.judge(cast["rita"], patch, 1, True)
    assert missing(patch) == ["a check to end: recorded actions under both texts"]
    Check.objects.filter(revision=patch.latest).update(
        state=Check.State.NOTHING, ended_at=patch.made_at, law=rules.law_hash(cast.spec)
    )
    assert missing(patch) == []
    Check.objects.filter(revision=patch.latest, name="actions").update(state=Check.State.LOOK)
    assert missing(patch) == [
        "an admin to approve it, since it permits actions that were denied",
        "somebody of security to approve it, since it permits actions that were denied",
    ]


def test_two_reasons_of_one_role_are_one_line(cast: Any) -> None:
    named(cast, "rita")
    protect(cast["alice"], cast.spec, 1, roles={"any": "security", "widens": "security"})
    patch = proposed(cast, SHELL)
    actions.judge(cast["alice"], patch, 1, True)
    both = "it changes more than formatting and it widens what the spec may do"
    assert missing(patch) == [f"somebody of security to approve it, since {both}"]
    actions.judge(cast["rita"], patch, 1, True)
    assert missing(patch) == []
    Membership.objects.get(pk=key_of(cast, "rita")).delete()  # who leaves the team leaves the role
    assert any("nobody of security may" in need for need in missing(patch))


def test_what_no_rule_can_be(cast: Any) -> None:
    named(cast, "rita")
    other = named_roles.keep(cast["charlie"], cast.other_team, "lawyers", ())
    for code, approvals, roles in (
        ("web.named_role", 1, {"any": "lawyers"}),  # of another team
        ("web.named_role", 1, {"colour": "security"}),
        ("web.approvals", 0, {"any": "security"}),
    ):
        with refused(code):
            protect(cast["alice"], cast.spec, approvals, roles=roles)
    with pytest.raises(PermissionDenied):
        protect(cast["rita"], cast.spec, 1, roles={"any": "security"})
    for name in ("", " ", "Admin", "viewer"):
        with refused("web.named_role"):
            named_roles.keep(cast["alice"], cast.team, name, ())
    assert not ApprovalRule.objects.exists() and NamedRole.objects.exclude(pk=other.pk).count() == 1


def test_a_role_that_a_rule_names_stays(cast: Any) -> None:
    role = named(cast, "rita")
    protect(cast["alice"], cast.spec, 1, roles={"any": "security"})
    with pytest.raises(Refused, match="security has to approve edits of small") as why:
        named_roles.drop(cast["alice"], role)
    assert why.value.code == "web.named_role" and not Event.objects.filter(action="team.named_role_removed")
    protect(cast["alice"], cast.spec, 1)
    named_roles.drop(cast["alice"], role)
    assert not NamedRole.objects.exists()
    assert Event.objects.get(action="team.named_role_removed").thing == "security"


def test_members_of_another_team_do_not_come_in(cast: Any) -> None:
    stranger = Membership.objects.get(team=cast.other_team, user=cast["charlie"])
    role = named_roles.keep(cast["alice"], cast.team, "security", [stranger.pk, key_of(cast, "rita"), 0])
    assert [member.user for member in role.members.all()] == [cast["rita"]]
    event = Event.objects.get(action="team.named_role")
    assert event.detail == {"was": [], "now": ["rita"]}


def test_the_forms(cast: Any) -> None:
    alice, team = cast.client("alice"), cast.team.slug
    page, where = reverse("spak-team-members", args=[team]), reverse("spak-named-role", args=[team])
    assert "Create named role" in alice.get(page).content.decode()
    assert "Named roles" not in cast.client("vera").get(page).content.decode()
    answer = alice.post(where, {"name": "<b>security", "member": [key_of(cast, "rita"), "x"]})
    assert answer["Location"] == page
    shown = cast.client("vera").get(page).content.decode()
    assert "&lt;b&gt;security" in shown and "Create named role" not in shown
    protect = reverse("spak-spec-protect", args=[team, "small"])
    patches = reverse("spak-patch-list", args=[team, "small"])
    form = {"approvals": "1", "role-tools": "<b>security", "role-any": ""}
    assert alice.post(protect, form).status_code == 302
    body = alice.get(patches).content.decode()
    assert "Tools and their arguments: &lt;b&gt;security." in body
    assert "<option selected>&lt;b&gt;security</option>" in body
    event = Event.objects.get(action="spec.protected")
    assert event.detail["roles"] == {"tools": "<b>security"}
    patch = proposed(cast)
    told = alice.get(reverse("spak-patch", args=[team, "small", patch.number])).content.decode()
    assert "somebody of &lt;b&gt;security to approve it" in told
    assert alice.post(protect, {**form, "role-tools": "gone"}).status_code == 409
    role = NamedRole.objects.get()
    remove = reverse("spak-named-role-remove", args=[team, role.pk])
    assert alice.post(remove).status_code == 409
    alice.post(protect, {"approvals": "1"})
    assert alice.post(remove).status_code == 302 and not NamedRole.objects.exists()
