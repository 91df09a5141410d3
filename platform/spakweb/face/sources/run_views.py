"""What a run changed, on its way out: the patch as a file, and the buttons for a branch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from spak.errors import UserError
from spakweb.face.runs.run_parts import address
from spakweb.face.runs.views import find_run
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.store.ledger import export
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import Branch
from spakweb.work.runs import files
from spakweb.work.sources import branches, changes, leaving


@access.by_token
@require_safe
def patch(request: HttpRequest, team: str, run: str) -> Any:
    """Everything that the run changed as a patch for `git apply`."""
    return as_patch(find_run(request, team, run))


def as_patch(found: Run) -> Any:
    """What a run changed, as a file for `git apply`. Raises: Refused `web.run_empty`, `git.*`."""
    export.begun(found)
    try:
        before, now = files.roots(found)
        data = b""
        if before != now:
            out = leaving.by_law(found)
            replace(out, blocked=()).require(out.digest)  # a person reads its first lines, which say all
            data = changes.patch(found, out)
    except Refused:
        raise
    except UserError as error:
        raise Refused(error.code, f"{error.message}.", error.hint, 409) from error
    response = HttpResponse(data, content_type="text/x-diff; charset=utf-8")
    return export.attachment(response, f"{found.key}.patch")


@require_POST
def ask(request: HttpRequest, team: str, run: str) -> HttpResponse:
    """Ask for a branch; where it needs a signature, who may approve it does so at once."""
    found = find_run(request, team, run)
    given = {name: request.POST.get(name, "") for name in ("name", "title")}
    may = access.can(request.user, "run.approve", found)
    try:
        pull = bool(request.POST.get("pull"))
        signed = request.POST.get("signed", "")
        row = branches.ask(
            request.user, found, given["name"], given["title"], pull=pull, approve=may, signed=signed
        )
    except Refused as why:
        messages.error(request, f"{why.message} {why.hint}".strip())
    else:
        waits = row.state == Branch.State.ASKED
        done = "A reviewer is to approve the branch." if waits else "The branch is being pushed."
        messages.success(request, done)
    return _back(found)


@require_POST
def decide(request: HttpRequest, team: str, run: str, branch: int) -> HttpResponse:
    """Approve a branch, or decline it."""
    found = find_run(request, team, run)
    row = access.find(
        request.user, "run.approve", Branch.objects.select_related("run__team"), run=found, pk=branch
    )
    decision = request.POST.get("decision", "")
    if decision not in ("approve", "decline"):
        raise Refused("web.request", "The form does not say what is decided.", "Reload the page.")
    yes = decision == "approve"
    try:
        branches.decide(request.user, row, yes=yes, signed=request.POST.get("signed", ""))
    except Refused as why:
        messages.error(request, f"{why.message} {why.hint}".strip())
    else:
        messages.success(request, "Approved: the branch is pushed." if yes else "Declined: nothing goes out.")
    return _back(found)


def _back(run: Run) -> HttpResponse:
    response = redirect(address(run))
    response["Location"] += "?tab=workspace"
    return response
