"""The team's rules of review: the default of its specs, which a spec may override."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404
from django.urls import reverse

from spakweb.face.reviews import inbox
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Membership, NamedRole, Team
from spakweb.store.reviews.models import ApprovalRule, Patch
from spakweb.work.reviews import actions, rules
from spakweb.work.reviews.protection import follow_team, protect, protect_team
from spakweb.work.specs.actions import create_spec, save_version, set_tag
from spakweb.work.teams import named_roles

ONE = 'step one: tool.list_files { path: "." }'


@pytest.fixture
def patch(cast: Any) -> Patch:
    text = cast.spec.head.text.replace(ONE, ONE.replace('"."', '"tests"'))
    return actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere")


@pytest.fixture
def security(cast: Any) -> NamedRole:
    member = Membership.objects.get(team=cast.team, user=cast["rita"])
    return named_roles.keep(cast["alice"], cast.team, "security", [member.pk])


def again(thing: Any) -> Any:
    return type(thing).objects.get(pk=thing.pk)


def refused(code: str) -> Any:
    return pytest.raises(Refused, check=lambda why: why.code == code)


def test_it_holds_for_specs_without_rules_of_their_own(cast: Any, patch: Patch, security: NamedRole) -> None:
    """For new ones and open patches too, and for no other team."""
    new = create_spec(cast["bob"], cast.team, "new", cast.spec.head.text)
    protect_team(cast["alice"], cast.team, 2, by_admin=True, required=["text"], roles={"any": "security"})
    newer = create_spec(cast["bob"], cast.team, "newer", cast.spec.head.text)
    for spec in (again(cast.spec), again(new), newer):
        with refused("web.protected"):
            save_version(cast["bob"], spec, spec.head.text + "\n", 1)
    save_version(cast["charlie"], cast.other_spec, cast.other_spec.head.text + "\n", 1)
    found = rules.missing(again(patch))
    assert found[0] == "2 more approvals" and "somebody of security to approve it" in found[-2]
    assert rules.required(again(cast.spec)) == ["text"]
    actions.judge(cast["alice"], again(patch), 1, True)
    assert [patch.need for patch in inbox.waiting(cast["bob"], cast.team)] == []
    actions.judge(cast["rita"], again(patch), 1, True)
    assert [patch.need for patch in inbox.waiting(cast["bob"], cast.team)] == ["merge"]
    assert not any("approve" in need for need in rules.missing(again(patch)))
    with refused("web.tag_rule"):
        set_tag(cast["alice"], again(cast.spec).head, "staging")


def test_a_spec_may_override_it_either_way_and_come_back(cast: Any, patch: Patch) -> None:
    protect_team(cast["alice"], cast.team, 2, required=["text"])
    protect(cast["alice"], cast.spec, 0)
    assert rules.missing(again(patch)) == ["1 more approval"]
    assert save_version(cast["bob"], again(cast.spec), cast.spec.head.text + "\n", 1).number == 2
    protect_team(cast["alice"], cast.team, 0)
    protect(cast["alice"], cast.spec, 1, queue=True)
    with refused("web.protected"):
        save_version(cast["bob"], again(cast.spec), cast.spec.head.text, 2)
    with refused("web.patch_queue"):
        actions.merge(cast["bob"], again(patch), 1)
    follow_team(cast["alice"], again(cast.spec))
    assert save_version(cast["bob"], again(cast.spec), cast.spec.head.text, 2).number == 3


def test_own_named_roles_go_with_the_spec_and_the_teams_hold_then(
    cast: Any, patch: Patch, security: NamedRole
) -> None:
    member = Membership.objects.get(team=cast.team, user=cast["alice"])
    named_roles.keep(cast["alice"], cast.team, "owners", [member.pk])
    protect_team(cast["alice"], cast.team, 1, roles={"any": "security"})
    protect(cast["alice"], cast.spec, 1, roles={"any": "owners"})
    assert [one for one in rules.missing(again(patch)) if "somebody of" in one] == [
        "somebody of owners to approve it, since it changes more than formatting"
    ]
    follow_team(cast["alice"], cast.spec)
    assert [one for one in rules.missing(again(patch)) if "somebody of" in one] == [
        "somebody of security to approve it, since it changes more than formatting"
    ]
    named_roles.drop(cast["alice"], NamedRole.objects.get(name="owners"))
    with pytest.raises(Refused, match="security has to approve edits of the team's default"):
        named_roles.drop(cast["alice"], security)


def test_who_may_set_it_what_it_refuses_and_what_is_recorded(cast: Any, security: NamedRole) -> None:
    for who in ("bob", "rita"):
        with pytest.raises(PermissionDenied):
            protect_team(cast[who], cast.team, 1)
        with pytest.raises(PermissionDenied):
            follow_team(cast[who], cast.spec)
    with pytest.raises(Http404):
        protect_team(cast["charlie"], cast.team, 1)
    for approvals, roles, code in (
        (10, {}, "web.approvals"),
        (0, {"any": "security"}, "web.approvals"),
        (1, {"any": "none such"}, "web.named_role"),
        (1, {"none such": "security"}, "web.named_role"),
    ):
        with refused(code):
            protect_team(cast["alice"], cast.team, approvals, roles=roles)
    assert not ApprovalRule.objects.exists() and not Event.objects.filter(action="team.review_rules").exists()
    protect_team(cast["alice"], cast.team, 2, required=["text", "none such"], roles={"any": "security"})
    event = Event.objects.get(action="team.review_rules")
    assert (event.team, event.thing, event.actor) == (cast.team, "2 approvals", cast["alice"])
    assert event.detail == {
        "approvals": 2, "privileged_by_admin": False, "required_checks": ["text"], "merge_queue": False,
        "approvals_follow": False, "roles": {"any": "security"},
    }  # fmt: skip
    protect(cast["alice"], cast.spec, 0)
    follow_team(cast["alice"], cast.spec)
    follow_team(cast["alice"], cast.spec)
    told = Event.objects.filter(action="spec.protected").order_by("pk")
    assert [one.thing for one in told] == ["small: 0 approvals", "small: as the team's default"]


def test_the_pages(cast: Any, security: NamedRole) -> None:
    alice, bob = cast.client("alice"), cast.client("bob")
    page, save = (
        reverse(name, args=[cast.team.slug]) for name in ("spak-review-rules", "spak-review-rules-save")
    )
    assert page in alice.get(reverse("spak-team-members", args=[cast.team.slug])).content.decode()
    assert "Save the rules" not in bob.get(page).content.decode()
    given = {"approvals": "1", "merge_queue": "1", "required_checks": ["text"], "role-any": "security"}
    assert bob.post(save, given).status_code == 403
    assert cast.client("charlie").get(page).status_code == 404
    assert alice.post(save, given, follow=True).status_code == 200
    shown = alice.get(page).content.decode()
    assert "Protected: a change needs 1 approval." in shown and "They hold for 1 spec." in shown
    assert "Every change but formatting: security." in shown and 'value="1" required' in shown
    specs = reverse("spak-patch-list", args=[cast.team.slug, "small"])
    assert "default of the team</a>" in bob.get(specs).content.decode()
    where = reverse("spak-spec-protect", args=[cast.team.slug, "small"])
    assert "Use the team's default" not in alice.get(specs).content.decode()
    alice.post(where, {"approvals": "3"})
    shown = alice.get(specs).content.decode()
    assert "Use the team's default" in shown and "3 approvals." in shown and 'value="3"' in shown
    shown = alice.get(page).content.decode()
    assert "They hold for 0 specs." in shown and "3 approvals</span>" in shown
    assert bob.post(where, {"do": "follow"}).status_code == 403
    alice.post(where, {"do": "follow"})
    assert "1 approval, by the" in alice.get(specs).content.decode()
    assert alice.post(save, {"approvals": "x"}).status_code == 400


def test_a_rule_is_of_a_spec_or_of_a_team(cast: Any, security: NamedRole) -> None:
    for owner in ({}, {"spec": cast.spec, "team": cast.team}):
        with pytest.raises(IntegrityError), transaction.atomic():
            ApprovalRule.objects.create(kind="any", role=security, **owner)
    assert Team.objects.get(pk=cast.team.pk).approvals == 0
