"""Pages of patches: the team's inbox, the list of a spec, a patch; and the forms in them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_POST, require_safe

from spakweb.face.reviews import blame, page, views_rules
from spakweb.face.reviews.inbox import waiting as inbox_of
from spakweb.face.specs.changes import given_by
from spakweb.face.specs.views import around, find_spec
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number, clean, plural
from spakweb.ground.unsafe_text import revealing
from spakweb.ground.web.error_pages import wants_json
from spakweb.store.reviews.models import Patch
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import actions, campaigns, history, merge_queue, talk
from spakweb.work.reviews.protection import unprotected_imports
from spakweb.work.reviews.reading import draw, read
from spakweb.work.specs.actions import draft_moved, drop_draft

MOST = 200
"""Patches that a list shows, newest first."""
KEYS = (
    ("j k", "Next and previous part of the patch"),
    ("v", "The part is viewed"),
    ("a", "Approve"),
    ("x", "Say something with a verdict"),
    ("c", "Comment"),
    ("e", "Evidence"),
    ("i", "Edit the patch"),
    ("m", "Merge"),
)


def find_patch(request: HttpRequest, team: str, spec: str, number: int) -> Patch:
    """The patch of an address. Raises: Http404 where the person may not do that with it."""
    rows = Patch.objects.select_related("spec__team", "spec__head__author", "author", "merged", "reverts")
    lookup = {"spec__team__slug": team, "spec__slug": spec, "number": number}
    return access.find(request.user, "spec.view", rows, **lookup)


@require_safe
@revealing
def inbox(request: HttpRequest, team: str) -> HttpResponse:
    """Patches that wait for the person, and open patches of all specs of the team."""
    found = access.find(request.user, "spec.view", Team, slug=team)
    rows = Patch.objects.filter(spec__team=found, state=Patch.State.OPEN).select_related("spec", "author")
    needs = inbox_of(request.user, found)
    context = {"team": found, "section": "reviews", "needs": needs, "patches": rows[:MOST]}
    return render(request, "reviews/inbox.html", context)


@require_safe
def patch_list(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """The page of a spec's patches."""
    found = find_spec(request, team, spec)
    context = around(request, found, "patches") | {
        "patches": found.patches.select_related("author")[:MOST],
        "may_protect": access.can(request.user, "spec.protect", found),
        "queue": merge_queue.waiting(found),
        "open_imports": unprotected_imports(found, found.head.text),
        **views_rules.of_spec(found),
    }
    return render(request, "reviews/list.html", context)


@require_POST
def propose(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """A patch from a typed or uploaded text or unified diff."""
    found = find_spec(request, team, spec, "spec.propose")
    given, file = given_by(request), request.FILES.get("file")
    text = given.get("text")
    if file and given.get("kind") != "campaign":
        if (file.size or 0) > settings.UPLOAD_BYTES:
            raise Refused("web.text_size", "The file is too large.", "Take out what does not belong.", 413)
        text = clean(file.read(), settings.UPLOAD_BYTES)
    if file and given.get("kind") == "campaign":
        return _campaign(request, found, file)
    if not isinstance(text, str):
        raise Refused("web.no_text", "There is no text to propose.", "Send `text` and `base_version`.")
    title, why = (str(given.get(name) or "") for name in ("title", "rationale"))
    base, typed, number = _whole(given.get("base_version")), not file, _whole(given.get("patch"))
    began_from = found.patches.filter(number=number).first() if number else None
    made = actions.propose(request.user, found, text, base, title, why, typed=typed, began_from=began_from)
    _drop_draft(request, found, given, number)
    if wants_json(request):
        return JsonResponse({"patch": made.number, "url": _to(made)["Location"]}, status=201)
    messages.success(request, f"Patch {made.number} is proposed.")
    return _to(made)


def _campaign(request: HttpRequest, spec: Spec, file: Any) -> HttpResponse:
    made = campaigns.bring(request.user, spec, file.read(campaigns.BYTES + 1))
    if len(made) == 1:
        return _to(made[0])
    message = (
        f"{plural(len(made), 'candidate')} proposed." if made else "No candidate is new and fit for review."
    )
    messages.success(request, message)
    return redirect("spak-patch-list", team=spec.team.slug, spec=spec.slug)


@gzip_page
@require_safe
@revealing
def patch(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """What the newest revision changes, the evidence, who said what, what it still needs."""
    found, given = find_patch(request, team, spec, patch), request.GET
    unified, since = given.get("view") == "unified", _whole(given.get("since"))
    context = around(request, found.spec, "patches") | page.context(
        request.user, found, unified, since, _whole(given.get("said")), _whole(given.get("from"))
    )
    more = {"page_keys": KEYS, "line": _whole(given.get("line")), "part_name": given.get("part", "")[:200]}
    return render(request, "reviews/patch.html", context | more)


@never_cache
@require_safe
@revealing
def status(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """What changes while a page is open: verdicts, checks, what is missing. `shown` is its revision."""
    found = find_patch(request, team, spec, patch)
    context = page.status(request.user, found) | {"shown": _whole(request.GET.get("shown"))}
    return render(request, "reviews/_status.html", context)


@gzip_page
@require_safe
@revealing
def more(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """The next of what the page folds, for its script, or as a page of its own."""
    found, given = find_patch(request, team, spec, patch), request.GET
    if _whole(given.get("revision")) not in (0, found.latest.number):
        words = f"Revision {found.latest.number} came in."
        raise Refused("web.patch_moved", words, "Open the patch again.", 409)
    kind, name = given.get("kind", "parts"), given.get("part", "")
    context = page.more(request.user, found, kind, name, _whole(given.get("from")))
    context["do_url"] = reverse("spak-patch-do", args=[team, spec, patch])
    whole = "reviews/more.html" if request.headers.get("HX-Request") is None else f"reviews/_{kind}.html"
    return render(request, whole, context | {"section": "specs", "template": f"reviews/_{kind}.html"})


@gzip_page
@require_safe
@revealing
def graph(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """The drawing of both graphs, for a page that has a large one."""
    found = find_patch(request, team, spec, patch)
    latest = found.latest
    drawn = draw(read(found.spec, latest.base.text, latest.text).graph)
    return HttpResponse(drawn or "", content_type="image/svg+xml")


@require_safe
def text(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """The exact text of the newest revision."""
    found = find_patch(request, team, spec, patch)
    response = HttpResponse(found.latest.text.encode(), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{found.spec.slug}-patch-{found.number}.spak"'
    return response


@require_safe
def conflicts(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """What the patch and the spec's newest version both changed, by task, with a choice for each."""
    found = find_patch(request, team, spec, patch)
    context = around(request, found.spec, "patches") | {
        "patch": found,
        "revision": found.latest,
        "merged": actions.conflicts(found),
    }
    return render(request, "reviews/conflicts.html", context)


@require_POST
def revise(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """A new revision from the editor, as JSON. Where `revision` is not the newest nothing is written: the
    answer has the number and author of that one, and both changes in one text where they fit."""
    found, given = find_patch(request, team, spec, patch), given_by(request)
    text, seen = given.get("text"), _whole(given.get("revision"))
    if not isinstance(text, str):
        raise Refused("web.no_text", "There is no text to save.", "Send `text` and `revision`.")
    try:
        made = actions.revise(request.user, found, seen, text, str(given.get("why") or ""))
    except Refused as why:
        if why.code != "web.patch_moved":
            raise
        latest, both = found.latest, actions.joined(found, seen, clean(text, settings.UPLOAD_BYTES))
        newest = {"revision": latest.number, "by": str(latest.author), "joined": both}
        return JsonResponse({**why.to_json(), **newest}, status=why.status)
    _drop_draft(request, found.spec, given, found.number)
    return JsonResponse({"revision": made.number, "url": _to(found)["Location"]}, status=201)


def _drop_draft(request: HttpRequest, spec: Spec, given: Any, patch: int) -> None:
    """What the editor sent is a patch now: its draft goes, also an older state of it, unless another window
    has changed it since `seen`."""
    seen = given.get("seen")
    if isinstance(seen, str) and not draft_moved(request.user, spec, str(given.get("text")), seen, patch):
        drop_draft(request.user, spec, patch)


@require_POST
def viewed(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """Mark a part of a patch as viewed, or not viewed, by whoever is signed in."""
    found, given = find_patch(request, team, spec, patch), request.POST
    talk.view(request.user, found, given.get("part", ""), given.get("digest", ""), given.get("viewed") != "0")
    return HttpResponse(status=204) if wants_json(request) else _to(found)


@require_safe
@revealing
def blame_page(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Of each line of the newest version: who, when, why, on whose approval and which evidence."""
    found = find_spec(request, team, spec)
    return render(request, "reviews/blame.html", around(request, found, "blame") | blame.context(found))


@require_safe
def history_file(request: HttpRequest, team: str, spec: str) -> HttpResponse:
    """Versions and signed records as a file for `spak blame --history`."""
    found = find_spec(request, team, spec)
    response = HttpResponse(history.export(found), content_type="application/jsonl; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{found.slug}.history.jsonl"'
    return response


@require_POST
def act(request: HttpRequest, team: str, spec: str, patch: int) -> HttpResponse:
    """One form of the page: `do` names what, `revision` the one that the page showed."""
    found = find_patch(request, team, spec, patch)
    access.require(request.user, "spec.propose", found)
    given, user = request.POST, request.user
    seen, text = _whole(given.get("revision")), given.get("text", "")
    match given.get("do"):
        case "approve" | "refuse" as verdict:
            approves = verdict == "approve"
            actions.judge(user, found, seen, approves, text, given.get("loosened", ""))
            words = "You approved it" if approves else "You requested changes"
            messages.success(request, f"{words}. Until it is merged you can take that back.")
            return _to(found, "verdict")
        case "take-back":
            actions.take_back(user, found, seen)
            messages.success(request, "Your last verdict is taken back.")
            return _to(found, "verdict")
        case "comment":
            suggestion = given.get("suggestion") or None
            place = {"line": _whole(given.get("line")), "seen": seen, "answers": _whole(given.get("comment"))}
            made = talk.comment(user, found, text, given.get("path", ""), **place, suggestion=suggestion)
            return _to(found, f"comment-{made.parent_id or made.pk}")
        case "resolve":
            key = _whole(given.get("comment"))
            talk.resolve(user, found, key, given.get("resolved") != "0")
            return _to(found, f"comment-{key}")
        case "take":
            talk.take(user, found, seen, _whole(given.get("comment")))
        case "drop":
            actions.drop_edit(user, found, seen, _whole(given.get("edit")) - 1, text)
            return _to(found, "changes")
        case "only":
            actions.keep_edit(user, found, seen, _whole(given.get("edit")) - 1, text)
            return _to(found, "changes")
        case "revise":
            actions.revise(user, found, seen, text, given.get("why", ""))
        case "fork":
            return _to(actions.fork(user, found, text, given.get("why", "")))
        case "check":
            actions.repeat_check(user, found, seen)
        case "update":
            if not actions.conflicts(found).clean:
                return redirect("spak-patch-conflicts", team=team, spec=spec, patch=patch)
            actions.update(user, found, seen)
        case "decide":
            actions.decide(user, found, seen, _whole(given.get("head")), _choices(given, found))
        case "merge":
            version = actions.merge(user, found, seen)
            messages.success(request, f"Merged as version {version.number}.")
        case "queue":
            actions.queue(user, found, seen)
        case "unqueue":
            actions.unqueue(user, found)
            if given.get("back") == "list":
                return redirect("spak-patch-list", team=team, spec=spec)
        case "close":
            actions.close(user, found, seen)
        case "revert":
            return _to(actions.revert(user, found))
        case _:
            raise Refused("web.patch_do", "The form does not say what to do.", "Reload the page.")
    return _to(found)


def _choices(given: Any, patch: Patch) -> dict[str, str]:
    """The chosen text of each part in conflict, by its name."""
    both, found = {one.part: one for one in actions.conflicts(patch).conflicts}, {}
    for place in range(len(both)):
        part, side = given.get(f"part-{place}"), given.get(f"side-{place}")
        if part in both and side in ("mine", "theirs"):
            found[part] = getattr(both[part], side)
        elif part in both and side == "text":
            found[part] = clean(given.get(f"text-{place}", ""), settings.UPLOAD_BYTES)
    return found


def _whole(value: Any) -> int:
    return as_number(str(value)) or 0


def _to(patch: Patch, place: str = "") -> HttpResponse:
    where = reverse("spak-patch", args=[patch.spec.team.slug, patch.spec.slug, patch.number])
    return redirect(f"{where}#{place}" if place else where)
