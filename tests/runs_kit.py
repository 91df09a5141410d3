"""Runs of a platform under test: a ledger written by hand, a stream that is read, and a tidy database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.db import connection, connections

from ledger_contract import act, genesis
from process_kit import WAIT_S
from spakweb.face.streams import stream
from spakweb.ground.database import appendonly
from spakweb.ground.teams.models import Membership, Role, Team, User
from spakweb.store.hints import news
from spakweb.store.ledger import store as ledgers
from spakweb.store.ledger import writer as writing
from spakweb.store.ledger.store import DatabaseLedger, DatabaseLedgers
from spakweb.store.runs.models import Run
from spakweb.websockets import websocket_urlpatterns


@contextmanager
def tables() -> Iterator[None]:
    """Append-only while the test runs; off afterwards, so that the tables can be emptied."""
    appendonly.install(connection)
    try:
        yield
    finally:
        writing.writer.close()
        drop_leases()
        appendonly.remove(connection)


def drop_leases() -> None:
    """Forget every lease of this process without giving it back, as if the process had died."""
    for held in list(ledgers.leases._held.values()):
        ledgers.leases.drop(held)
    ledgers.leases.close()


def member(team: Team, name: str = "vera", role: Role = Role.VIEWER) -> User:
    user = User.objects.create_user(name, f"{name}@spak.example", "a long secret")
    Membership.objects.create(team=team, user=user, role=role)
    return user


def ledger(team: Team, key: str = "r1") -> DatabaseLedger:
    return DatabaseLedgers(lambda name: Run(team=team, key=name, name=name)).create(key, genesis(key))


def write(into: DatabaseLedger, many: int = 1) -> None:
    into.append([act(into.count + number) for number in range(many)])
    into.flush()


def looped(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run it in a loop of its own, and let its hub go."""

    async def whole() -> Any:
        try:
            return await work()
        finally:
            hub = stream.hub()
            for watch in [*hub.runs.values(), *hub.teams.values()]:
                for reader in list(watch.readers):
                    hub.leave(reader)
            hub._threads.shutdown()
            await sync_to_async(connections.close_all)()

    return asyncio.run(whole())


class Socket:
    """A page's socket: `messages` are all that came, in order; `seqs` those of its records."""

    def __init__(self, path: str, user: Any, session: Any = None) -> None:
        where, _, query = path.partition("?")
        scope = {
            "type": "websocket", "path": where, "query_string": query.encode(), "headers": [],
            "subprotocols": [], "user": user, "session": session,
        }  # fmt: skip
        self.wire = ApplicationCommunicator(URLRouter(websocket_urlpatterns), scope)
        self.messages: list[dict[str, Any]] = []
        self.code = 0

    async def __aenter__(self) -> Socket:
        await self.wire.send_input({"type": "websocket.connect"})
        assert (await self.wire.receive_output(WAIT_S))["type"] == "websocket.accept"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.wire.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.wire.wait(WAIT_S)

    async def say(self, text: str) -> None:
        await self.wire.send_input({"type": "websocket.receive", "text": text})

    async def one(self) -> str:
        """The type of the next message; `close` when the socket was closed, with `code`."""
        output = await self.wire.receive_output(WAIT_S)
        if output["type"] == "websocket.close":
            self.code = output.get("code", 1000)
            return "close"
        self.messages.append(json.loads(output["text"]))
        return str(self.messages[-1]["type"])

    async def until(self, done: Callable[[Socket], bool]) -> None:
        while not done(self):
            if await self.one() == "close":
                return

    @property
    def people(self) -> list[str]:
        """Who looks on, as it was told last."""
        found = [message for message in self.messages if message["type"] == "people"]
        return [person["name"] for person in found[-1]["people"]] if found else []

    @property
    def seqs(self) -> list[int]:
        found = (message for message in self.messages if message["type"] == "records")
        return [record["seq"] for message in found for record in message["records"]]


__all__ = ["Socket", "drop_leases", "ledger", "looped", "member", "news", "tables", "write"]
