"""What the forms of a source's folder do; its page is the source's."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from spakweb.face.sources.views import find_source
from spakweb.ground.errors import Refused
from spakweb.store.specs.models import Spec
from spakweb.work.folders import actions


@require_POST
def act(request: HttpRequest, team: str, source: str) -> HttpResponse:
    """Set the folder up, sync it now, put a spec into it, or sync it no more."""
    found = find_source(request, team, source)
    given = {name: request.POST.get(name, "") for name in ("branch", "path", "out", "spec")}
    try:
        match request.POST.get("do", ""):
            case "set":
                actions.set_up(request.user, found, given["branch"], given["path"], given["out"] or "none")
                done = "The folder is being synced."
            case "sync":
                actions.sync_now(request.user, found)
                done = "The folder is being synced."
            case "include":
                spec = Spec.objects.select_related("team").filter(team=found.team, slug=given["spec"])
                chosen = spec.first() if given["spec"].isprintable() else None
                if chosen is None:
                    raise Http404
                actions.include(request.user, found, chosen)
                done = f"{chosen.name} goes into the folder with the next sync."
            case "remove":
                actions.remove(request.user, found)
                done = "The folder is not synced any more. Its specs stay."
            case _:
                raise Refused("folder.do", "A folder cannot do that.", "Use the buttons of its page.")
    except Refused as why:
        if why.code == "folder.do":
            raise
        messages.error(request, f"{why.message} {why.hint}".strip())
    else:
        messages.success(request, done)
    return redirect("spak-source", team=team, source=found.name)
