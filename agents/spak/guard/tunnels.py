"""Tunnels of a guarded agent to hosts that the law names: HTTP CONNECT.

Takes a session and a connection of the proxy. A tunnel is proposed (`tunnel`) and judged by the law's rules
for the network; where it is permitted it is connected to an address that was judged. It carries bytes that
nobody reads; how many went each way is proposed at its end (`tunnel_closed`), so that the ledger has it.

Nothing is opened after the session has ended, and nothing is left open.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Literal

from spak.cancel import apart
from spak.errors import UserError
from spak.guard.session import Session
from spak.policy import urls
from spak.ports import Call, ToolResult
from spak.tools import results
from spak.tools.http_request import CONNECT_S, addresses_of

MOST = 16
"""Tunnels at once; one more is refused."""
IDLE_S = 300.0
_CHUNK = 1 << 16

End = Literal["closed", "idle", "session"]


class Tunnels:
    """Those of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = threading.Condition()
        self._open: set[_Pipe] = set()
        self._taken = 0
        """Tunnels that are open, are being opened, or whose end is not recorded yet."""
        self._over = False
        session.closing.append(self.close)

    def serve(self, asked: BaseHTTPRequestHandler) -> None:
        """Answer one request for a tunnel and carry it to its end; the connection is of no use afterwards."""
        asked.close_connection = True
        url = urls.parse(f"tunnel://{asked.path}", bare_hosts=True)
        if isinstance(url, urls.Trouble) or url.path or not 0 < url.port < 1 << 16:
            why = url.detail if isinstance(url, urls.Trouble) else "not of the form HOST:PORT"
            _answer(asked, HTTPStatus.BAD_REQUEST, f"the guard opens a tunnel to HOST:PORT: {why}")
            return
        with self._place() as free:
            if not free:
                most = f"{MOST} tunnels are open, or the session has ended"
                _answer(asked, HTTPStatus.SERVICE_UNAVAILABLE, most)
                return
            try:
                self._serve(asked, url.host, url.port)
            except UserError as error:  # the session is over
                _answer(asked, HTTPStatus.FORBIDDEN, f"{error.message} [{error.code}]")

    def close(self) -> None:
        """End all of them; returns when the end of each is recorded, or cannot be any more."""
        with self._changed:
            self._over = True
            for pipe in self._open:
                pipe.end("session")
            self._changed.wait_for(lambda: not self._taken)

    @contextmanager
    def _place(self) -> Iterator[bool]:
        with self._changed:
            free = self._taken < MOST and not self._over
            self._taken += free
        try:
            yield free
        finally:
            with self._changed:
                self._taken -= free
                self._changed.notify_all()

    def _serve(self, asked: BaseHTTPRequestHandler, host: str, port: int) -> None:
        about = {"host": host, "port": port}
        opening = _Opening(host, port)
        with opening:
            with self._session.talk:
                self._session.turn()
                done = self._session.propose("tunnel", about, opening.run)
            if opening.line is None or done.said:
                said = done.said or opening.why
                self._session.note(f"No tunnel to {host}:{port}: {said}")
                _answer(asked, HTTPStatus.FORBIDDEN if done.said else HTTPStatus.BAD_GATEWAY, said)
                return
            pipe = _Pipe(asked.connection, opening.line)
            self._carry(asked, pipe)
        about |= {"sent": pipe.sent, "received": pipe.received, "why": pipe.why}
        with suppress(UserError):  # the session is over: nothing is recorded any more
            self._session.propose("tunnel_closed", about, _closed)

    def _carry(self, asked: BaseHTTPRequestHandler, pipe: _Pipe) -> None:
        with self._changed:
            self._open.add(pipe)
            if self._over:
                pipe.end("session")
        try:
            asked.send_response_only(HTTPStatus.OK, "Connection established")
            asked.end_headers()
            asked.connection.setblocking(False)
            pipe.carry(asked.rfile.peek())  # type: ignore[attr-defined]  # what came with the request
        except OSError:
            pass  # either end broke off
        finally:
            with self._changed:
                self._open.discard(pipe)


class _Opening:
    """The work of one proposal: a connection, or why there is none. Close it by leaving it."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self.line: socket.socket | None = None
        self.why = ""

    def __enter__(self) -> None:
        """Nothing is open yet."""

    def __exit__(self, *_: object) -> None:
        if self.line is not None:
            self.line.close()

    def run(self, call: Call) -> ToolResult:
        """Connect to the first address that answers, of those that were judged."""
        done = results.guarded(lambda call: apart(lambda: self._connect(call), call.cancel), call)
        if done.exit:
            self.why = done.output.decode("utf-8", "replace").strip()
        return done

    def _connect(self, call: Call) -> ToolResult:
        ends = time.monotonic() + CONNECT_S
        for address in addresses_of(call, self._host):
            with suppress(OSError):
                left = max(ends - time.monotonic(), 0.1)
                self.line = socket.create_connection((address, self._port), left)
                found = results.done(f"connected to {self._host}:{self._port} at {address}\n")
                return replace(found, requests=1)
        what = f"{self._host} does not answer at port {self._port}"
        return results.failed("guard.tunnel", what, "is the host up?", exit=2)


def _closed(call: Call) -> ToolResult:
    args = call.args
    text = f"{args['host']}:{args['port']}: {args['sent']} bytes sent, {args['received']} received\n"
    return replace(results.done(text), request_bytes=int(args["sent"]))


@dataclass(slots=True, eq=False)
class _Way:
    """One direction: what was read and not yet written."""

    source: socket.socket
    sink: socket.socket
    kept: bytearray = field(default_factory=bytearray)
    size: int = 0
    over: bool = False
    """Whether nothing more comes from the source."""
    shut: bool = False

    def move(self) -> bool:
        """Write and read what goes without waiting; whether anything moved."""
        before = self.size, self.over, len(self.kept)
        if self.kept:
            with suppress(BlockingIOError):
                count = self.sink.send(self.kept)
                self.size += count
                del self.kept[:count]
        if not self.kept and not self.over:
            with suppress(BlockingIOError):
                data = self.source.recv(_CHUNK)
                self.kept += data
                self.over = not data
        if self.over and not self.kept and not self.shut:
            self.shut = True
            with suppress(OSError):
                self.sink.shutdown(socket.SHUT_WR)
        return before != (self.size, self.over, len(self.kept))


class _Pipe:
    """The two directions of one tunnel."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self._out, self._back = _Way(near, far), _Way(far, near)
        self.why: End = "closed"

    @property
    def sent(self) -> int:
        """Bytes that the host's end has taken."""
        return self._out.size

    @property
    def received(self) -> int:
        """Bytes that the agent's end has taken."""
        return self._back.size

    def end(self, why: End) -> None:
        """End it from another thread."""
        self.why = why
        for one in (self._out.source, self._back.source):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def carry(self, first: bytes) -> None:
        """Carry it until both ends have ended, one breaks off, or neither sends for IDLE_S.

        Raises: OSError."""
        self._back.source.setblocking(False)
        self._out.kept += first
        while not (self._out.shut and self._back.shut):
            if self._out.move() | self._back.move():
                continue
            waits = select.poll()
            for socket_, events in self._awaited().items():
                waits.register(socket_, events)
            if not waits.poll(IDLE_S * 1000):
                self.why = "idle"
                return

    def _awaited(self) -> dict[socket.socket, int]:
        found: dict[socket.socket, int] = {}
        for way in (self._out, self._back):
            if way.kept:
                found[way.sink] = found.get(way.sink, 0) | select.POLLOUT
            elif not way.over:
                found[way.source] = found.get(way.source, 0) | select.POLLIN
        return found


def _answer(asked: BaseHTTPRequestHandler, status: HTTPStatus, message: str) -> None:
    """A refusal: the reason also in the first line, since many clients show nothing else of it."""
    line = "".join(sign if " " <= sign <= "~" else " " for sign in message)
    data = (message + "\n").encode("utf-8", "replace")
    with suppress(OSError):
        asked.send_response_only(status, f"{status.phrase}: {line[:300]}")
        asked.send_header("content-type", "text/plain; charset=utf-8")
        asked.send_header("content-length", str(len(data)))
        asked.send_header("connection", "close")
        asked.end_headers()
        asked.wfile.write(data)
