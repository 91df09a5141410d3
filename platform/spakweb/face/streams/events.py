"""The same streams as server-sent events, for programs: `curl -N` is enough (docs/runs.md has the protocol).

Of a record the exact line of the ledger is sent, with its seq as the id, so that a reader that comes again
with Last-Event-ID goes on behind it. A run that has ended and was read to its end is a 204.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from spakweb.face.streams.consumers import seq_of
from spakweb.face.streams.stream import CROWDED, Crowded, batches, hub
from spakweb.face.streams.viewers import Viewer
from spakweb.face.streams.watches import Message, Reader
from spakweb.ground import access
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.web.error_pages import program_answer
from spakweb.ground.web.origins import foreign
from spakweb.store.runs.models import Run
from spakweb.store.specs import reach
from spakweb.work.runs.deleted import gone

Join = Callable[[], Awaitable[Reader]]


@access.by_token
@require_GET
async def run_events(request: HttpRequest, team: str, key: str) -> HttpResponseBase:
    """A run as server-sent events, after the last one that the client has."""
    user = await request.auser()
    run: Run = await sync_to_async(_find)(user, "run.view", Run, team__slug=team, key=key)
    if run.deleted_at is not None:
        raise gone(run)
    reach.require_shown(user, run)
    after = seq_of(request.headers.get("Last-Event-ID") or request.GET.get("after", ""))
    if run.ended and after + 1 >= run.count > 0:
        return HttpResponse(status=204)
    viewer = Viewer.of(user, request.session, named=False)
    return await _streamed(request, viewer, partial(hub().join, run, viewer, after, whole=True))


@access.by_token
@require_GET
async def team_events(request: HttpRequest, team: str) -> HttpResponseBase:
    """A team's list of runs as server-sent events."""
    user = await request.auser()
    found: Team = await sync_to_async(_find)(user, "team.view", Team, slug=team)
    viewer = Viewer.of(user, request.session, named=False)
    return await _streamed(request, viewer, partial(hub().join_team, found.pk, viewer))


def _find(*args: Any, **lookup: Any) -> Any:
    """What `access.find` gives; the thread of a stream lives long and should hold no connection."""
    try:
        return access.find(*args, **lookup)
    finally:
        if not connection.in_atomic_block:
            connection.close()


async def _streamed(request: HttpRequest, viewer: Viewer, join: Join) -> HttpResponseBase:
    if foreign(request):
        raise Refused(
            "web.origin", "A page of another site asked.", "Open it from the platform, or with a token.", 403
        )
    if not await hub().room(viewer.user):
        return _crowded(request)
    answer = StreamingHttpResponse(_events(join), content_type="text/event-stream")
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def _events(join: Join) -> AsyncIterator[bytes]:
    """The stream of a reader. It takes its place here and not before: whoever hangs up while the answer is
    still on its way through the middleware would keep it, as nobody closes an answer that is not sent."""
    try:
        reader = await join()
    except Crowded:  # the last place was taken meanwhile
        yield b'retry: 5000\n\nevent: closed\ndata: {"type":"closed","code":%d}\n\n' % CROWDED
        return
    try:
        yield b"retry: 1000\n\n"
        async for batch in batches(reader):
            yield b"".join(map(written, batch))
    finally:
        hub().leave(reader)


def written(message: Message) -> bytes:
    """A message in the form of events."""
    if message.type == "beat":
        return b": beat\n\n"
    if message.type == "records":
        return b"".join(
            b"id: %d\nevent: record\ndata: %s\n\n" % (item.seq, item.line.rstrip(b"\n"))
            for item in message.items
        )
    return f"event: {message.type}\ndata: {message.text}\n\n".encode()


def _crowded(request: HttpRequest) -> HttpResponse:
    fields = {"code": "web.streams", "message": "Too many streams are open.", "hint": "Close some."}
    return program_answer(request, fields, 503, {"Retry-After": "5"})
