"""Watching runs from an event loop: one Hub per loop, which owns the watches (watches.py) and their readers.

The hub wakes a watch at a hint (news.py), and when a look at the database, twice a second, finds something
new. A reader takes what lies between its cursor and the head, so that a slow one costs nothing; one that has
fallen behind the window takes pages from the ledger (`whole`), or is told to fetch the list again. A stream
ends within a second of the sign-out, the token or the membership of its reader (viewers.py), and pages hear
who else looks on.

`batches(reader)` gives what a reader is to be sent, as Messages; consumers.py and events.py put them on a
wire. Nothing here writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from spakweb.face.streams.summaries import HEADER, header
from spakweb.face.streams.viewers import HOLDS_S, People, Viewer, over, people_message
from spakweb.face.streams.watches import LOOK_S, Message, Reader, TeamWatch, Watch, as_json
from spakweb.ground import clock
from spakweb.store.hints import news
from spakweb.store.runs.models import Run

MEMBERS_S, PEOPLE_S = 0.5, 0.5
BEAT_S = 15.0
MOST, MOST_EACH = 4000, 100
"""Streams of one process, and of one person."""

PLACE_S, PLACE_TRIES = 0.1, 20
"""How long one waits for a place that becomes free."""

CROWDED = 4429
T = TypeVar("T")

log = logging.getLogger(__name__)


class Crowded(Exception):
    """No more streams are opened."""


class Hub:
    """The watches of one event loop, what wakes them, and who may still read them."""

    def __init__(self) -> None:
        self.runs: dict[str, Watch] = {}
        self.teams: dict[int, TeamWatch] = {}
        self.readers = 0
        self.reads = 0
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="run-stream")
        self._tasks: list[asyncio.Task[None]] = []
        self._each: dict[int, int] = {}
        self._viewers: dict[tuple[Viewer, int], set[Reader]] = {}
        """The readers of each viewer of a team: whether one may still watch is asked once for all of them."""
        self._others = 0
        """Sockets that are no readers and have a place (`take_place`)."""
        self._patient = 0
        """How many wait for a place."""
        self.people = People()

    async def join(self, run: Run, viewer: Viewer, after: int = -1, *, whole: bool) -> Reader:
        """A reader of the records after `after`. Raises: Crowded."""
        await self._admit(viewer.user)
        watch = self.runs.get(run.key)
        if watch is None:
            watch = self.runs[run.key] = Watch(self, run.pk, run.key, run.team_id)
        self.people.come(run.key, viewer)
        self._gather([run.key])
        return await self._reader(Reader(watch, viewer, max(after + 1, 0), whole))

    async def join_team(self, team: int, viewer: Viewer) -> Reader:
        """A reader of the runs of a team. Raises: Crowded."""
        await self._admit(viewer.user)
        watch = self.teams.get(team)
        if watch is None:
            watch = self.teams[team] = TeamWatch(self, team)
        return await self._reader(Reader(watch, viewer))

    def leave(self, reader: Reader) -> None:
        """Remove a reader; idempotent."""
        watch = reader.watch
        if reader not in watch.readers:
            return
        self.readers -= 1
        self._one_less(reader.viewer.user)
        pair = reader.viewer, watch.team
        self._viewers[pair].discard(reader)
        if not self._viewers[pair]:
            del self._viewers[pair]
        watch.left(reader)
        if not watch.readers:
            watch.task.cancel()
            watch.forget()
        if not self.readers:
            self._rest()

    async def take_place(self, user: int) -> None:
        """Count one more socket of a person, that reads nothing here; `give_place` back. Raises: Crowded."""
        await self._admit(user)
        self._others += 1
        self._each[user] = self._each.get(user, 0) + 1

    def give_place(self, user: int) -> None:
        """The socket is gone."""
        self._others -= 1
        self._one_less(user)

    def _one_less(self, user: int) -> None:
        self._each[user] -= 1
        if not self._each[user]:
            del self._each[user]

    @property
    def clients(self) -> int:
        """Streams and sockets."""
        return self.readers + self._others

    def looks_on_no_more(self, key: str, viewer: Viewer) -> None:
        """A page of the run was closed: the others hear of it."""
        self.people.go(key, viewer)
        self._gather([key])

    def hear(self, heads: dict[str, int]) -> None:
        """A hint. In the loop's thread."""
        for key in heads:
            watch = self.runs.get(key)
            if watch is not None:
                watch.dirty.set()
        for team in self.teams.values():
            team.dirty.set()

    async def read(self, work: Callable[[], T]) -> T:
        """Read the database in a thread; a broken connection is closed."""

        def job() -> T:
            self.reads += 1
            try:
                return work()
            except DatabaseError:
                connection.close()
                raise
            finally:
                close_old_connections()

        return await asyncio.get_running_loop().run_in_executor(self._threads, job)

    def full(self, user: int) -> bool:
        """Whether there is no place for one more reader of this person."""
        return self.clients >= MOST or self._each.get(user, 0) >= MOST_EACH

    async def room(self, user: int) -> bool:
        """Whether there is a place now or in a moment: who was cut off comes again before the end of the old
        connection is seen here."""
        tries = PLACE_TRIES if self._patient < MOST_EACH else 0
        self._patient += 1
        try:
            while self.full(user) and tries:
                tries -= 1
                await asyncio.sleep(PLACE_S)
        finally:
            self._patient -= 1
        return not self.full(user)

    async def _admit(self, user: int) -> None:
        if not await self.room(user):
            raise Crowded

    async def _reader(self, reader: Reader) -> Reader:
        if not self.readers:
            works = [
                self._listen,
                self._look,
                self._members,
                *([self._send_people] if settings.REDIS_URL else []),
            ]
            self._tasks = [asyncio.create_task(work()) for work in works]
        reader.watch.readers.add(reader)
        self._viewers.setdefault((reader.viewer, reader.watch.team), set()).add(reader)
        self.readers += 1
        user = reader.viewer.user
        self._each[user] = self._each.get(user, 0) + 1
        return reader

    def _rest(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _listen(self) -> None:
        if settings.REDIS_URL:
            await self._listen_to_layer()
            return
        loop = asyncio.get_running_loop()
        made, file = news.listen()
        try:
            while True:
                self.hear(news.heard(await loop.sock_recv(made, 2 * news.DATAGRAM)))
        finally:
            made.close()
            file.unlink(missing_ok=True)

    async def _listen_to_layer(self) -> None:
        layer = get_channel_layer()
        assert layer is not None
        quiet = False
        while True:
            try:
                channel = await layer.new_channel()
                await layer.group_add(news.GROUP, channel)
                try:
                    while True:
                        message = await layer.receive(channel)
                        quiet = False
                        if message["type"] == "runs.people":
                            self._gather(self.people.hear(message))
                        else:
                            self.hear(message["heads"])
                finally:
                    with contextlib.suppress(Exception):
                        await layer.group_discard(news.GROUP, channel)
            except Exception as error:  # Redis is away: looking goes on, and this tries again
                if not quiet:
                    log.warning("no hints of runs: %s; looking instead", type(error).__name__)
                quiet = True
            await asyncio.sleep(1)

    async def _look(self) -> None:
        """The safety net: what changed without a hint, and leases that ended by themselves."""
        while True:
            await asyncio.sleep(LOOK_S)
            watched = {watch.pk: watch for watch in self.runs.values()}
            try:
                found, now = await self.read(partial(_headers, list(watched)))
            except DatabaseError:
                continue
            for one in found:
                watch = watched[one["pk"]]
                if header(one, now) != watch.shown or one["count"] != watch.count:
                    watch.dirty.set()
            for team in self.teams.values():
                team.dirty.set()

    async def _send_people(self) -> None:
        """To the other processes: whose pages are open here, when that changes and now and then again."""
        layer = get_channel_layer()
        assert layer is not None
        beats = 0
        while True:
            await asyncio.sleep(PEOPLE_S)
            beats += 1
            if beats * PEOPLE_S >= HOLDS_S / 3:
                beats = 0
                self.people.changed |= self.people.watched()
                self._gather(self.runs)
            changed, self.people.changed = self.people.changed, set()
            if changed:
                with contextlib.suppress(Exception):  # Redis is away: the next time tells all
                    await layer.group_send(news.GROUP, self.people.news(changed))

    def _gather(self, runs: Iterable[str]) -> None:
        """Let the pages of these runs hear who looks on."""
        for key in runs:
            watch = self.runs.get(key)
            if watch is None:
                continue
            text = as_json(people_message(self.people.of(key)))
            if text != watch.people:
                watch.people = text
                for reader in watch.readers:
                    reader.wake.set()

    async def _members(self) -> None:
        """Close the streams of those who signed out or whose membership ended."""
        while True:
            await asyncio.sleep(MEMBERS_S)
            try:
                ended = await self.read(partial(over, list(self._viewers)))
            except DatabaseError:
                continue
            for pair, code in ended.items():
                for reader in self._viewers.get(pair, ()):
                    reader.closed = code
                    reader.wake.set()


async def batches(reader: Reader) -> AsyncIterator[Sequence[Message]]:
    """What the reader is to be sent, as much at once as there is, until the run ends or it may not read any
    more; a `beat` when quiet."""
    watch = reader.watch
    await watch.ready.wait()
    while True:
        reader.wake.clear()
        if reader.closed:
            closed = as_json({"type": "closed", "code": reader.closed})
            yield (Message("closed", closed, code=reader.closed),)
            return
        behind, revision = watch.behind(reader), watch.revision
        if found := await watch.unsent(reader):
            yield found
            if found[-1].type == "end":
                return
        if behind or revision != watch.revision:
            continue
        try:
            async with asyncio.timeout(BEAT_S):  # without a task of its own, as `wait_for` has
                await reader.wake.wait()
        except TimeoutError:
            yield (Message("beat"),)


async def messages(reader: Reader) -> AsyncIterator[Message]:
    """The same, one at a time."""
    async for batch in batches(reader):
        for message in batch:
            yield message


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()


def clients() -> int:
    """How many streams and sockets this process has open, for what counts them."""
    return sum(hub.clients for hub in list(_hubs.values()))


def hub() -> Hub:
    """The hub of the running loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())


def _headers(runs: list[int]) -> tuple[list[dict[str, Any]], datetime]:
    """With the time that says which leases have ended."""
    return list(Run.objects.filter(pk__in=runs).values(*HEADER)) if runs else [], clock.now()
