"""Tools of MCP servers of others: each is a tool of a run, and a predicate says what their servers list now.

Takes the servers of a project's lock file (spak.mcp.pins) and what starts or finds them; gives tools,
the predicate `mcp_listed`, and their marks. A server runs in the sandbox, in an empty folder of its own and
without a network, from the first look at it to the end of the run; one of HTTP is reached at the address that
was judged. What it answers is data: bounded, with invisible characters written out. It permits nothing.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spak import canon, unseen
from spak.datalog.values import Name, Value
from spak.errors import UnavailableError, UsageError, UserError
from spak.files.scratch import Scratch
from spak.lang.catalog import ToolEntry
from spak.lang.schema import violations
from spak.mcp import definitions, identity, pins, sdk_client
from spak.mcp.pins import Server
from spak.policy import urls
from spak.policy.facts import MCP, SCHEME
from spak.ports import Call, Child, Job, Launcher, Limits, Look, PredicateEntry, ToolResult
from spak.tools import http_request, results
from spak.tools.observe.paths import resolve

MAX_RESULT = 1 << 20
"""Bytes of a result that are kept."""
DAY = 86_400
LOST = 2
"""The exit of a call of which nobody knows whether it was done: no answer came."""
_LOST_CODES = frozenset({"mcp.timeout", "mcp.closed", "mcp.protocol"})
_JOINED = """import os, sys
os.dup2(int(sys.argv[1]), 0)
os.dup2(int(sys.argv[2]), 1)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""What starts a server inside: its standard input and output are the two pipes."""


@dataclass(slots=True)
class Start:
    """What a server on standard input and output is started with."""

    folder: Path
    """Of the project: words of a command that name files name them there."""
    launcher: Callable[[], Launcher]
    programs: Mapping[str, str]
    """Of the toolchain."""
    binds: Callable[[str], tuple[Path, ...]]
    """The folders of a program's install."""
    limits: Limits = field(default_factory=Limits)
    reach: tuple[str, ...] = ("public",)
    bearer: Callable[[str], str] = lambda name: ""
    """The value of a secret."""


@dataclass(slots=True)
class _Open:
    """A server that is connected."""

    connection: sdk_client.Connection
    child: Child | None = None
    scratch: Scratch | None = None
    place: sdk_client.Place | None = None
    rows: list[tuple[Value, ...]] | None = None
    """What it listed, against what was approved."""


class Servers:
    """The servers of a project, connected when somebody asks."""

    def __init__(self, approved: Mapping[str, Server], start: Start) -> None:
        self.approved, self.start = dict(approved), start
        self._open: dict[str, _Open] = {}
        self._turn = threading.Lock()

    def tools(self) -> dict[str, Served]:
        """Every approved tool by its id."""
        made: dict[str, Served] = {}
        for server in self.approved.values():
            made |= {name: Served(self, server, name, tool) for name, tool in server.ids().items()}
        return made

    def definitions(self, name: str) -> list[dict[str, Any]]:
        """What a server lists now. Raises: UserError `mcp.*`."""
        return self._connected(name).connection.tools()

    def listed(self, name: str) -> list[tuple[Value, ...]]:
        """The rows of `mcp_listed` of one server. A list is asked for once in a connection, and again when
        the server says that it changed."""
        approved = self.approved.get(name)
        if approved is None:
            return []
        try:
            held = self._connected(name)
            if held.rows is None or held.connection.stale.is_set():
                found = pins.differences(approved, held.connection.tools(), self.identity(approved))
                held.rows = [_row(name, one) for one in found]
                held.rows.append((name, "", Name("/listed"), approved.pin))
            return held.rows
        except UserError as error:
            return [(name, "", Name("/unavailable"), f"{error.message[:300]} [{error.code}]")]

    def identity(self, server: Server) -> str:
        """The identity that the server has now."""
        if server.url:
            return server.identity
        where = self.start.folder, self.start.programs
        now = replace(
            server,
            files=identity.files(server.argv, *where),
            packages=identity.packages(server.argv, *where),
        )
        return now.identity

    def call(self, server: Server, tool: str, call: Call) -> tuple[dict[str, Any], int, int]:
        """The result of a call with the requests that it took, and their bytes. Raises: UserError `mcp.*`;
        Cancelled."""
        addresses: Sequence[str] = ()
        if server.url:
            addresses = http_request.addresses_of(call, url_of(server.url).host)
        held = self._connected(server.name, addresses)
        place = held.place
        before = (place.requests, place.sent_bytes) if place else (0, 0)
        found = held.connection.call(tool, dict(call.args), call.limits.wall_s, call.cancel)
        after = (place.requests, place.sent_bytes) if place else (0, 0)
        return found, after[0] - before[0], after[1] - before[1]

    def drop(self, name: str) -> None:
        """End the connection to one; the next call makes another."""
        with self._turn:
            held = self._open.pop(name, None)
        if held is not None:
            _end(held)

    def close(self) -> None:
        """End all of them; idempotent."""
        for name in list(self._open):
            self.drop(name)

    def _connected(self, name: str, addresses: Sequence[str] = ()) -> _Open:
        with self._turn:
            held = self._open.get(name)
            if held is not None and held.connection.ended:
                _end(self._open.pop(name))
                held = None
            if held is None:
                server = self.approved[name]
                held = self._reached(server, addresses) if server.url else self._started(server)
                self._open[name] = held
            if held.place is not None and addresses:
                held.place.address = addresses[0]
            return held

    def _started(self, server: Server) -> _Open:
        """Raises: UserError `mcp.*`, `unavailable.sandbox`."""
        start, argv = self.start, server.argv
        program = identity.program(argv[0], start.folder, start.programs)
        named = {word: identity.named(word, start.folder) for word in argv[1:]}
        words = [str(named[word] or word) for word in argv[1:]]
        binds = {*start.binds(str(program)), *(path for path in named.values() if path)}
        scratch = Scratch("mcp")
        ours = os.pipe(), os.pipe()
        (inside_in, outside_out), (outside_in, inside_out) = ours
        joined = (start.programs["python"], "-I", "-S", "-c", _JOINED, str(inside_in), str(inside_out))
        try:
            child = start.launcher().start(
                Job(
                    (*joined, str(program), *words),
                    scratch.path,
                    limits=replace(start.limits, wall_s=DAY, cpu_s=DAY),
                    env={"HOME": "/tmp", "PATH": f"{program.parent}:/usr/bin:/bin"},
                    binds=tuple(sorted(binds)),
                ),
                (inside_in, inside_out),
            )
        except BaseException:
            for fd in (*ours[0], *ours[1]):
                os.close(fd)
            scratch.close()
            raise
        os.close(inside_in)
        os.close(inside_out)
        try:
            return _Open(sdk_client.over_pipes(server.name, outside_in, outside_out), child, scratch)
        except UnavailableError as error:
            said = child.wait(1)  # it may be about to end, and say why
            child.kill()
            scratch.close()
            detail = unseen.written_out(said.stderr.data.decode("utf-8", "replace").strip()[-400:])
            detail = detail or said.detail
            raise UnavailableError(
                error.code, f"{error.message}{': ' + detail if detail else ''}", error.hint
            ) from error

    def _reached(self, server: Server, addresses: Sequence[str]) -> _Open:
        """Raises: UserError `mcp.*`, `http_request.reach`."""
        url = url_of(server.url)
        found = list(addresses) or list(resolve(url.host))
        if not found:
            raise UnavailableError("mcp.closed", f"the host {url.host} has no address", "is the name right?")
        for address in found:
            if (kind := urls.reach_of(address)) not in self.start.reach:
                raise UsageError(
                    "http_request.reach",
                    f"{url.host} is at {address}, which is {kind}, and no request goes there",
                    f'the operator lets it with [network] requests = ["public", "{kind}"]',
                )
        headers = {"host": http_request.host_header(url)}
        if server.token:
            headers["authorization"] = f"Bearer {self.start.bearer(server.token)}"
        place = sdk_client.Place(server.url, url.host, found[0], headers)
        return _Open(sdk_client.over_http(server.name, place), place=place)


def _row(server: str, one: pins.Difference) -> tuple[Value, ...]:
    """Without the names within a schema: a denial repeats it, and a model may read that."""
    tool, field = unseen.written_out(one.tool), one.field.partition("/")[0]
    return (server, tool, Name(f"/{one.state}"), field)


def _end(held: _Open) -> None:
    held.connection.close()
    if held.child is not None:
        held.child.kill()
    if held.scratch is not None:
        held.scratch.close()


def url_of(text: str) -> urls.Url:
    """Raises: UsageError `mcp.url`."""
    found = urls.parse(text, bare_hosts=True)
    if isinstance(found, urls.Trouble) or found.scheme not in ("https", "http"):
        why = found.detail if isinstance(found, urls.Trouble) else f"the scheme {found.scheme}"
        raise UsageError("mcp.url", f"{text[:200]!a} is no address of a server: {why}", "https://host/path")
    return found


class Served:
    """One tool of a server."""

    def __init__(self, servers: Servers, server: Server, name: str, tool: str) -> None:
        self._servers, self._server, self._tool = servers, server, tool
        definition = server.tools[tool]
        prose = tool in server.prose
        self._output: Mapping[str, Any] | None = None
        with suppress(UserError):
            self._output = definitions.schema({**definition, "inputSchema": definition.get("outputSchema")})
        self.entry = ToolEntry(
            name=name,
            version=1,
            summary=definitions.summary(server.name, definition, prose),
            schema=definitions.schema(definition, prose),
            effect="pure" if tool in server.pure else "effect",
            on_fail="continue",
            sandboxed=False,
            writes=False,
            arguments=dict(_uses(server, tool, definition)),
        )
        self.mark = pins.pin(server.name, definition)

    def run(self, call: Call) -> ToolResult:
        """One call. Raises: Cancelled."""
        return results.guarded(self._run, call)

    def close(self) -> None:
        """End its server."""
        self._servers.drop(self._server.name)

    def _run(self, call: Call) -> ToolResult:
        if self.entry.effect != "pure" and not call.first():
            return self._lost("the run stopped during the call")
        try:
            found, requests, sent = self._servers.call(self._server, self._tool, call)
        except UserError as error:
            if error.code not in _LOST_CODES:
                raise
            self._servers.drop(self._server.name)
            if self.entry.effect == "pure":
                raise
            why = f"{error.message}; whether {self._tool} was done is not known"
            return results.failed(
                "mcp.lost", why, "look at what it changed before it is called again", exit=LOST
            )
        return replace(self._result(found), requests=requests, request_bytes=sent)

    def _lost(self, why: str) -> ToolResult:
        message = f"{why}; whether {self._tool} was done is not known"
        hint = "look at what it changed before it is called again"
        return results.failed("mcp.lost", message, hint, exit=LOST)

    def _result(self, found: Mapping[str, Any]) -> ToolResult:
        raw = _text(found)
        whole = unseen.SIGNS.sub(lambda sign: unseen.written_out(sign[0]), raw).encode("utf-8", "replace")
        code = "mcp.tool_error" if found.get("isError") is True else ""
        why = f"{self._server.name}.{self._tool} says that it failed"
        structured = found.get("structuredContent")
        if not code and self._output is not None and (wrong := violations(self._output, structured)):
            code = "mcp.result"
            why = f"the result is not of its outputSchema: {wrong[0].path or '/'} {wrong[0].code}"
        key: dict[str, Any] = {
            "exit": 1 if code else 0,
            "sha256": canon.digest(raw.encode("utf-8", "replace")),
        }
        notes = []
        if code:
            key["codes"] = [code]
            notes.append(results.diagnostic("error", code, why))
        kept = whole[:MAX_RESULT].decode("utf-8", "ignore").encode()
        return ToolResult(
            "exited", key["exit"], kept, len(whole), canon.digest(whole), len(whole) > MAX_RESULT, key,
            tuple(notes),
        )  # fmt: skip


def _uses(server: Server, tool: str, definition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the entry says to the policy (spak.policy.facts)."""
    yield SCHEME, "text"
    for secret in server.secrets:
        yield SCHEME + secret, "text"
    yield f"{MCP}{server.name}/{tool}", f"pin={pins.pin(server.name, definition)}"
    yield f"{MCP}{server.name}", f"{server.transport}={server.identity}"
    hints = definition.get("annotations")
    for hint, word in _HINTS.items():
        if isinstance(hints, Mapping) and hints.get(hint) is True:
            yield f"{MCP}?{word}", "text"
    if server.url:
        url = url_of(server.url)
        host = f"[{url.host}]" if ":" in url.host else url.host
        yield f"{url.scheme}://{host}:{url.port}", "host=1"


_HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}


def _text(found: Mapping[str, Any]) -> str:
    """What a result says: its texts, and a line for what is none. Nothing that it names is fetched."""
    parts: list[str] = []
    content = found.get("content")
    for item in content if isinstance(content, list) else ():
        match item.get("type") if isinstance(item, Mapping) else None:
            case "text":
                parts.append(str(item.get("text", "")))
            case "resource" if isinstance(item.get("resource"), Mapping) and "text" in item["resource"]:
                parts.append(str(item["resource"]["text"]))
            case kind:
                parts.append(f"[{kind}, {len(json.dumps(item, default=str))} characters, left out]")
    if not parts and "structuredContent" in found:
        parts.append(json.dumps(found["structuredContent"], ensure_ascii=False, sort_keys=True))
    return "\n".join(parts)


class Listed:
    """The predicate `mcp_listed`: how what a server lists now differs from what was approved."""

    entry = PredicateEntry(
        name="mcp_listed",
        version=1,
        summary="What an MCP server lists now, against what was approved.",
        columns=("server", "tool", "state", "field"),
        modes=("+---",),
        timeout_s=60.0,
    )

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def rows(self, args: Sequence[Value | None], look: Look) -> Iterable[Sequence[Value]]:
        """The differences of one server, and a row that says that it listed its tools at all."""
        return self._servers.listed(str(args[0]))
