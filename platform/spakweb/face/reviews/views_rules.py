"""The rules of review in the browser: those of a team, on a page of their own, and those of a spec."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from spakweb.face.specs.views import find_spec
from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number
from spakweb.store.reviews.models import ApprovalRule
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import protection
from spakweb.work.reviews.kinds import KINDS
from spakweb.work.reviews.rules import CHECKS, by_kind


def of_spec(spec: Spec) -> dict[str, Any]:
    """What the page of a spec shows of the rules that hold for it."""
    return _shown(spec.team, spec.review_rules, by_kind(spec))


def _shown(team: Team, ruled: Any, roles: Any) -> dict[str, Any]:
    """`kinds`: kinds of edit with their label and the named role that has to approve them, or nothing."""
    names = {one.kind: one.role.name for one in roles.select_related("role")}
    return {
        "ruled": ruled,
        "kinds": [(kind, label, names.get(kind, "")) for kind, (label, _) in KINDS.items()],
        "named_roles": team.named_roles.all(),
        "check_names": CHECKS.items(),
        "alone": team.memberships.count() < 2,
    }


@require_safe
def team_rules(request: HttpRequest, team: str) -> HttpResponse:
    """The page of the team's rules: every member reads them, an admin changes them."""
    found = access.find(request.user, "team.view", Team, slug=team)
    specs = Spec.objects.filter(team=found, archived_at=None)
    context = _shown(found, found, ApprovalRule.objects.filter(team=found)) | {
        "team": found,
        "section": "team",
        "may_manage": access.can(request.user, "team.manage", found),
        "own": specs.filter(own_rules=True),
        "following": specs.filter(own_rules=False).count(),
    }
    return render(request, "reviews/rules.html", context)


@require_POST
def protect_team(request: HttpRequest, team: str) -> HttpResponse:
    """Set the rules of the team."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    protection.protect_team(request.user, found, **_given(request))
    messages.success(request, "The rules are saved. They hold for open patches too.")
    return redirect("spak-review-rules", team=team)


@require_POST
def protect(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Give a spec rules of its own; with `do=follow` those of the team, with `do=imports` its own to what it
    imports."""
    found = find_spec(request, team, spec)
    if request.POST.get("do") == "follow":
        protection.follow_team(request.user, found)
    elif request.POST.get("do") == "imports":
        names = ", ".join(one.name for one in protection.protect_imports(request.user, found))
        messages.success(request, f"Protected: {names}." if names else "All that it imports is protected.")
    else:
        protection.protect(request.user, found, **_given(request))
    return redirect("spak-patch-list", team=team, spec=spec)


def _given(request: HttpRequest) -> dict[str, Any]:
    """What the form of the rules says."""
    given = request.POST
    asked = as_number(given.get("approvals", ""))
    return {
        "approvals": -1 if asked is None else asked,
        "by_admin": given.get("privileged_by_admin") == "1",
        "required": given.getlist("required_checks"),
        "roles": {kind: name for kind in KINDS if (name := given.get(f"role-{kind}", ""))},
        "queue": given.get("merge_queue") == "1",
        "follow": given.get("approvals_follow") == "1",
        "widening": given.get("widening", ""),
    }
