"""Our tools as a server of MCP, on standard streams or by requests over HTTP. Source: revisions 2025-06-18 to
2026-07-28 of the specification, as the SDK `mcp` speaks them.

Takes what offers tools (`Offers`); gives answers as the protocol wants them. Each request over HTTP has one
answer of JSON, and none depends on another, so that nothing is lost with a connection. It decides nothing.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

T = TypeVar("T")
MOST_CALLS = 128
"""Calls that are under way at once; further ones wait."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as it is listed: its schema is JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Any]
    reads: bool = False
    """Whether it changes nothing."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a call came to; `data` is a JSON object for programs, about the call."""

    text: str
    failed: bool = False
    data: Mapping[str, Any] | None = None


class Offers(Protocol):
    """What has tools. Its methods are called in threads, several at once."""

    def tools(self) -> Sequence[Offered]:
        """The tools, in the order in which they are listed."""

    def call(self, name: str, args: Mapping[str, Any]) -> Said:
        """Do what is asked, or say why not."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class OverHttp:
    """Answers requests over HTTP, from any thread. Close it."""

    def __init__(self, name: str, version: str, offers: Offers) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._started: StreamableHTTPSessionManager | None = None
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        try:
            self._started = self._run(self._start(name, version, offers))
        except BaseException:
            self.close()
            raise

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The answer to one request."""
        return self._run(self._answered(method, path, headers, body))

    def close(self) -> None:
        """Answer no more."""
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._over.set)
            with suppress(Exception):
                self._run(asyncio.wait_for(self._task, 5))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self, name: str, version: str, offers: Offers) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        made = StreamableHTTPSessionManager(
            _server(name, version, offers),
            json_response=True,
            stateless=True,
            security_settings=TransportSecuritySettings(
                allowed_hosts=["127.0.0.1:*", "localhost:*"],
                allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
            ),
        )
        ready: asyncio.Future[None] = self._loop.create_future()
        self._task = self._loop.create_task(self._kept(made, ready))
        await ready
        return made

    async def _kept(self, manager: StreamableHTTPSessionManager, ready: asyncio.Future[None]) -> None:
        async with manager.run():
            ready.set_result(None)
            await self._over.wait()

    async def _answered(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
            "query_string": b"", "scheme": "http", "root_path": "", "client": None, "server": None,
            "headers": [(key.lower().encode("latin-1"), value.encode("latin-1"))
                        for key, value in headers.items()],
        }  # fmt: skip
        sent: list[Mapping[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
        status, given, made = 500, dict[str, str](), bytearray()
        gone = asyncio.Event()

        async def receive() -> Mapping[str, Any]:
            if sent:
                return sent.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status, given
            if message["type"] == "http.response.start":
                status = int(message["status"])
                given = {key.decode("latin-1"): value.decode("latin-1") for key, value in message["headers"]}
            else:
                made.extend(message.get("body", b""))

        assert self._started is not None
        try:
            await self._started.handle_request(scope, receive, send)  # type: ignore[arg-type]  # a Mapping is a scope
        finally:
            gone.set()
        return Reply(status, given, bytes(made))


def on_port(name: str, version: str, offers: Offers, port: int, begun: Callable[[str], None]) -> None:
    """Answer on this machine's loopback until the process is told to end; `begun` hears the address, whose
    last part nobody else knows. Port 0 takes a free one. Raises: OSError where the port is taken."""
    import uvicorn

    path = f"/{secrets.token_urlsafe(24)}"
    app = _server(name, version, offers).streamable_http_app(
        streamable_http_path=path, json_response=True, stateless_http=True
    )
    listener = socket.create_server(("127.0.0.1", port))
    with listener:
        begun(f"http://127.0.0.1:{listener.getsockname()[1]}{path}")
        settings = uvicorn.Config(app, log_level="error", access_log=False, lifespan="on")
        asyncio.run(uvicorn.Server(settings).serve(sockets=[listener]))


def on_streams(name: str, version: str, offers: Offers) -> None:
    """Answer on standard input and output until the input ends."""
    from mcp.server.stdio import stdio_server

    async def served() -> None:
        server = _server(name, version, offers)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    asyncio.run(served())


def _server(name: str, version: str, offers: Offers) -> Server[Any]:
    import mcp_types as types
    from anyio import CapacityLimiter, to_thread
    from mcp.server.lowlevel import Server

    at_once = CapacityLimiter(MOST_CALLS)

    async def listed(_: Any, params: Any) -> types.ListToolsResult:
        found = await to_thread.run_sync(offers.tools)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=dict(tool.schema),
                    annotations=types.ToolAnnotations(read_only_hint=tool.reads),
                )
                for tool in found
            ]
        )

    async def called(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        work = partial(offers.call, params.name, params.arguments or {})
        said = await to_thread.run_sync(work, limiter=at_once)
        return types.CallToolResult(
            content=[types.TextContent(text=said.text)],
            is_error=said.failed,
            _meta=None if said.data is None else {"spak": dict(said.data)},  # a client shows it to no model
        )

    return Server(name, version=version, on_list_tools=listed, on_call_tool=called)
