"""Streams below the API's prefix: a run's records and a team's runs as server-sent events (live/events.py).

Rights, limits and problem documents are those of every view of the API: the view decides, then the stream
begins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb import access
from spakweb.api.base import View
from spakweb.api.views_runs import AsyncView, find_run
from spakweb.live import events
from spakweb.teams.models import Team

SSE = {(200, "text/event-stream"): str}


class RunEvents(View):
    """The stream of a run."""

    @extend_schema(
        operation_id="stream_run",
        responses={**SSE, 204: None},
        parameters=[
            OpenApiParameter("after", int, description="The last seq that was read."),
            OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER, description="The same; it wins."),
        ],
    )
    def get(self, request: Request, team: str, run: str) -> Response:
        """The run's records as they come, with the seq as id; 204 once it has ended and all were read."""
        find_run(request, team, run, kept=True, whole=True)
        return Response({})


class TeamEvents(View):
    """The stream of a team."""

    @extend_schema(operation_id="stream_runs", responses=SSE)
    def get(self, request: Request, team: str) -> Response:
        """The team's runs as they begin and change."""
        access.find(request.user, "run.view", Team, slug=team)
        return Response({})


def streaming(view: type[View], stream: Callable[..., Any]) -> AsyncView:
    """The stream, where the view lets the reader in; else the view's answer."""
    answer = view.as_view()

    @wraps(answer)
    async def begin(request: HttpRequest, **here: str) -> HttpResponseBase:
        first: HttpResponseBase = await sync_to_async(answer)(request, **here)
        if first.status_code != 200 or request.method != "GET":
            return first
        found: HttpResponseBase = await stream(request, **here)
        for name in ("RateLimit", "RateLimit-Policy"):
            found[name] = first[name]
        return found

    return begin


async def _run_events(request: HttpRequest, team: str, run: str) -> HttpResponseBase:
    return await events.run_events(request, team, run)


run_events = streaming(RunEvents, _run_events)
team_events = streaming(TeamEvents, events.team_events)
