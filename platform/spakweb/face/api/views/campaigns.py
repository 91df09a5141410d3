"""Findings of a spec's runs, and campaigns: list, begin, watch, pause, resume, stop, their ledgers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from spakweb.face.api.operations import SPEC, TEAM, Query, get, post
from spakweb.face.api.reading import paged
from spakweb.face.api.shapes import suites as shapes
from spakweb.face.api.views.specs import find_spec
from spakweb.face.api.views.suites import BEFORE
from spakweb.face.api.views.versions import version_named
from spakweb.face.runs import findings
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.store.campaigns.models import Campaign, State
from spakweb.store.ledger import export
from spakweb.store.runs.models import Run
from spakweb.store.specs import reach
from spakweb.store.suites.models import Suite
from spakweb.work.campaigns import actions
from spakweb.work.campaigns.queue import held_up

CAMPAIGNS = f"{TEAM}campaigns/"
CAMPAIGN = f"{CAMPAIGNS}<int:number>/"
ROWS = ("team", "spec", "version", "suite", "made_by")
NAMES = {"runs": "budget_runs", "tokens": "budget_tokens", "cost_nanousd": "budget_nanousd"}
"""Members of a request, by what the action calls them."""


def find_campaign(request: Request, team: str, number: int, action: str = "campaign.view") -> Campaign:
    """The campaign. Raises: Http404, PermissionDenied."""
    rows = Campaign.objects.select_related(*ROWS)
    found: Campaign = access.find(request.user, action, rows, team__slug=team, number=number)
    return found


@get(
    "spak-api-findings", f"{SPEC}findings/", gives=shapes.FindingsShape,
    query=(Query("version", int, description="Else the newest one with ended runs."),),
)  # fmt: skip
def list_findings(request: Request, team: str, spec: str, query: dict[str, Any]) -> Any:
    """What the newest runs of a version show: loops, denials, failures, with an edit if one is known."""
    shown = findings.of_version(find_spec(request, team, spec), query.get("version"))
    for run in Run.objects.filter(key__in=shown.runs if shown is not None else ()).only("takes_in"):
        reach.require_shown(request.user, run)
    analysis = shown.analysis if shown is not None else None
    return {
        "version": shown.version if shown is not None else None,
        "runs": shown.runs if shown is not None else (),
        "left_out": shown.left_out if shown is not None else 0,
        "findings": [one.to_json() for one in analysis.findings] if analysis is not None else [],
        "transitions": analysis.transitions if analysis is not None else [],
    }


@get(
    "spak-api-campaigns", CAMPAIGNS, gives=shapes.Campaigns,
    query=(BEFORE, Query("spec", str), Query("state", str, enum=list(State.values))),
)  # fmt: skip
def list_campaigns(request: Request, team: str, query: dict[str, Any]) -> Any:
    """The team's campaigns, the newest first."""
    _, rows = access.listed(request.user, "campaign.view", Campaign, team)
    if state := query.get("state"):
        own = Q(state=state)
        by_itself = {"paused": own | held_up(), "running": own & ~held_up()}
        rows = rows.filter(by_itself.get(state, own))
    if "spec" in query:
        rows = rows.filter(spec__slug=query["spec"])
    return paged(request, rows.select_related(*ROWS), query, "before", "number")


@post(
    "spak-api-campaign-begin", f"{SPEC}campaigns/",
    takes=shapes.CampaignRequest, gives=shapes.CampaignShape, status=201,
)  # fmt: skip
def begin_campaign(request: Request, team: str, spec: str, body: Any) -> Any:
    """Begin a campaign over a version of the spec. Needs the scope start."""
    found, given = find_spec(request, team, spec, "campaign.edit"), body()
    version = version_named(found, given)
    suite = Suite.objects.filter(team=found.team, slug=given.pop("suite")).first()
    if suite is None:
        raise Refused("web.campaign_plan", "There is no such suite.", "GET suites/ lists them.")
    given.pop("version", None)
    more: dict[str, Any] = {NAMES.get(name, name): value for name, value in given.items()}
    return lambda: actions.begin(request.user, version, suite, **more)


@get("spak-api-campaign", CAMPAIGN, gives=shapes.CampaignShape)
def get_campaign(request: Request, team: str, number: int) -> Any:
    """A campaign, its verdicts so far and what it has used."""
    return find_campaign(request, team, number)


@get("spak-api-campaign-ledger", f"{CAMPAIGN}ledger.jsonl", gives={(200, export.JSONL): OpenApiTypes.BINARY})
def export_campaign(request: Request, team: str, number: int) -> HttpResponse:
    """Its ledger, as `spak outer campaign --verify` reads one."""
    found = find_campaign(request, team, number)
    reach.require_alone(request.user, found.spec, found.version.text)
    lines = found.records.order_by("seq").values_list("line", flat=True)
    response = HttpResponse(b"".join(bytes(line) for line in lines), content_type=export.JSONL)
    answer: HttpResponse = export.attachment(response, f"campaign-{number}.trace.jsonl")
    return answer


@post("spak-api-campaign-pause", f"{CAMPAIGN}pause/", gives=shapes.CampaignShape, status=202)
def pause_campaign(request: Request, team: str, number: int) -> Any:
    """Begin no more of it; its open runs go on. Needs the scope start; idempotent."""
    return _controlled(request, team, number, actions.pause)


@post("spak-api-campaign-resume", f"{CAMPAIGN}resume/", gives=shapes.CampaignShape, status=202)
def resume_campaign(request: Request, team: str, number: int) -> Any:
    """Go on with a paused one, or try one at once that waits for a model. Needs the scope start."""
    return _controlled(request, team, number, actions.resume)


@post("spak-api-campaign-stop", f"{CAMPAIGN}stop/", gives=shapes.CampaignShape, status=202)
def stop_campaign(request: Request, team: str, number: int) -> Any:
    """End it for good and cancel its runs. Needs the scope start; idempotent."""
    return _controlled(request, team, number, actions.stop)


def _controlled(request: Request, team: str, number: int, act: Callable[..., Any]) -> Campaign:
    """The campaign as it is after an action."""
    act(request.user, find_campaign(request, team, number, "campaign.edit"))
    return find_campaign(request, team, number)
