"""One server of others, by the official SDK: what tools it has, one call, the end of the connection.

Takes the pipes of a server that somebody started, or the URL of one with the address that was judged; gives
definitions and results as JSON, as the server sent them. It starts no process and resolves no name, follows
no redirect to another host, answers no question of a server (sampling, roots, elicitation) and checks no
result: what a result is worth is the caller's to say. The SDK is imported when a connection is made: it takes
a second and a half.

Every fault is an UnavailableError: `mcp.timeout`, `mcp.closed`, `mcp.protocol` (a line too long, an answer to
nothing that was asked, a reply in no form of the protocol), `mcp.too_many`, `mcp.input_required`, `mcp.sdk`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent import futures
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from spak import unseen
from spak.cancel import TURN_S, Cancel, check
from spak.errors import UnavailableError

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport

MAX_TOOLS = 200
MAX_PAGES = 20
MAX_LINE = 50_000_000
"""Bytes of one message."""
MAX_ROUNDS = 3
"""How often a server may ask for more before it answers one call."""
CONNECT_S = 30.0
LIST_S = 20.0
CLOSE_S = 10.0
_CLOSED = "Connection closed"
"""What the SDK says of a connection that ended."""
_GRACE_S = 1.0
"""How much longer than the SDK's own limit we wait."""

Result = TypeVar("Result")
Json = dict[str, Any]


@dataclass(slots=True)
class _Fault:
    """What ended the connection."""

    error: UnavailableError | None = None


@dataclass(slots=True)
class Place:
    """Where a server of HTTP is: its URL, and the address that is connected to."""

    url: str
    host: str
    address: str
    headers: dict[str, str] = field(default_factory=dict)
    sent_bytes: int = 0
    requests: int = 0


class Connection:
    """A connection to one server, held by a thread of its own."""

    def __init__(self, name: str, transport: Callable[[_Fault], Transport], remote: bool = False) -> None:
        """Raises: UnavailableError `mcp.*` where the server does not answer as a server does."""
        self.name, self.remote = name, remote
        self.stale = threading.Event()
        """Set where the server said that its list of tools changed."""
        self._fault = _Fault()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._ended: asyncio.Event | None = None
        ready: futures.Future[None] = futures.Future()
        self._thread = threading.Thread(
            target=self._main, args=(transport, ready), name=f"spak-mcp-{name}", daemon=True
        )
        self._thread.start()
        try:
            ready.result(CONNECT_S)
        except futures.TimeoutError:
            self.close()
            raise self._late("did not say what it is", CONNECT_S) from None
        except BaseException:
            self._thread.join(CLOSE_S)
            raise

    @property
    def ended(self) -> bool:
        """Whether nothing more comes over it."""
        return self._fault.error is not None or not self._thread.is_alive()

    def tools(self) -> list[Json]:
        """The definitions of its tools, in its order. Raises: UnavailableError `mcp.*`."""
        self.stale.clear()
        return self._wait(self._tools(), LIST_S, None)

    def call(self, tool: str, args: Json, limit_s: float, cancel: Cancel | None = None) -> Json:
        """The result of one call. Raises: UnavailableError `mcp.*`; Cancelled."""
        return self._wait(self._call(tool, args, limit_s), limit_s, cancel)

    def close(self) -> None:
        """End it; idempotent."""
        loop, ended = self._loop, self._ended
        if loop is not None and ended is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(ended.set)
        self._thread.join(CLOSE_S)

    # ---- in the thread of the connection ----------------------------------------------------------------

    def _main(self, transport: Callable[[_Fault], Transport], ready: futures.Future[None]) -> None:
        try:
            asyncio.run(self._live(transport, ready))
        except BaseException as error:
            if not ready.done():
                ready.set_exception(self._meant(error))

    async def _live(self, transport: Callable[[_Fault], Transport], ready: futures.Future[None]) -> None:
        """Hold the connection until somebody ends it."""
        try:
            from mcp import Client
        except ImportError as error:
            raise UnavailableError(
                "mcp.sdk", "the package mcp is not installed", "uv sync --extra mcp, or pip install mcp"
            ) from error
        logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)  # it logs what servers send, unread
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        client = Client(
            transport(self._fault),
            read_timeout_seconds=CONNECT_S / 3,
            message_handler=self._heard,
            cache=None,
        )
        entering = asyncio.ensure_future(self._held(client, ready))
        ending = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait({entering, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        entering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await entering

    async def _held(self, client: Any, ready: futures.Future[None]) -> None:
        async with client:
            self._client = client
            ready.set_result(None)
            await asyncio.Event().wait()

    async def _heard(self, message: Any) -> None:
        from mcp import types

        if isinstance(message, types.ToolListChangedNotification):
            self.stale.set()

    async def _tools(self) -> list[Json]:
        from pydantic import TypeAdapter

        from mcp import types

        found: list[Json] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
            reply = await self._client.session.send_request(request, TypeAdapter(Json), LIST_S)
            found += reply["tools"]
            cursor = reply.get("nextCursor")
            if len(found) > MAX_TOOLS:
                break
            if not cursor:
                return found
        message = f"{self.name} has more than {MAX_TOOLS} tools"
        raise UnavailableError("mcp.too_many", message, "ask its maker for a server with fewer tools")

    async def _call(self, tool: str, args: Json, limit_s: float) -> Json:
        from pydantic import TypeAdapter

        from mcp import types

        params = types.CallToolRequestParams(name=tool, arguments=args)
        declined = types.ElicitResult(action="decline")
        for _ in range(MAX_ROUNDS + 1):
            request = types.CallToolRequest(params=params)
            reply: Json = await self._client.session.send_request(request, TypeAdapter(Json), limit_s)
            if reply.get("resultType", "complete") != "input_required":
                return reply
            params = types.CallToolRequestParams(
                name=tool,
                arguments=args,
                input_responses=dict.fromkeys(self._asked_of_a_person(reply), declined),
                request_state=reply.get("requestState"),
            )
        message = f"{self.name} asks for input again and again before it answers {tool}"
        raise UnavailableError(
            "mcp.input_required", message, "its questions are declined; give all in the arguments"
        )

    def _asked_of_a_person(self, reply: Json) -> list[str]:
        """The names of what a server asks for. Raises: UnavailableError `mcp.input_required` where it asks a
        model or for folders, which is refused."""
        wanted = reply.get("inputRequests") or {}
        for request in wanted.values():
            if request.get("method") != "elicitation/create":
                message = (
                    f"{self.name} asks for {str(request.get('method'))[:60]!a}, which no server is given"
                )
                raise UnavailableError("mcp.input_required", message, "use another server")
        return list(wanted)

    # ---- in the caller's thread -------------------------------------------------------------------------

    def _wait(self, work: Coroutine[Any, Any, Result], limit_s: float, cancel: Cancel | None) -> Result:
        loop = self._loop
        if loop is None or not self._thread.is_alive():
            work.close()
            raise self._gone()
        done = asyncio.run_coroutine_threadsafe(work, loop)
        left = limit_s + _GRACE_S
        try:
            while True:
                check(cancel)
                if not self._thread.is_alive() and not done.done():
                    raise self._gone()
                try:
                    return done.result(min(TURN_S, left))
                except futures.TimeoutError:
                    if done.done():
                        raise
                    left -= TURN_S
                    if left <= 0:
                        raise self._late("did not answer", limit_s) from None
        except UnavailableError:
            raise
        except Exception as error:
            raise self._meant(error) from error
        finally:
            done.cancel()

    def _late(self, what: str, seconds: float) -> UnavailableError:
        message = f"{self.name} {what} within {seconds:g} s"
        return UnavailableError("mcp.timeout", message, "start its command by hand, and look what it prints")

    def _gone(self) -> UnavailableError:
        return self._fault.error or _closed(self.name)

    def _meant(self, error: BaseException) -> UnavailableError:
        """What an error of the SDK is to us."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, UnavailableError):
            return error
        from mcp import MCPError, types

        if self._fault.error is not None:
            return self._fault.error
        if isinstance(error, MCPError):
            if error.code == types.REQUEST_TIMEOUT:
                return UnavailableError("mcp.timeout", f"{self.name} did not answer in time")
            ours = (types.CONNECTION_CLOSED, types.PARSE_ERROR, types.INTERNAL_ERROR) if self.remote else ()
            if error.message == _CLOSED or error.code in ours:  # made by the SDK, of what broke off
                return self._gone()
            words = unseen.written_out(error.message[:300])
            return UnavailableError("mcp.refused", f"{self.name}: {words} ({error.code})")
        if isinstance(error, (OSError, futures.CancelledError, asyncio.CancelledError)):
            return self._gone()
        message = f"what {self.name} sent has no form of the protocol ({type(error).__name__})"
        return UnavailableError("mcp.protocol", message, "ask its maker")


def _closed(name: str) -> UnavailableError:
    message = f"{name} closed the connection"
    return UnavailableError("mcp.closed", message, "start its command by hand, and look what it prints")


def over_pipes(name: str, read_fd: int, write_fd: int) -> Connection:
    """The server behind two pipes, which are closed with the connection. Raises: UnavailableError `mcp.*`."""
    return Connection(name, lambda fault: _pipes(name, read_fd, write_fd, fault))


@asynccontextmanager
async def _pipes(name: str, read_fd: int, write_fd: int, fault: _Fault) -> AsyncIterator[Any]:
    """The transport over pipes: a JSON document a line, every answer to something that was asked."""
    import anyio
    from mcp.shared.message import SessionMessage

    from mcp import types

    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=MAX_LINE)
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(read_fd, "rb", buffering=0)
    )
    sink, flow = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(write_fd, "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(sink, flow, None, loop)
    inward, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, outward = anyio.create_memory_object_stream[Any](0)
    asked: set[Any] = set()

    def broken(what: str) -> None:
        fault.error = UnavailableError("mcp.protocol", f"{name} {what}", "ask its maker")

    async def receive() -> None:
        async with inward:
            while True:
                try:
                    line = await lines.readline()
                except ValueError:
                    return broken(f"sent a message of more than {MAX_LINE} bytes")
                if not line:
                    fault.error = fault.error or _closed(name)
                    return None
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue  # what it prints besides
                if isinstance(message, (types.JSONRPCResponse, types.JSONRPCError)):
                    if message.id is not None and message.id not in asked:
                        return broken(f"answered {str(message.id)[:40]!a}, which was not asked")
                    asked.discard(message.id)
                await inward.send(SessionMessage(message))

    async def send() -> None:
        async with outward:
            async for message in outward:
                if isinstance(message.message, types.JSONRPCRequest):
                    asked.add(message.message.id)
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                try:
                    await writer.drain()
                except OSError:
                    return await inward.aclose()
        return None

    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        group.start_soon(send)
        try:
            yield incoming, outgoing
        finally:
            group.cancel_scope.cancel()
            reading.close()
            sink.close()


def over_http(name: str, place: Place) -> Connection:
    """The server at an address that was judged. Raises: UnavailableError `mcp.*`."""
    return Connection(name, lambda fault: _http(name, place, fault), remote=True)


@asynccontextmanager
async def _http(name: str, place: Place, fault: _Fault) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Judged(httpx2.AsyncHTTPTransport):
        """Connects to the judged address of the one host, and to nothing else."""

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.host != place.host:
                fault.error = UnavailableError("mcp.protocol", f"{name} sends on to another host")
                raise fault.error
            place.requests += 1
            place.sent_bytes += len(request.content)
            request.extensions["sni_hostname"] = place.host
            request.url = request.url.copy_with(host=place.address)
            response = await super().handle_async_request(request)
            response.stream = _bounded(response.stream, name, fault)
            return response

    async with (
        httpx2.AsyncClient(
            transport=Judged(trust_env=False),
            headers={**place.headers, "accept-encoding": "identity"},
            follow_redirects=False,
            trust_env=False,
            timeout=httpx2.Timeout(CONNECT_S, read=None),
        ) as client,
        streamable_http_client(place.url, http_client=client) as streams,
    ):
        yield streams


def _bounded(stream: Any, name: str, fault: _Fault) -> httpx2.AsyncByteStream:
    """A reply that ends when it is longer than a message may be."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > MAX_LINE:
                    message = f"{name} sent a message of more than {MAX_LINE} bytes"
                    fault.error = UnavailableError("mcp.protocol", message, "ask its maker")
                    raise httpx2.ReadError(message)
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
