"""Who may do what: the one place that decides.

`can(user, action, thing)` answers for one object, `visible_to(user, queryset)` for many. Rights come from the
role that a person has in the team that owns the thing; rights.py names the least role for each action. What a
person may not see does not exist for them: `find` raises 404 for it. What they see and may not do is a 403.

A program that came with a token has the rights of a viewer, in the teams of the token, and
of what its person may do besides the actions that a scope of the token names. It reaches only views that say
so with `by_token`. A token may be for some specs alone: then only what is of them exists for it
(`SPEC_PATH` of a model says how a row leads to its spec; what is of none is not reached), and lists come from
`listed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, resolve_url
from django.utils.cache import patch_cache_control

from spakweb.ground.rights import ACTIONS, RANK, SCOPES
from spakweb.ground.teams.models import Membership, Role, Team
from spakweb.ground.web.error_pages import API, form_of, program_answer


def role_in(user: Any, team: Team) -> Role | None:
    """The person's role, or None for a stranger; of a program the least one."""
    found = member_role(user, team)
    return Role.VIEWER if found and user.token else found


def member_role(user: Any, team: Team) -> Role | None:
    """The role that the person has, whoever acts for them: what a token may do, its scopes say besides."""
    if not user.is_authenticated or not user.is_active or (user.token and not user.token.reaches(team)):
        return None
    found = Membership.objects.filter(user=user, team=team).values_list("role", flat=True).first()
    return Role(found) if found else None


def _scope_of(action: str) -> str:
    """The scope that a token needs for an action; empty: no token has it."""
    if ACTIONS[action] == Role.VIEWER:
        return "look"
    return next((scope for scope, names in SCOPES.items() if action in names), "")


def _in_scope(user: Any, action: str) -> bool:
    scope = _scope_of(action)
    return not user.token or scope == "look" or scope in user.token.scopes


def _of_its_specs(user: Any, thing: Any) -> bool:
    """Whether the token of the person, if any, is for the spec that a thing is of."""
    specs = user.token.specs if user.token else None
    if specs is None:
        return True
    path = getattr(thing, "SPEC_PATH", "")
    for name in path.split("__") if path else ():
        thing = getattr(thing, name, None)
    return bool(path) and thing in specs


def team_of(thing: Any) -> Team:
    """The team that owns it."""
    while not isinstance(thing, Team):
        thing = thing.team if hasattr(thing, "team") else thing.spec
    return thing


def can(user: Any, action: str, thing: Any) -> bool:
    """Whether a person's role in the team of a thing permits an action."""
    return can_each(user, thing, action)[0]


def can_each(user: Any, thing: Any, *actions: str) -> list[bool]:
    """Whether the role permits each of these actions, with one query."""
    role = member_role(user, team_of(thing)) if _of_its_specs(user, thing) else None
    return [
        role is not None and RANK[role] >= RANK[ACTIONS[action]] and _in_scope(user, action)
        for action in actions
    ]


def visible_to(user: Any, queryset: QuerySet) -> QuerySet:
    """What of it the person may see; `queryset.model.TEAM_PATH` says how a row leads to its team."""
    if not user.is_authenticated or not user.is_active:
        return queryset.none()
    path = queryset.model.TEAM_PATH
    own = Membership.objects.filter(user=user).values("team")
    if user.token and user.token.team_id:
        own = own.filter(team=user.token.team_id)
    rows = queryset.filter(**{f"{path}__in" if path else "pk__in": own})
    if user.token and user.token.specs is not None and queryset.model is not Team:
        path = getattr(queryset.model, "SPEC_PATH", "")
        return rows.filter(**{f"{path}__in": user.token.specs}) if path else rows.none()
    return rows


def listed(user: Any, action: str, queryset: QuerySet | type[Model], team: str) -> tuple[Team, QuerySet]:
    """A team and those of its rows that the person may see. Raises: as `find`."""
    found = _find(user, Team, slug=team)
    _require_role(user, action, found)
    rows = queryset if isinstance(queryset, QuerySet) else queryset._default_manager.all()
    return found, visible_to(user, rows.filter(**{rows.model.TEAM_PATH: found}))


def find(user: Any, action: str, queryset: QuerySet | type[Model], **lookup: Any) -> Any:
    """The one object, allowed. Raises: Http404 when it is not there or not theirs, PermissionDenied when the
    role is too low, or the object a team and the token for some specs alone."""
    found = _find(user, queryset, **lookup)
    require(user, action, found)
    return found


def _find(user: Any, queryset: QuerySet | type[Model], **lookup: Any) -> Any:
    if "\0" in "".join(map(str, lookup.values())):  # PostgreSQL asks for nothing with it
        raise Http404
    rows = queryset if isinstance(queryset, QuerySet) else queryset._default_manager.all()
    return get_object_or_404(visible_to(user, rows), **lookup)


def require(user: Any, action: str, thing: Any) -> None:
    """Nothing, or Http404 for a stranger, or PermissionDenied for a role too low."""
    if not _of_its_specs(user, thing):
        if isinstance(thing, Team) and member_role(user, thing) is not None:
            raise PermissionDenied("This is the whole team's, and the token is for some specs alone.")
        raise Http404
    _require_role(user, action, thing)


def _require_role(user: Any, action: str, thing: Any) -> None:
    role = member_role(user, team_of(thing))
    if role is None:
        raise Http404
    if not _in_scope(user, action):
        scope = _scope_of(action)
        needs = f"needs a token with the scope {scope}" if scope else "is done by people: no token does it"
        raise PermissionDenied(f"This {needs}.")
    if RANK[role] < RANK[ACTIONS[action]]:
        least = ACTIONS[action]
        raise PermissionDenied(
            f"This needs the role {least.label.lower()} or above; yours is {role.label.lower()}."
        )


View = TypeVar("View", bound=Callable[..., Any])
CHALLENGE = 'Bearer realm="SPAK"'


def by_token(view: View, *, writes: bool = False) -> View:
    """A view that programs may ask with a token; one that `writes` takes other methods than GET too. The
    outermost decorator."""
    view.by_token = True  # type: ignore[attr-defined]
    view.writes_by_token = writes  # type: ignore[attr-defined]
    return view


class SignedIn(LoginRequiredMiddleware):
    """Every page asks for a sign-in unless its view says otherwise; scripts get a 401 and no page of HTML.
    Who sent a form comes back to its page. No shared cache keeps what one person was shown."""

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponse:
        """Answer somebody who is signed out: a page, or JSON for programs."""
        accept = request.headers.get("Accept", "")
        api = request.path.startswith(API)
        if api or (getattr(view_func, "by_token", False) and "text/html" not in accept):
            fields = {
                "code": "web.signed_out",
                "message": "This needs a sign-in or a token.",
                "hint": "Make a token on the account page and send it: Authorization: Bearer spak_...",
            }
            return program_answer(request, fields, 401, {"WWW-Authenticate": CHALLENGE})
        if request.headers.get("HX-Request") or "application/json" in accept:
            return JsonResponse({"code": "web.signed_out", "message": "You are signed out."}, status=401)
        if request.method not in ("GET", "HEAD"):
            return redirect_to_login(form_of(request) or "/", resolve_url(self.get_login_url(view_func)))
        return super().handle_no_permission(request, view_func)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Keep pages of signed-in people out of shared caches."""
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_cache=True)
        return response
