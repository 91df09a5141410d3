"""The WebSockets of runs, for pages: what stream.py says, as JSON (docs/runs.md has the protocol).

A socket belongs to a person who may see the run or the team, and is closed when that or their session ends.
A page may ask with "ping" whether the server is there, and hears `{"type": "pong"}`; one that asks often, or
says anything else, is closed. No socket has a channel of its own: hints reach the
hub of the process, so that sockets outlive a channel layer that is away.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.core.exceptions import PermissionDenied
from django.http import Http404

from spakweb.face.streams.stream import CROWDED, Crowded, batches, hub
from spakweb.face.streams.viewers import SIGNED_OUT, Viewer
from spakweb.face.streams.watches import Reader
from spakweb.ground import access
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number
from spakweb.store.runs.models import Run

NOT_YOURS, ENDED = 4404, 1000
PING, PONG = "ping", '{"type":"pong"}'
PING_EACH_S = 1.0
MOST_HEARD = 20
"""Messages of a page, beside a ping each second, before its socket is closed."""


class Stream(AsyncWebsocketConsumer, ABC):
    """One socket: opened for what `find` gives, then one task that sends what there is."""

    channel_layer_alias = "none"
    reader: Reader | None = None
    task: asyncio.Task[None] | None = None
    heard = 0
    pinged = -PING_EACH_S

    async def connect(self) -> None:
        """Accept a person who may see it, and send what is new from then on."""
        await self.accept()
        user = self.scope["user"]
        if not user.is_authenticated:
            await self.close(SIGNED_OUT)
            return
        try:
            found = await database_sync_to_async(self.find)(user)
            self.reader = await self.join(found, Viewer.of(user, self.scope.get("session"), named=True))
        except (Http404, PermissionDenied):
            await self.close(NOT_YOURS)
        except Crowded:
            await self.close(CROWDED)
        else:
            self.task = asyncio.create_task(self._pump(self.reader))

    @abstractmethod
    def find(self, user: Any) -> Any:
        """Raises: Http404, PermissionDenied."""

    @abstractmethod
    async def join(self, found: Any, viewer: Viewer) -> Reader:
        """The reader of what was found; each stream has its own."""

    async def _pump(self, reader: Reader) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # it went away meanwhile
            async for batch in batches(reader):
                for message in batch:
                    if message.text and message.type != "closed":
                        await self.send(text_data=message.text)
            await self.close(reader.closed or ENDED)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer pings; whoever sends much else is closed."""
        now = asyncio.get_running_loop().time()
        if text_data == PING and now - self.pinged >= PING_EACH_S:
            self.pinged = now
            await self.send(text_data=PONG)
            return
        self.heard += 1
        if self.heard == MOST_HEARD:
            await self.close(CROWDED)

    async def disconnect(self, code: int) -> None:
        """Leave the hub."""
        if self.task is not None:
            self.task.cancel()
        if self.reader is not None:
            hub().leave(self.reader)


class RunStream(Stream):
    """The stream of one run."""

    def find(self, user: Any) -> Run:
        """The run of the address, and of the team where that is named.

        Raises: Http404 where the person may not see it."""
        rows = Run.objects.filter(deleted_at=None)
        named = self.scope["url_route"]["kwargs"]
        if "team" in named:
            rows = rows.filter(team__slug=named["team"])
        found: Run = access.find(user, "run.view", rows, key=named["key"])
        return found

    async def join(self, found: Run, viewer: Viewer) -> Reader:
        """The reader of the run, from the record that the browser has."""
        given = parse_qs(self.scope["query_string"].decode("latin-1"))
        return await hub().join(found, viewer, seq_of(given.get("after", [""])[0]), whole=False)


class TeamStream(Stream):
    """The stream of a team's list of runs."""

    def find(self, user: Any) -> Team:
        """The team of the address. Raises: Http404 where the person may not see it."""
        found: Team = access.find(user, "team.view", Team, slug=self.scope["url_route"]["kwargs"]["team"])
        return found

    async def join(self, found: Team, viewer: Viewer) -> Reader:
        """The reader of the team's list."""
        return await hub().join_team(found.pk, viewer)


def seq_of(text: str) -> int:
    """The seq that a reader names; -1 when it names none."""
    found = as_number(text)
    return -1 if found is None else found
