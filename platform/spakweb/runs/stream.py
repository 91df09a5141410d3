"""Watching runs from an event loop: one Hub per loop, one Watch per run or team, any number of Readers.

A Watch reads the ledger once for all of its readers: at a hint (news.py) at once, then at most ten times a
second, less often when very many read; and when a look at the database, twice a second, finds something new.
It keeps the last records in a bounded window. A Reader has no queue: it has a cursor and takes what lies
between the cursor and the head, so that a slow one costs nothing. One that has fallen behind the window takes
pages from the ledger (`whole`), or is told to fetch the list again. A stream ends within two seconds of the
membership of its reader.

`messages(reader)` gives what a reader is to be sent, as Messages; consumers.py and events.py put them on a
wire. Nothing here writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.utils import timezone

from spak.records import decode
from spakweb import access
from spakweb.runs import news
from spakweb.runs.models import ENDED, Run, RunRecord
from spakweb.runs.project import Projection
from spakweb.runs.rows import HEADER, header, listed, row
from spakweb.teams.models import Membership

WINDOW, WINDOW_BYTES = 1000, 4 << 20
PAGE = 200
BEHIND = 1000
PACE_S, TEAM_PACE_S = 0.1, 0.5
CROWD = 200
"""Readers of one run that get the full pace; twice as many get half of it."""
LOOK_S, MEMBERS_S = 0.5, 2.0
BEAT_S = 15.0
LISTED = 200
MOST, MOST_EACH = 4000, 100
"""Streams of one process, and of one person."""

GONE, CROWDED, BROKEN = 4403, 4429, 1011
T = TypeVar("T")

log = logging.getLogger(__name__)


class Crowded(Exception):
    """No more streams are opened."""


@dataclass(frozen=True, slots=True)
class Item:
    seq: int
    row: str
    """The row of the record as JSON."""
    line: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """`text` is the whole object as JSON; of records also the items, for whoever sends lines."""

    type: str
    text: str = ""
    items: tuple[Item, ...] = ()
    code: int = 0


@dataclass(eq=False, slots=True)
class Reader:
    watch: Watch | TeamWatch
    user: int
    next: int = 0
    whole: bool = False
    seen: int = 0
    """The revision of nodes, edges and header that it has."""
    closed: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class Watching:
    """What watches of runs and teams share: readers, and a task that reads after each hint, at a pace."""

    pace_s = PACE_S

    def __init__(self, hub: Hub, team: int) -> None:
        self.hub, self.team = hub, team
        self.readers: set[Reader] = set()
        self.revision = 0
        self.dirty = asyncio.Event()
        self.ready = asyncio.Event()
        self.dirty.set()
        self.task = asyncio.create_task(self._keep_up())

    async def refresh(self) -> None:
        raise NotImplementedError

    def _told(self) -> None:
        self.ready.set()
        for reader in self.readers:
            reader.wake.set()

    async def _keep_up(self) -> None:
        while True:
            await self.dirty.wait()
            self.dirty.clear()
            try:
                await self.refresh()
            except DatabaseError as error:  # the next look tries again
                log.warning("a watched run was not read: %s", type(error).__name__)
            except Exception:  # damaged records: nobody may wait for what will not come
                log.exception("a watched run cannot be read")
                for reader in self.readers:
                    reader.closed = BROKEN
                self._told()
            else:
                self._told()
            await asyncio.sleep(self.pace_s * max(1, len(self.readers) // CROWD))


class Watch(Watching):
    def __init__(self, hub: Hub, pk: int, key: str, team: int) -> None:
        self.pk, self.key = pk, key
        self.count = 0
        self.ended = False
        self.shown: dict[str, Any] = {}
        self._window: deque[Item] = deque()
        self._bytes = 0
        self._seen: Projection | None = None
        self._folded = 0
        self._nodes: dict[str, tuple[int, list[Any]]] = {}
        self._edges: dict[str, tuple[int, list[Any]]] = {}
        self._header = 0
        self._states: dict[int, str] = {}
        super().__init__(hub, team)

    @property
    def first(self) -> int:
        """The oldest record of the window; the count when it is empty."""
        return self._window[0].seq if self._window else self.count

    async def refresh(self) -> None:
        try:
            shown, seen, folded, items = await self.hub.read(self._read)
        except BaseException:
            self._seen = None  # it may have been fed a part
            raise
        if items and items[0].seq != self.count:
            self._window.clear()
            self._bytes = 0
        for item in items:
            self._window.append(item)
            self._bytes += len(item.line)
        while self._window and (len(self._window) > WINDOW or self._bytes > WINDOW_BYTES):
            self._bytes -= len(self._window.popleft().line)
        self.count = max(self.count, folded)
        self._seen, self._folded = seen, folded
        self.revision += 1
        self._states = {}
        if shown != self.shown:
            self.shown, self._header = shown, self.revision
        self.ended = shown["state"] in ENDED and self.count >= shown["count"]
        for name, node in seen.data["nodes"].items():
            self._changed(self._nodes, name, [name, node["state"], node["visits"]])
        for name, times in seen.data["edges"].items():
            self._changed(self._edges, name, [*name.split("|", 2), times])
        if folded < shown["count"]:
            self.dirty.set()

    def _read(self) -> tuple[dict[str, Any], Projection, int, list[Item]]:
        """In a thread: the header, the projection and the records since the last time."""
        rows = Run.objects.filter(pk=self.pk)
        found = rows.values(*HEADER).get()
        count, seen, start = found["count"], self._seen, self._folded
        if seen is None or count - start > WINDOW:
            found = rows.values(*HEADER, "summary").get()
            count, seen = found["count"], Projection(found["summary"])
            start = max(min(found["projected"], count), count - WINDOW)
        lines = (
            RunRecord.objects.filter(run=self.pk, seq__gte=start, seq__lt=count)
            .order_by("seq")
            .values_list("line", flat=True)[:WINDOW]
        )
        items, folded = [], start
        for line in map(bytes, lines):
            record = decode(line)
            seen.feed(record)
            items.append(Item(record.seq, json.dumps(row(record), ensure_ascii=False), line))
            folded = record.seq + 1
        return header(found, timezone.now()), seen, folded, items

    def _changed(self, among: dict[str, tuple[int, list[Any]]], name: str, value: list[Any]) -> None:
        if name not in among or among[name][1] != value:
            among[name] = self.revision, value

    def items(self, start: int) -> tuple[Item, ...]:
        """The next page of the window from `start` on, which lies in it."""
        at = start - self.first
        return tuple(self._window[n] for n in range(at, min(at + PAGE, len(self._window))))

    def state(self, since: int) -> str:
        """The message of what changed after a revision; empty when nothing did."""
        if since not in self._states:
            nodes = [value for changed, value in self._nodes.values() if changed > since]
            edges = [value for changed, value in self._edges.values() if changed > since]
            some = nodes or edges or self._header > since
            self._states[since] = (
                _json(
                    {"type": "state", "run": self.shown, "nodes": nodes, "edges": edges, "whole": not since}
                )
                if some
                else ""
            )
        return self._states[since]

    async def past(self, start: int) -> tuple[Item, ...]:
        """A page of the ledger, for a reader that is behind the window."""

        def read() -> tuple[Item, ...]:
            lines = (
                RunRecord.objects.filter(run=self.pk, seq__gte=start, seq__lt=self.count)
                .order_by("seq")
                .values_list("line", flat=True)[:PAGE]
            )
            found = ((decode(line), line) for line in map(bytes, lines))
            return tuple(Item(one.seq, json.dumps(row(one), ensure_ascii=False), line) for one, line in found)

        return await self.hub.read(read)


class TeamWatch(Watching):
    """The newest runs of a team. A row is a state: only the last one counts."""

    pace_s = TEAM_PACE_S

    def __init__(self, hub: Hub, team: int) -> None:
        self._runs: dict[str, tuple[int, dict[str, Any]]] = {}
        self._texts: dict[int, str] = {}
        super().__init__(hub, team)

    async def refresh(self) -> None:
        def read() -> list[dict[str, Any]]:
            found = Run.objects.filter(team=self.team).order_by("-pk").values(*HEADER)[:LISTED]
            now = timezone.now()
            return [listed(one, now) for one in found]

        rows = await self.hub.read(read)
        self.revision += 1
        self._texts = {}
        before, self._runs = self._runs, {}
        for one in rows:
            changed, value = before.get(one["key"], (0, {}))
            self._runs[one["key"]] = (changed, value) if value == one else (self.revision, one)

    def rows(self, since: int) -> str:
        if since not in self._texts:
            runs = [value for changed, value in self._runs.values() if changed > since]
            some = runs or not since
            self._texts[since] = _json({"type": "runs", "runs": runs, "whole": not since}) if some else ""
        return self._texts[since]


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

    async def join(self, run: Run, user: int, after: int = -1, *, whole: bool) -> Reader:
        """A reader of the records after `after`. Raises: Crowded."""
        self._admit(user)
        watch = self.runs.get(run.key)
        if watch is None:
            watch = self.runs[run.key] = Watch(self, run.pk, run.key, run.team_id)
        return await self._reader(Reader(watch, user, max(after + 1, 0), whole))

    async def join_team(self, team: int, user: int) -> Reader:
        """A reader of the runs of a team. Raises: Crowded."""
        self._admit(user)
        watch = self.teams.get(team)
        if watch is None:
            watch = self.teams[team] = TeamWatch(self, team)
        return await self._reader(Reader(watch, user))

    def leave(self, reader: Reader) -> None:
        """Twice is once."""
        watch = reader.watch
        if reader not in watch.readers:
            return
        watch.readers.discard(reader)
        self.readers -= 1
        self._each[reader.user] -= 1
        if not self._each[reader.user]:
            del self._each[reader.user]
        if not watch.readers:
            watch.task.cancel()
            if isinstance(watch, Watch):
                self.runs.pop(watch.key, None)
            else:
                self.teams.pop(watch.team, None)
        if not self.readers:
            self._rest()

    def hear(self, heads: dict[str, int]) -> None:
        """A hint. In the loop's thread."""
        for key in heads:
            watch = self.runs.get(key)
            if watch is not None:
                watch.dirty.set()
        for team in self.teams.values():
            team.dirty.set()

    async def read(self, work: Callable[[], T]) -> T:
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

    def _admit(self, user: int) -> None:
        if self.readers >= MOST or self._each.get(user, 0) >= MOST_EACH:
            raise Crowded

    async def _reader(self, reader: Reader) -> Reader:
        if not self.readers:
            self._tasks = [asyncio.create_task(work()) for work in (self._listen, self._look, self._members)]
        reader.watch.readers.add(reader)
        self.readers += 1
        self._each[reader.user] = self._each.get(reader.user, 0) + 1
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
                found = await self.read(partial(_headers, list(watched)))
            except DatabaseError:
                continue
            now = timezone.now()
            for one in found:
                watch = watched[one["pk"]]
                if header(one, now) != watch.shown or one["count"] != watch.count:
                    watch.dirty.set()
            for team in self.teams.values():
                team.dirty.set()

    async def _members(self) -> None:
        """Close the streams of those whose membership ended."""
        while True:
            await asyncio.sleep(MEMBERS_S)
            readers = [reader for watch in self._all() for reader in watch.readers]
            pairs = {(reader.user, reader.watch.team) for reader in readers}
            try:
                allowed = await self.read(partial(_allowed, pairs))
            except DatabaseError:
                continue
            for reader in readers:
                if (reader.user, reader.watch.team) in pairs - allowed:
                    reader.closed = GONE
                    reader.wake.set()

    def _all(self) -> list[Watching]:
        return [*self.runs.values(), *self.teams.values()]


async def messages(reader: Reader) -> AsyncIterator[Message]:
    """What the reader is to be sent, until the run ends or it may not read any more; `beat` when quiet."""
    watch = reader.watch
    await watch.ready.wait()
    while True:
        reader.wake.clear()
        if reader.closed:
            yield Message("closed", _json({"type": "closed", "code": reader.closed}), code=reader.closed)
            return
        said = False
        if isinstance(watch, Watch):
            if reader.next < watch.count:
                yield await _records(watch, reader)
                said = True
            text, revision = watch.state(reader.seen), watch.revision
        else:
            text, revision = watch.rows(reader.seen), watch.revision
        if text:
            yield Message("state" if isinstance(watch, Watch) else "runs", text)
        reader.seen = revision
        if isinstance(watch, Watch) and watch.ended and reader.next >= watch.count:
            ended = {"type": "end", "state": watch.shown["state"], "count": watch.count}
            yield Message("end", _json(ended))
            return
        if said or revision != watch.revision:
            continue
        try:
            await asyncio.wait_for(reader.wake.wait(), BEAT_S)
        except TimeoutError:
            yield Message("beat")


async def _records(watch: Watch, reader: Reader) -> Message:
    if reader.next < watch.first:
        if not reader.whole and watch.count - reader.next > BEHIND:
            skipped = {"type": "resync", "from": reader.next, "to": watch.count}
            reader.next = watch.count
            return Message("resync", _json(skipped))
        items = await watch.past(reader.next)
    else:
        items = watch.items(reader.next)
    if not items:  # the run was removed while somebody watched it
        reader.next = watch.count
        return Message("beat")
    reader.next = items[-1].seq + 1
    rows = ",".join(item.row for item in items)
    return Message("records", f'{{"type":"records","count":{watch.count},"records":[{rows}]}}', items)


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())


def _headers(runs: list[int]) -> list[dict[str, Any]]:
    return list(Run.objects.filter(pk__in=runs).values(*HEADER)) if runs else []


def _allowed(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    least = access.RANK[access.ACTIONS["run.view"]]
    found = Membership.objects.filter(
        user__in={user for user, _ in pairs}, team__in={team for _, team in pairs}, user__is_active=True
    ).values_list("user", "team", "role")
    return {(user, team) for user, team, role in found if access.RANK[role] >= least} if pairs else set()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
