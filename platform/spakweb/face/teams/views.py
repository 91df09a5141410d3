"""Pages of a team's members and invitations, joining by a link, one's own account."""

from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from spakweb.ground import access, rights
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Invitation, Membership, NamedRole, Role, Team, Token, User
from spakweb.ground.text import as_number
from spakweb.store.runs.models import LogCheckpoint
from spakweb.work.teams import actions, named_roles, tokens
from spakweb.work.teams.adapter import SESSION_KEY


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The page that makes a team."""
    if request.method == "POST":
        name = request.POST.get("name", "")
        try:
            made = actions.create_team(request.user, name)
        except Refused as why:
            return render(request, "teams/new.html", {"why": why, "name": name}, status=why.status)
        messages.success(request, f"{made.name} is made. You are its admin.")
        return redirect("spak-team-home", team=made.slug)
    return render(request, "teams/new.html")


@require_safe
def members(request: HttpRequest, team: str) -> HttpResponse:
    """The page of a team's members and invitations."""
    return _members(request, access.find(request.user, "team.view", Team, slug=team))


def _members(request: HttpRequest, team: Team, link: str = "") -> HttpResponse:
    may_manage = access.can(request.user, "team.manage", team)
    invitations = team.invitations.select_related("made_by") if may_manage else Invitation.objects.none()
    now = timezone.now()
    context = {
        "team": team,
        "section": "team",
        "members": team.memberships.select_related("user"),
        "roles": [(role, rights.rights_of(role)) for role in Role],
        "may_manage": may_manage,
        "may_audit": access.can(request.user, "audit.view", team),
        "invitations": [made for made in invitations if made.open(now)],
        "link": link,
        "named_roles": _named(team),
        "platform_days": settings.KEEP_RUNS_DAYS,
        "checkpoint": LogCheckpoint.objects.filter(team=team).first(),
    }
    return render(request, "teams/members.html", context)


@require_safe
def checkpoint(request: HttpRequest, team: str) -> HttpResponse:
    """The last signed checkpoint of the team's runs, as a file."""
    found = access.find(request.user, "team.view", Team, slug=team)
    row = LogCheckpoint.objects.filter(team=found).first()
    if row is None:
        messages.info(request, "There is no checkpoint yet. The operator turns them on.")
        return redirect("spak-team-members", team=team)
    headers = {"Content-Disposition": f'attachment; filename="{row.size:012d}.checkpoint"'}
    return HttpResponse(row.note, content_type="text/plain; charset=utf-8", headers=headers)


def _named(team: Team) -> list[dict[str, Any]]:
    """Named roles with their members, by the keys of the memberships."""
    rows = team.named_roles.prefetch_related("members__user")
    return [{"row": row, "members": {member.pk: member for member in row.members.all()}} for row in rows]


@require_POST
def named_role(request: HttpRequest, team: str) -> HttpResponse:
    """Make a named role, or change who is in it."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    keys = [as_number(one) or 0 for one in request.POST.getlist("member")]
    made = named_roles.keep(request.user, found, request.POST.get("name", ""), keys)
    messages.success(request, f"{made.name} is saved.")
    return redirect("spak-team-members", team=team)


@require_POST
def named_role_remove(request: HttpRequest, team: str, role: int) -> HttpResponse:
    """Remove a named role."""
    rows = NamedRole.objects.select_related("team")
    found = access.find(request.user, "team.manage", rows, pk=role, team__slug=team)
    named_roles.drop(request.user, found)
    messages.success(request, f"{found.name} is removed.")
    return redirect("spak-team-members", team=team)


@require_POST
def keep_runs(request: HttpRequest, team: str) -> HttpResponse:
    """For how long runs are kept; the page says what that means."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    actions.keep_runs(request.user, found, request.POST.get("days", ""))
    messages.success(request, "It counts from now on: what is due goes within minutes.")
    return redirect("spak-team-members", team=team)


@require_POST
@never_cache
def invite(request: HttpRequest, team: str) -> HttpResponse:
    """Makes an invitation and shows its link, this once."""
    found = access.find(request.user, "team.manage", Team, slug=team)
    _, secret = actions.invite(
        request.user, found, request.POST.get("role", ""), request.POST.get("note", "")
    )
    return _members(request, found, request.build_absolute_uri(reverse("spak-join", args=[secret])))


@require_POST
def withdraw(request: HttpRequest, team: str, invitation: int) -> HttpResponse:
    """Withdraw an invitation."""
    rows = Invitation.objects.select_related("team")
    made = access.find(request.user, "team.manage", rows, pk=invitation, team__slug=team)
    actions.withdraw(request.user, made)
    messages.success(request, "The link no longer works.")
    return redirect("spak-team-members", team=team)


@require_POST
def role(request: HttpRequest, team: str, member: int) -> HttpResponse:
    """Give a member another role."""
    rows = Membership.objects.select_related("team", "user")
    found = access.find(request.user, "team.manage", rows, pk=member, team__slug=team)
    actions.set_role(request.user, found, request.POST.get("role", ""))
    messages.success(request, f"{found.user} has another role now.")
    return redirect("spak-team-members", team=team)


@require_POST
def remove(request: HttpRequest, team: str, member: int) -> HttpResponse:
    """Remove a member, or leave."""
    rows = Membership.objects.select_related("team", "user")
    found = access.find(request.user, "team.view", rows, pk=member, team__slug=team)
    actions.remove(request.user, found)
    if found.user_id == request.user.pk:
        messages.success(request, f"You left {found.team}.")
        return redirect("spak-home")
    messages.success(request, f"{found.user} is no longer in the team.")
    return redirect("spak-team-members", team=team)


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """What the link offers; who is not signed in signs in or makes an account first."""
    made = actions.invitation(secret)
    if made is None:
        request.session.pop(SESSION_KEY, None)
        raise actions.no_invitation(secret)
    if not request.user.is_authenticated:
        request.session[SESSION_KEY] = secret
        return render(request, "teams/join.html", {"invitation": made})
    if request.method == "POST":
        team = actions.join(request.user, secret)
        request.session.pop(SESSION_KEY, None)
        messages.success(request, f"Welcome to {team}.")
        return redirect("spak-team-home", team=team.slug)
    return render(request, "teams/join.html", {"invitation": made, "can": rights.rights_of(Role(made.role))})


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """One's name, teams, ways to sign in, and the last sign-ins."""
    kinds = list(Authenticator.objects.filter(user=request.user).values_list("type", flat=True))
    context = {
        "memberships": request.user.memberships.select_related("team"),
        "totp": "totp" in kinds,
        "passkeys": kinds.count("webauthn"),
        "codes": "recovery_codes" in kinds,
        "events": Event.objects.filter(team=None, actor=request.user)[:10],
        "tokens": _tokens(request.user),
        "now": timezone.now(),
    }
    return render(request, "teams/account.html", context)


def _tokens(user: User) -> list[Token]:
    """The person's tokens, each with the `names` of the specs that it is for."""
    found = list(tokens.tokens_of(user))
    names = tokens.spec_names(found)
    for one in found:
        one.names = names[one.pk]
    return found


@require_POST
def single_keys(request: HttpRequest) -> HttpResponse:
    """Whether pages act on single letters for the person."""
    User.objects.filter(pk=request.user.pk).update(single_keys=request.POST.get("on") == "1")
    return redirect("spak-account")
