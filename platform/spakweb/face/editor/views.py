"""The editor's page and the answers that it asks for: JSON in, JSON out.

Views find the spec (a stranger gets a 404), read the request, call one function and answer. Drafts are
written by `spakweb.work.specs.actions`; versions are saved, and merged, by the pages of specs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse, JsonResponse, RawPostDataException
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_POST, require_safe

from spak.errors import EditRefused, SpecError
from spakweb.face.docs.places import section_url
from spakweb.face.editor import services
from spakweb.face.specs.views import find_spec
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.text import as_number, json_object
from spakweb.store.reviews.models import Patch, Revision
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.store.specs.team_files import TeamFiles
from spakweb.work.specs import actions

QUESTIONS = (
    *("analyse", "edit", "format", "complete", "hover", "definition", "references", "rename"),
    *("compiled", "try", "panel", "last"),
)
View = Callable[..., HttpResponse]


# ---- the page


@never_cache
@require_safe
def editor(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """The editor's page of a spec, with the person's draft."""
    found = find_spec(request, team, spec)
    return _page(request, found, config_of(request, found, found.head))


@never_cache
@require_safe
def patch_editor(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """The editor with the newest revision of a patch, or the person's draft of the next. Where the patch is
    merged or closed only a draft is left, which can be proposed by itself."""
    found = find_spec(request, team, spec)
    changed = get_object_or_404(Patch, spec=found, number=patch)
    opened = changed.state == Patch.State.OPEN
    if not may_edit(request, found) or not (opened or actions.draft_of(request.user, found, patch).exists()):
        return redirect("spak-patch", team=team, spec=spec, patch=patch)
    latest, here = changed.latest, {"team": team, "spec": spec, "patch": patch}
    config = config_of(request, found, latest, patch)
    config["patch"] = {
        "number": patch,
        "opened": opened,
        "base_version": latest.base.number,
        "url": reverse("spak-patch", kwargs=here),
        "revise": reverse("spak-patch-revise", kwargs=here),
    }
    config["urls"]["draft"] += f"?patch={patch}"
    config["urls"]["login"] = f"{reverse('account_login')}?next={reverse('spak-patch-editor', kwargs=here)}"
    return _page(request, found, config, changed)


def _page(
    request: HttpRequest, spec: Spec, config: dict[str, Any], patch: Patch | None = None
) -> HttpResponse:
    context = {
        "team": spec.team,
        "spec": spec,
        "section": "specs",
        "may_edit": may_edit(request, spec),
        "config": config,
        "patch": patch,
        "revises": patch is not None and patch.state == Patch.State.OPEN,
    }
    return render(request, "editor/editor.html", context)


def may_edit(request: HttpRequest, spec: Spec) -> bool:
    """Whether the person may save versions of a spec, which archived ones have no more."""
    return spec.archived_at is None and access.can(request.user, "spec.edit", spec)


def config_of(
    request: HttpRequest, spec: Spec, newest: SpecVersion | Revision, patch: int = 0
) -> dict[str, Any]:
    """All that the page's scripts need to begin, with the person's draft; `newest` is the version, or the
    revision of the patch, that a save comes after."""
    here = {"team": spec.team.slug, "spec": spec.slug}
    draft = actions.draft_of(request.user, spec, patch).first()
    seen = draft.saved_at.isoformat() if draft is not None else ""
    if draft is not None and draft.text == newest.text:
        draft = None
    editable = may_edit(request, spec)
    return {
        "spec": {"id": spec.pk, "name": spec.name},
        "user": {"id": request.user.pk, "name": str(request.user)},
        "can_edit": editable,
        "protected": spec.review_rules.approvals > 0,
        "csrf": get_token(request),
        "nonce": str(request.csp_nonce),
        "text": draft.text if draft and editable else newest.text,
        "head_text": newest.text,
        "head_version": newest.number,
        "head_author": newest.saved_by if isinstance(newest, SpecVersion) else str(newest.author),
        "base_version": draft.base_version if draft and editable else newest.number,
        "seen": seen,
        "draft": {"saved_at": draft.saved_at.isoformat()} if draft and editable else None,
        "urls": {
            **{what: reverse("spak-editor-ask", kwargs={**here, "what": what}) for what in QUESTIONS},
            "draft": reverse("spak-editor-draft", kwargs=here),
            "save": reverse("spak-spec-save", kwargs=here),
            "token": reverse("spak-editor-token", kwargs=here),
            "propose": reverse("spak-patch-propose", kwargs=here),
            "docs": section_url("language"),
            "compare": reverse("spak-spec-compare", kwargs=here),
            "login": f"{reverse('account_login')}?next={reverse('spak-editor', kwargs=here)}",
            "presence": f"/t/{spec.team.slug}/specs/{spec.slug}/presence/",
        },
    }


# ---- answers


def refusals_as_json(view: View) -> View:
    """What was refused, as JSON with a code and a hint. An edit that this text does not allow is an answer
    like any other ({"refused": ...}, with status 200): nothing is wrong with the request."""

    @functools.wraps(view)
    def answer(request: HttpRequest, *given: Any, **named: Any) -> HttpResponse:
        try:
            return view(request, *given, **named)
        except Refused as error:
            return JsonResponse(error.to_json(), status=error.status)
        except (EditRefused, SpecError) as error:
            body = {"code": error.code, "message": error.message, "hint": error.hint}
            return JsonResponse({"refused": body})

    return answer


def body_of(request: HttpRequest) -> dict[str, Any]:
    """The JSON object of a request. Raises: Refused `web.request`."""
    try:
        data = request.body
    except RawPostDataException as error:  # it is a form
        raise Refused("web.request", "The request is not JSON in UTF-8.") from error
    return json_object(data)


@gzip_page
@require_POST
@refusals_as_json
def ask(request: HttpRequest, team: str, spec: str, what: str) -> HttpResponse:
    """One question about a text; nothing is kept."""
    named = find_spec(request, team, spec)
    team_files = TeamFiles.of(named)
    if what == "last":
        from spakweb.face.editor.last_run import last

        return JsonResponse(last(named, body_of(request)))
    if what == "compiled":
        from spakweb.face.editor.compiled import compiled as found
    elif what == "try":
        from spakweb.face.editor.attempt import attempt as found
    elif what == "panel":
        from spakweb.face.editor.panel import answer as found
    elif what == "analyse":
        from spakweb.face.editor.panel import analysed as found
    else:
        found = functools.partial(services.answer, what)
    return HttpResponse(orjson.dumps(found(body_of(request), team_files)), content_type="application/json")


@require_POST
@refusals_as_json
def draft(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Keeps what was typed so far, with `?patch=` as a draft of the patch's next revision; `{"drop": true}`
    throws it away and gives the newest text."""
    found = find_spec(request, team, spec, "spec.edit")
    body, patch = body_of(request), as_number(request.GET.get("patch", "")) or 0
    newest = get_object_or_404(Patch, spec=found, number=patch).latest if patch else found.head
    text, base = body.get("text"), body.get("base_version")
    if isinstance(text, str) and actions.draft_moved(request.user, found, text, body.get("seen"), patch):
        raise Refused(
            "web.draft_elsewhere", "Your draft was changed in another window.", "Choose which one stays.", 409
        )
    if body.get("drop") is True or text == newest.text:  # late news of what was saved meanwhile is no draft
        actions.drop_draft(request.user, found, patch)
        now = timezone.now().isoformat()
        return JsonResponse({"text": newest.text, "base_version": newest.number, "saved_at": now})
    if not isinstance(text, str) or type(base) is not int or base < 1:
        raise Refused("web.request", "A draft has a text and the number of the version it is based on.")
    kept = actions.save_draft(request.user, found, text, min(base, newest.number), patch)
    return JsonResponse({"saved_at": kept.saved_at.isoformat(), "base_version": kept.base_version})


@never_cache
@require_safe
def token(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """A fresh token for a page whose person has signed in anew elsewhere."""
    find_spec(request, team, spec)
    return JsonResponse({"csrf": get_token(request)})
