"""The same streams as server-sent events, for programs: `curl -N` is enough (docs/runs.md has the protocol).

Of a record the exact line of the ledger is sent, with its seq as the id, so that a reader that comes again
with Last-Event-ID goes on behind it. A run that has ended and was read to its end is a 204.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET

from spakweb import access
from spakweb.runs.consumers import seq_of
from spakweb.runs.models import Run
from spakweb.runs.stream import Crowded, Message, hub, messages
from spakweb.runs.viewers import Viewer
from spakweb.runs.watches import Reader
from spakweb.teams.models import Team


@require_GET
async def run_events(request: HttpRequest, key: str) -> HttpResponseBase:
    user = await request.auser()
    run: Run = await sync_to_async(_find)(user, "run.view", Run, key=key)
    after = seq_of(request.headers.get("Last-Event-ID") or request.GET.get("after", ""))
    if run.ended and after + 1 >= run.count > 0:
        return HttpResponse(status=204)
    try:
        return _streamed(
            await hub().join(run, Viewer.of(user, request.session, named=False), after, whole=True)
        )
    except Crowded:
        return _crowded()


@require_GET
async def team_events(request: HttpRequest, team: str) -> HttpResponseBase:
    user = await request.auser()
    found: Team = await sync_to_async(_find)(user, "team.view", Team, slug=team)
    try:
        return _streamed(await hub().join_team(found.pk, Viewer.of(user, request.session, named=False)))
    except Crowded:
        return _crowded()


def _find(*args: Any, **lookup: Any) -> Any:
    """What `access.find` gives; the thread of a stream lives long and should hold no connection."""
    try:
        return access.find(*args, **lookup)
    finally:
        if not connection.in_atomic_block:
            connection.close()


def _streamed(reader: Reader) -> HttpResponseBase:
    answer = StreamingHttpResponse(_Events(reader), content_type="text/event-stream")
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


class _Events:
    """The stream of a reader, which is left when the response is closed, also before the first event."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._hub = reader, hub()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        try:
            async for message in messages(self._reader):
                yield written(message)
        finally:
            self.close()

    def close(self) -> None:
        self._hub.leave(self._reader)


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


def _crowded() -> JsonResponse:
    hint: dict[str, Any] = {
        "code": "web.streams",
        "message": "Too many streams are open.",
        "hint": "Close some.",
    }
    return JsonResponse(hint, status=503, headers={"Retry-After": "5"})
