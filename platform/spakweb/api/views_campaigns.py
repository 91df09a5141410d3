"""Findings of a spec's runs, and campaigns: list, begin, watch, pause, resume, stop, their ledgers."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb import access
from spakweb.api import shapes_suites as shapes
from spakweb.api.base import View
from spakweb.api.once import once
from spakweb.api.reading import PAGE, asked, asked_number, page_of
from spakweb.api.views_specs import find_spec
from spakweb.api.views_suites import BEFORE
from spakweb.api.views_versions import version_named
from spakweb.campaigns import actions
from spakweb.campaigns.models import Campaign, State
from spakweb.campaigns.queue import held_up
from spakweb.errors import Refused
from spakweb.ledger import export
from spakweb.runs.models import Run
from spakweb.runs.pages import findings
from spakweb.specs import reach
from spakweb.suites.models import Suite

ROWS = ("team", "spec", "version", "suite", "made_by")
NAMES = {"runs": "budget_runs", "tokens": "budget_tokens", "cost_nanousd": "budget_nanousd"}
"""Members of a request, by what the action calls them."""


def find_campaign(request: Request, team: str, number: int, action: str = "campaign.view") -> Campaign:
    """The campaign. Raises: Http404, PermissionDenied."""
    rows = Campaign.objects.select_related(*ROWS)
    found: Campaign = access.find(request.user, action, rows, team__slug=team, number=number)
    return found


class SpecFindings(View):
    """Findings of a spec's runs."""

    answers = shapes.FindingsShape

    @extend_schema(
        operation_id="list_findings",
        responses=shapes.FindingsShape,
        parameters=[OpenApiParameter("version", int, description="Else the newest one with ended runs.")],
    )
    def get(self, request: Request, team: str, spec: str) -> Response:
        """What the newest runs of a version show: loops, denials, failures, with an edit if one is known."""
        found = find_spec(request, team, spec)
        number = asked_number(asked(request, "version"), "version")
        shown = findings.of_version(found, number)
        for run in Run.objects.filter(key__in=shown.runs if shown is not None else ()).only("takes_in"):
            reach.require_shown(request.user, run)
        analysis = shown.analysis if shown is not None else None
        body = {
            "version": shown.version if shown is not None else None,
            "runs": list(shown.runs) if shown is not None else [],
            "left_out": shown.left_out if shown is not None else 0,
            "findings": [one.to_json() for one in analysis.findings] if analysis is not None else [],
            "transitions": list(analysis.transitions) if analysis is not None else [],
        }
        return Response(body)


class CampaignList(View):
    """Campaigns of a team."""

    answers = shapes.Campaigns

    @extend_schema(
        operation_id="list_campaigns",
        responses=shapes.Campaigns,
        parameters=[
            BEFORE,
            OpenApiParameter("spec", str),
            OpenApiParameter("state", str, enum=list(State.values)),
        ],
    )
    def get(self, request: Request, team: str) -> Response:
        """The team's campaigns, the newest first."""
        given = asked(request, "before", "spec", "state")
        _, rows = access.listed(request.user, "campaign.view", Campaign, team)
        if (state := given.get("state")) is not None:
            if state not in State.values:
                known = ", ".join(State.values)
                raise Refused("web.filter", f"There is no state {state[:40]!r}.", f"Known: {known}.")
            own = Q(state=state)
            by_itself = {"paused": own | held_up(), "running": own & ~held_up()}
            rows = rows.filter(by_itself.get(state, own))
        if "spec" in given:
            rows = rows.filter(spec__slug=given["spec"])
        if (before := asked_number(given, "before")) is not None:
            rows = rows.filter(number__lt=before)
        rows = rows.select_related(*ROWS).order_by("-number")[: PAGE + 1]
        page, more = page_of(request, rows, "before", lambda one: one.number)
        return Response({"campaigns": [shapes.campaign_of(request, one) for one in page], "next": more})


class CampaignBegin(View):
    """Beginning campaigns."""

    @extend_schema(
        operation_id="begin_campaign",
        request=shapes.CampaignRequest,
        responses={201: shapes.CampaignShape},
    )
    def post(self, request: Request, team: str, spec: str) -> Response:
        """Begin a campaign over a version of the spec. Needs the scope start."""
        found = find_spec(request, team, spec, "campaign.edit")
        given = self.given(request, shapes.CampaignRequest)
        version = version_named(found, given)
        suite = Suite.objects.filter(team=found.team, slug=given.pop("suite")).first()
        if suite is None:
            raise Refused("web.campaign_plan", "There is no such suite.", "GET suites/ lists them.")
        given.pop("version", None)
        more: dict[str, Any] = {NAMES.get(name, name): value for name, value in given.items()}

        def work() -> Response:
            made = actions.begin(request.user, version, suite, **more)
            body = shapes.campaign_of(request, made)
            return Response(body, status=201, headers={"Location": body["url"]})

        return once(request, work)


class CampaignDetail(View):
    """A campaign."""

    answers = shapes.CampaignShape

    @extend_schema(operation_id="get_campaign", responses=shapes.CampaignShape)
    def get(self, request: Request, team: str, number: int) -> Response:
        """A campaign, its verdicts so far and what it has used."""
        return Response(shapes.campaign_of(request, find_campaign(request, team, number)))


class CampaignLedger(View):
    """The ledger of a campaign."""

    @extend_schema(operation_id="export_campaign", responses={(200, export.JSONL): OpenApiTypes.BINARY})
    def get(self, request: Request, team: str, number: int) -> HttpResponse:
        """Its ledger, as `spak outer campaign --verify` reads one."""
        found = find_campaign(request, team, number)
        reach.require_alone(request.user, found.spec, found.version.text)
        lines = found.records.order_by("seq").values_list("line", flat=True)
        response = HttpResponse(b"".join(bytes(line) for line in lines), content_type=export.JSONL)
        answer: HttpResponse = export.attachment(response, f"campaign-{number}.trace.jsonl")
        return answer


class CampaignPause(View):
    """Control of a campaign."""

    @extend_schema(operation_id="pause_campaign", request=None, responses={202: shapes.CampaignShape})
    def post(self, request: Request, team: str, number: int) -> Response:
        """Begin no more of it; its open runs go on. Needs the scope start; idempotent."""
        actions.pause(request.user, find_campaign(request, team, number, "campaign.edit"))
        return Response(shapes.campaign_of(request, find_campaign(request, team, number)), status=202)


class CampaignResume(View):
    """Control of a campaign."""

    @extend_schema(operation_id="resume_campaign", request=None, responses={202: shapes.CampaignShape})
    def post(self, request: Request, team: str, number: int) -> Response:
        """Go on with a paused one, or try one at once that waits for a model. Needs the scope start."""
        actions.resume(request.user, find_campaign(request, team, number, "campaign.edit"))
        return Response(shapes.campaign_of(request, find_campaign(request, team, number)), status=202)


class CampaignStop(View):
    """Control of a campaign."""

    @extend_schema(operation_id="stop_campaign", request=None, responses={202: shapes.CampaignShape})
    def post(self, request: Request, team: str, number: int) -> Response:
        """End it for good and cancel its runs. Needs the scope start; idempotent."""
        actions.stop(request.user, find_campaign(request, team, number, "campaign.edit"))
        return Response(shapes.campaign_of(request, find_campaign(request, team, number)), status=202)
