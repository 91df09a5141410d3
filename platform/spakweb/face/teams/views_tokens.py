"""Pages of one's own tokens: making and rotating one, which is shown this once, and revoking one."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team, Token
from spakweb.work.teams import tokens

SCOPES = {
    "start": "Start, fork, label, pause and cancel runs, experiments and campaigns, upload files",
    "answer": "Answer what a run waits for",
    "edit": "Create specs, save versions and move tags",
    "review": "Propose and revise patches, comment, merge what people approved",
    "admin": "Add, change and remove the team's sources, and read the audit log",
}
"""What a token may be given besides looking, in words."""
GRACE = {
    0: "Ends now",
    1: "Works for another hour",
    24: "Works for another day",
    168: "Works for another week",
}
"""What becomes of the secret before a rotation, in words."""


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required
def new(request: HttpRequest) -> HttpResponse:
    """The form; when it is sent, the token."""
    teams = request.user.teams.all()
    context = {
        "teams": teams,
        "days": tokens.DAYS,
        "given": {"days": "30", **request.POST.dict()},
        "scopes": [(name, words, name in request.POST.getlist("scope")) for name, words in SCOPES.items()],
    }
    if request.method != "POST":
        return render(request, "teams/token.html", context)
    slug = request.POST.get("team", "")
    team = access.find(request.user, "team.view", Team, slug=slug) if slug else None
    try:
        made, secret = tokens.make(
            request.user, request.POST.get("name", ""), _one_of(tokens.DAYS, request.POST.get("days", "")),
            team, request.POST.getlist("scope"), request.POST.get("specs", "").replace(",", " ").split(),
        )  # fmt: skip
    except Refused as why:
        return render(request, "teams/token.html", {**context, "why": why}, status=why.status)
    return _made(request, made, secret)


def _one_of(known: tuple[int, ...], given: str) -> int:
    """The number that was chosen; -1 for what nobody offers."""
    return int(given) if given in map(str, known) else -1


def _made(request: HttpRequest, made: Token, secret: str) -> HttpResponse:
    first = made.team or request.user.teams.first()
    address = request.build_absolute_uri(reverse("spak-api-runs", args=[first.slug])) if first else ""
    line = f'curl -fsS -H "Authorization: Bearer $SPAK_TOKEN" {address}' if address else ""
    about = {"made": made, "secret": secret, "line": line, "names": tokens.spec_names([made])[made.pk]}
    return render(request, "teams/token_made.html", about)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required
def rotate(request: HttpRequest, token: int) -> HttpResponse:
    """The form; when it is sent, the new secret."""
    found = get_object_or_404(tokens.tokens_of(request.user), pk=token)
    given = {"days": "30", "grace": "24", **request.POST.dict()}
    grace = [(str(hours), words) for hours, words in GRACE.items()]
    context = {"token": found, "days": tokens.DAYS, "grace": grace, "given": given}
    if request.method != "POST":
        return render(request, "teams/token_rotate.html", context)
    days = _one_of(tokens.DAYS, request.POST.get("days", ""))
    try:
        made, secret = tokens.rotate(found, days, _one_of(tokens.GRACE_HOURS, request.POST.get("grace", "")))
    except Refused as why:
        return render(request, "teams/token_rotate.html", {**context, "why": why}, status=why.status)
    return _made(request, made, secret)


@require_POST
def revoke(request: HttpRequest, token: int) -> HttpResponse:
    """Revoke one of the person's tokens."""
    found = get_object_or_404(Token, pk=token, user=request.user)
    tokens.revoke(found)
    messages.success(request, f"{found.name} no longer works.")
    return redirect("spak-account")
