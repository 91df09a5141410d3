"""Streams below the API's prefix: a run's records and a team's runs as server-sent events
(face/streams/events.py).

Rights, limits and problem documents are those of every view of the API: the view decides, then the stream
begins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from rest_framework.request import Request

from spakweb.face.api.operations import RUN, TEAM, Query, get
from spakweb.face.api.views.runs import AsyncView, find_run
from spakweb.face.streams import events
from spakweb.ground import access
from spakweb.ground.teams.models import Team

SSE = {(200, "text/event-stream"): str}


def streaming(answer: Any, stream: Callable[..., Any]) -> AsyncView:
    """The stream, where the view lets the reader in; else the view's answer."""

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


@get(
    "spak-api-events", f"{RUN}events/", gives={**SSE, 204: None},
    parameters=[
        Query("after", int, description="The last seq that was read."),
        Query("Last-Event-ID", str, Query.HEADER, description="The same; it wins."),
    ],
    around=partial(streaming, stream=_run_events),
)  # fmt: skip
def stream_run(request: Request, team: str, run: str) -> None:
    """The run's records as they come, with the seq as id; 204 once it has ended and all were read."""
    find_run(request, team, run, whole=True)


@get(
    "spak-api-team-events", f"{TEAM}events/", gives=SSE, around=partial(streaming, stream=events.team_events)
)
def stream_runs(request: Request, team: str) -> None:
    """The team's runs as they begin and change."""
    access.find(request.user, "run.view", Team, slug=team)
