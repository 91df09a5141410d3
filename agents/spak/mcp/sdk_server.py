"""Our tools as a server of MCP, on standard streams or by requests over HTTP. Source: revisions 2025-06-18 to
2026-07-28 of the specification, as the SDK `mcp` speaks them.

Takes what offers tools (`Offers`, or `Exports` of an event loop, which may have resources and ask the person
at the client); gives answers as the protocol wants them. Each request over HTTP has one answer of JSON, and
none depends on another, so that nothing is lost with a connection. It decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

T = TypeVar("T")
ASKING = "2026-07-28"
"""The revision in which a call may answer that a person is to be asked. Source: multi round-trip requests."""
ASKED, ANSWER = "person", "answer"
"""The name of such a question, and of its field."""
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


@dataclass(frozen=True, slots=True)
class Asks:
    """A call goes on when a person has answered at the client: a text, or that they looked at the page `url`.
    `state` comes back with the answer."""

    message: str
    state: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a client is able to ask its person, and what it brings when it calls again."""

    texts: bool = False
    pages: bool = False
    state: str = ""
    answer: str | None = None
    """None where the person gave none."""
    declined: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """Something to read, as it is listed; a template where its address has parts in braces."""

    uri: str
    name: str
    description: str
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Content:
    """What was read, with a JSON object about it."""

    text: str
    kind: str
    data: Mapping[str, Any]


class Exports(Protocol):
    """What has tools and resources, within an event loop."""

    async def tools(self) -> Sequence[Offered]:
        """The tools, in the order in which they are listed."""

    async def call(self, name: str, args: Mapping[str, Any], caller: Caller) -> Said | Asks:
        """Do what is asked, say why not, or ask the person."""

    async def resources(self) -> Sequence[Resource]:
        """What can be read, templates last."""

    async def read(self, uri: str) -> Content | None:
        """What is at an address; None where nothing is."""


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
        assert self._started is not None
        return await _exchange(self._started, method, path, headers, body)


def load() -> None:
    """Import the SDK, which takes a second or two."""
    import_module("mcp.server.streamable_http_manager")


async def answer(
    name: str, version: str, exports: Exports, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> Reply:  # fmt: skip
    """The answer to one request, in the loop that runs. Its Host and its Origin are the caller's to check."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    made = StreamableHTTPSessionManager(
        _of_exports(name, version, exports), json_response=True, stateless=True
    )
    async with made.run():
        return await _exchange(made, method, path, headers, body)


async def _exchange(
    manager: StreamableHTTPSessionManager, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> Reply:
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

    try:
        await manager.handle_request(scope, receive, send)  # type: ignore[arg-type]  # a Mapping is a scope
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
    from anyio import CapacityLimiter, to_thread

    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)  # it shows a person what clients send, unread
    at_once = CapacityLimiter(MOST_CALLS)

    async def listed() -> Sequence[Offered]:
        return await to_thread.run_sync(offers.tools)

    async def called(tool: str, args: Mapping[str, Any], caller: Caller) -> Said:
        return await to_thread.run_sync(partial(offers.call, tool, args), limiter=at_once)

    return _made(name, version, listed, called)


def _of_exports(name: str, version: str, exports: Exports) -> Server[Any]:
    import mcp_types as types

    from mcp import MCPError

    async def resources(_: Any, params: Any) -> types.ListResourcesResult:
        found = [one for one in await exports.resources() if "{" not in one.uri]
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=one.uri, name=one.name, description=one.description, mime_type=one.kind,
                    _meta={"spak": dict(one.data)},
                )
                for one in found
            ]
        )  # fmt: skip

    async def templates(_: Any, params: Any) -> types.ListResourceTemplatesResult:
        found = [one for one in await exports.resources() if "{" in one.uri]
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=one.uri, name=one.name, description=one.description, mime_type=one.kind
                )
                for one in found
            ]
        )

    async def read(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = await exports.read(uri)
        if found is None:
            raise MCPError(code=types.INVALID_PARAMS, message="Resource not found", data={"uri": uri})
        meta = {"spak": dict(found.data)}
        text = types.TextResourceContents(uri=uri, mime_type=found.kind, text=found.text, _meta=meta)
        return types.ReadResourceResult(contents=[text])

    return _made(
        name, version, exports.tools, exports.call, on_list_resources=resources,
        on_list_resource_templates=templates, on_read_resource=read,
        get_tool_input_schema=lambda tool: None,  # else all are listed: no schema names a header
    )  # fmt: skip


def _made(
    name: str, version: str, tools: Callable[[], Awaitable[Sequence[Offered]]],
    call: Callable[[str, Mapping[str, Any], Caller], Awaitable[Said | Asks]], **more: Any,
) -> Server[Any]:  # fmt: skip
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def listed(_: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=dict(tool.schema),
                    annotations=types.ToolAnnotations(read_only_hint=tool.reads),
                )
                for tool in await tools()
            ]
        )

    async def called(
        context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        said = await call(params.name, params.arguments or {}, _caller(context, params))
        if isinstance(said, Asks):
            return types.InputRequiredResult(
                input_requests={ASKED: types.ElicitRequest(params=_asked(said))}, request_state=said.state
            )
        return types.CallToolResult(
            content=[types.TextContent(text=said.text)],
            is_error=said.failed,
            _meta=None if said.data is None else {"spak": dict(said.data)},  # a client shows it to no model
        )

    return Server(name, version=version, on_list_tools=listed, on_call_tool=called, **more)


def _caller(context: Any, params: types.CallToolRequestParams) -> Caller:
    """What the client declared with this request; a revision that asks otherwise is asked nothing."""
    import mcp_types as types

    can = context.session.client_capabilities
    able = can.elicitation if can is not None and context.protocol_version >= ASKING else None
    found = (params.input_responses or {}).get(ASKED)
    accepted = isinstance(found, types.ElicitResult) and found.action == "accept"
    text = (found.content or {}).get(ANSWER) if isinstance(found, types.ElicitResult) and accepted else None
    return Caller(
        texts=able is not None and (able.form is not None or able.url is None),
        pages=able is not None and able.url is not None,
        state=params.request_state or "",
        answer=text if isinstance(text, str) else None,
        declined=params.request_state is not None and not accepted,
    )


def _asked(asks: Asks) -> types.ElicitRequestURLParams | types.ElicitRequestFormParams:
    import mcp_types as types

    if asks.url:
        return types.ElicitRequestURLParams(message=asks.message, url=asks.url)
    field = {"type": "string", "title": "Your answer"}
    schema = {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}
    return types.ElicitRequestFormParams(message=asks.message, requested_schema=schema)
