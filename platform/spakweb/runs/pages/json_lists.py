"""What programs find runs and their files by, as JSON: the list of a team with the filters of its page, the
files of a run. All else of a run is its stream, its export, its log and its report (docs/runs.md).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from spakweb import access, clock
from spakweb.errors import Refused
from spakweb.ledger import export
from spakweb.live.summaries import HEADER, list_row
from spakweb.runs.models import Run
from spakweb.runs.pages.filters import RunFilter
from spakweb.runs.pages.views import find_run
from spakweb.specs.reach import hides

PAGE = 100


@access.by_token
@require_safe
def runs(request: HttpRequest, team: str) -> JsonResponse:
    """The newest runs first, a page at a time; `next` is the address of the page behind it, or null.

    A filter that the page would leave out is refused: a program would take all runs for those that it meant.
    """
    found, rows = access.listed(request.user, "run.view", Run, team)
    wanted = RunFilter.of(request.GET)
    given = {key: value for key, value in request.GET.items() if key != "before"}
    if given != dict(parse_qsl(wanted.query)):
        names = ", ".join(sorted(given.keys() - dict(parse_qsl(wanted.query)).keys())) or "one of them"
        raise Refused(
            "web.run_filter", f"The filters cannot be used: {names[:100]}.",
            "They are state, spec, version, label, q, trials=0 or 1, mine=1 and deleted=1.",
        )  # fmt: skip
    rows = wanted.apply(rows, request.user, apart=False)
    if before := request.GET.get("before"):
        rows = rows.filter(pk__lt=access.find(request.user, "run.view", Run, team=found, key=before).pk)
    columns = (*HEADER, "version__spec__slug", "version__number", "deleted_at", "head", "takes_in")
    page = list(rows.order_by("-pk").values(*columns)[: PAGE + 1])
    now = clock.now()
    shown = [
        {
            **list_row(one, now),
            **({"task": ""} if hides(request.user, one["takes_in"]) else {}),
            "spec": one["version__spec__slug"],
            "version": one["version__number"],
            **_left(one),
        }
        for one in page[:PAGE]
    ]
    more = None
    if len(page) > PAGE:
        more = f"{request.path}?{urlencode({**given, 'before': shown[-1]['key']})}"
    return JsonResponse({"runs": shown, "next": more})


@access.by_token
@require_safe
def files(request: HttpRequest, team: str, run: str) -> JsonResponse:
    """The files that the run made or changed; `key` stands behind .../files/ in the address of one."""
    return JsonResponse({"files": export.artifacts(find_run(request, team, run))})


def _left(one: dict[str, Any]) -> dict[str, Any]:
    """What a deleted run has besides."""
    deleted_at = one["deleted_at"]
    return {} if deleted_at is None else {"deleted_at": deleted_at.isoformat(), "head": one["head"]}
