"""What is watched: a Watch of one run, a TeamWatch of the runs of a team, and the Readers of either.

A watch reads the ledger once for all of its readers: at a hint at once, then at most ten times a second, less
often when very many read. It keeps the last records in a bounded window, and with which revision each node,
edge and header changed. A reader has no queue: it has a cursor, and `unsent` gives what lies behind it as
Messages. Nothing here writes or knows a wire.
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from django.db import DatabaseError

from spak.errors import UserError
from spak.records import decode
from spakweb.face.streams.summaries import HEADER, header, list_row, row
from spakweb.face.streams.viewers import Viewer
from spakweb.ground import clock
from spakweb.store.hints import output
from spakweb.store.ledger.projection import Projection, edges, node_state, spent
from spakweb.store.runs.models import ENDED, Run, RunRecord, State

WINDOW, WINDOW_BYTES = 1000, 4 << 20
PAGE = 200
PACE_S, TEAM_PACE_S = 0.1, 0.5
CROWD = 200
"""Readers of one run that get the full pace; twice as many get half of it."""
LISTED = 200
BEHIND = 1000
"""Records that a reader of the window may be behind; one that is more is told to fetch the list again."""
LOOK_S = 0.5
BROKEN = 1011
T = TypeVar("T")

log = logging.getLogger(__name__)


class Owner(Protocol):
    """Whoever owns the watches: it does their reading in threads of its own."""

    runs: dict[str, Watch]
    teams: dict[int, TeamWatch]

    def read(self, work: Callable[[], T]) -> Awaitable[T]:
        """Do some work with the database in a thread."""

    def looks_on_no_more(self, key: str, viewer: Viewer) -> None:
        """A page of the run was closed."""


@dataclass(frozen=True, slots=True)
class Message:
    """`text` is the whole object as JSON; of records also the items, for whoever sends lines."""

    type: str
    text: str = ""
    items: tuple[Item, ...] = ()
    code: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A record as it is sent."""

    seq: int
    row: str
    """The row of the record as JSON."""
    line: bytes


@dataclass(eq=False, slots=True)
class Reader:
    """One browser's place in what is watched."""

    watch: Watching
    viewer: Viewer
    next: int = 0
    whole: bool = False
    seen: int = 0
    """The revision of nodes, edges and header that it has."""
    people: str = ""
    """Who else looks on, as it was told."""
    output: str = ""
    closed: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class Watching(ABC):
    """What watches of runs and teams share: readers, and a task that reads after each hint, at a pace."""

    pace_s = PACE_S

    def __init__(self, hub: Owner, team: int) -> None:
        self.hub, self.team = hub, team
        self.readers: set[Reader] = set()
        self.revision = 0
        self.dirty = asyncio.Event()
        self.ready = asyncio.Event()
        self.dirty.set()
        self.task = asyncio.create_task(self._follow())

    @abstractmethod
    async def refresh(self) -> None:
        """Read what changed."""

    @abstractmethod
    async def unsent(self, reader: Reader) -> list[Message]:
        """What the reader has not been sent yet; its cursors move past it."""

    @abstractmethod
    def forget(self) -> None:
        """Remove it from its owner: it has no readers left."""

    def behind(self, reader: Reader) -> bool:
        """Whether there are records that the reader does not have."""
        return False

    def left(self, reader: Reader) -> None:
        """Remove a reader whose page was closed."""
        self.readers.discard(reader)

    def _wake_readers(self) -> None:
        self.ready.set()
        for reader in self.readers:
            reader.wake.set()

    async def _follow(self) -> None:
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
                self._wake_readers()
            else:
                self._wake_readers()
            await asyncio.sleep(self.pace_s * max(1, len(self.readers) // CROWD))


class Watch(Watching):
    """What the watchers of one run share: its newest records and its state."""

    def __init__(self, hub: Owner, pk: int, key: str, team: int) -> None:
        self.pk, self.key = pk, key
        self.count = 0
        self.ended = False
        self.people = ""
        """The message of who looks on."""
        self.output = ""
        """The message of what a tool put out that still runs."""
        self.shown: dict[str, Any] = {}
        self._window: deque[Item] = deque()
        self._bytes = 0
        self._seen: Projection | None = None
        self._folded = 0
        self._nodes: dict[str, tuple[int, list[Any]]] = {}
        self._edges: dict[str, tuple[int, list[Any]]] = {}
        self._header = 0
        self._states: dict[int, str] = {}
        self._pages: dict[int, Message] = {}
        """By their first record: those of the window that were sent since the last time it changed."""
        super().__init__(hub, team)

    @property
    def first(self) -> int:
        """The oldest record of the window; the count when it is empty."""
        return self._window[0].seq if self._window else self.count

    async def refresh(self) -> None:
        """Read what the run has that was not sent yet."""
        try:
            shown, seen, folded, items, self.output = await self.hub.read(self._read)
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
        self._states, self._pages = {}, {}
        if shown != self.shown:
            self.shown, self._header = shown, self.revision
        self.ended = shown["state"] in ENDED and self.count >= shown["count"]
        for name, node in seen.data["nodes"].items():
            self._changed(self._nodes, name, [name, node_state(node), *spent(node)])
        for edge in edges(seen.data):
            self._changed(self._edges, "|".join(edge[:3]), edge)
        if folded < shown["count"]:
            self.dirty.set()

    def _read(self) -> tuple[dict[str, Any], Projection, int, list[Item], str]:
        """In a thread: the header, the projection, the records since the last time, and what is put out."""
        rows = Run.objects.filter(pk=self.pk)
        found = rows.values(*HEADER, "fence").get()
        count, seen, start = found["count"], self._seen, self._folded
        if seen is None or count - start > WINDOW:
            found = rows.values(*HEADER, "fence", "summary").get()
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
        shown = header(found, clock.now())
        put_out = output.read(self.key, found["fence"], count) if shown["state"] == State.RUNNING else None
        return shown, seen, folded, items, as_json(put_out.hint) if put_out is not None else ""

    def _changed(self, among: dict[str, tuple[int, list[Any]]], name: str, value: list[Any]) -> None:
        if name not in among or among[name][1] != value:
            among[name] = self.revision, value

    async def unsent(self, reader: Reader) -> list[Message]:
        """Records, state, people, output and end, in this order."""
        found = [await self._records(reader)] if self.behind(reader) else []
        if text := self.state(reader.seen):
            found.append(Message("state", text))
        reader.seen = self.revision
        if reader.viewer.name and reader.people != self.people:
            reader.people = self.people
            found.append(Message("people", self.people))
        if reader.output != self.output:
            reader.output = self.output
            if self.output:
                found.append(Message("output", self.output))
        if self.ended and not self.behind(reader):
            ended = {"type": "end", "state": self.shown["state"], "count": self.count}
            found.append(Message("end", as_json(ended)))
        return found

    def behind(self, reader: Reader) -> bool:
        """Whether there are records that the reader does not have."""
        return reader.next < self.count

    def left(self, reader: Reader) -> None:
        """Remove a reader whose page was closed, and report it to the viewers of the run."""
        super().left(reader)
        self.hub.looks_on_no_more(self.key, reader.viewer)

    def forget(self) -> None:
        """Nobody reads the run any more."""
        self.hub.runs.pop(self.key, None)

    async def _records(self, reader: Reader) -> Message:
        """The next ones. When they cannot be read, a beat: it is tried again, or the reader is closed."""
        start = reader.next
        if (page := self._pages.get(start)) is not None:
            reader.next = page.items[-1].seq + 1
            return page
        if start < self.first:
            if not reader.whole and self.count - reader.next > BEHIND:
                skipped = {"type": "resync", "from": reader.next, "to": self.count}
                reader.next = self.count
                return Message("resync", as_json(skipped))
            try:
                items = await self.past(reader.next)
            except DatabaseError as error:
                log.warning("records for a reader that is behind were not read: %s", type(error).__name__)
                await asyncio.sleep(LOOK_S)
                return Message("beat")
            except UserError:
                log.exception("records for a reader that is behind cannot be read")
                reader.closed = BROKEN
                return Message("beat")
        else:
            items = self.items(reader.next)
        if not items:  # the run was removed while somebody watched it
            reader.next = self.count
            return Message("beat")
        reader.next = items[-1].seq + 1
        rows = ",".join(item.row for item in items)
        text = f'{{"type":"records","count":{self.count},"records":[{rows}]}}'
        page = Message("records", text, items)
        if start >= self.first:
            self._pages[start] = page
        return page

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
                as_json(
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

    def __init__(self, hub: Owner, team: int) -> None:
        self._runs: dict[str, tuple[int, dict[str, Any]]] = {}
        self._texts: dict[int, str] = {}
        super().__init__(hub, team)

    async def refresh(self) -> None:
        """Read the team's list of runs."""

        def read() -> list[dict[str, Any]]:
            found = (
                Run.objects.filter(team=self.team, deleted_at=None).order_by("-pk").values(*HEADER)[:LISTED]
            )
            now = clock.now()
            return [list_row(one, now) for one in found]

        rows = await self.hub.read(read)
        self.revision += 1
        self._texts = {}
        before, self._runs = self._runs, {}
        for one in rows:
            changed, value = before.get(one["key"], (0, {}))
            self._runs[one["key"]] = (changed, value) if value == one else (self.revision, one)

    async def unsent(self, reader: Reader) -> list[Message]:
        """The rows that changed."""
        text, reader.seen = self.rows(reader.seen), self.revision
        return [Message("runs", text)] if text else []

    def forget(self) -> None:
        """Nobody reads the team's list any more."""
        self.hub.teams.pop(self.team, None)

    def rows(self, since: int) -> str:
        """The runs that changed after a number, as JSON."""
        if since not in self._texts:
            runs = [value for changed, value in self._runs.values() if changed > since]
            some = runs or not since
            self._texts[since] = as_json({"type": "runs", "runs": runs, "whole": not since}) if some else ""
        return self._texts[since]


def as_json(value: Any) -> str:
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
