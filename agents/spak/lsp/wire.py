"""The wire: messages of the base protocol in and out, and who may say what when.

Takes two file descriptors and a pygls protocol; gives the exit code of the process: 0 after `shutdown`, 1
where the client left without it. A thread reads frames and hands them to the loop one by one, at most ROOM
ahead. What pygls would drop in silence gets an answer here: text that is no JSON, requests before
`initialize`, after `shutdown` or with parameters of the wrong shape.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable
from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol

MAX_MESSAGE = 64 << 20
"""Bytes of a message; a longer one is read past and refused."""

MAX_HEADER = 8192
ROOM = 64
WATCH_S = 3.0
"""How often to look whether the client's process still lives."""

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, NOT_INITIALIZED = -32700, -32600, -32602, -32002


class Frames:
    """The frames of a byte stream: bodies, or None in the place of one that can not be read."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._buffer = bytearray()

    def next(self) -> bytes | None:
        """The next body. Raises: EOFError."""
        length = -1
        while True:
            line = self._line()
            if line is None:
                return None
            name, colon, value = line.partition(b":")
            if colon and name.strip().lower() == b"content-length":
                digits = value.strip()
                length = int(digits) if digits.isdigit() and len(digits) < 12 else -1
            elif not line.strip() and length >= 0:
                return self._body(length)
            elif not line.strip() or not colon:
                return None

    def _line(self) -> bytes | None:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MAX_HEADER:
                self._buffer.clear()
                return None
            self._more()
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line

    def _body(self, length: int) -> bytes | None:
        if length > MAX_MESSAGE:
            while length > 0:
                taken = min(length, len(self._buffer))
                del self._buffer[:taken]
                length -= taken
                if length:
                    self._more()
            return None
        while len(self._buffer) < length:
            self._more()
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _more(self) -> None:
        chunk = self._read(1 << 16)
        if not chunk:
            raise EOFError
        self._buffer += chunk


class Writer:
    """What pygls writes to; a client that is gone is told once and never raised."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._gone = gone

    def write(self, data: bytes) -> None:
        """Write all of the bytes; a client that has gone ends the server."""
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            self._gone()

    def close(self) -> None:
        """The descriptor is the caller's."""


class Conversation:
    """One client from its first message to its last."""

    def __init__(self, protocol: LanguageServerProtocol, source: int, sink: int) -> None:
        self.protocol = protocol
        self.source = source
        self.writer = Writer(sink, self.leave)
        self.initialized = self.stopped = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.done: asyncio.Future[int] | None = None
        self.room = threading.Semaphore(ROOM)

    async def run(self) -> int:
        """Talk until the client ends it; the exit code."""
        self.loop = asyncio.get_running_loop()
        self.done = self.loop.create_future()
        self.protocol.set_writer(self.writer)
        threading.Thread(target=self._pump, name="spak-lsp-reader", daemon=True).start()
        try:
            return await self.done
        finally:
            self.room.release(ROOM)

    def leave(self) -> None:
        """End the conversation."""
        if self.done is not None and not self.done.done():
            self.done.set_result(0 if self.stopped else 1)

    # ---- in

    def _pump(self) -> None:
        """In a thread: frames to the loop, until there are none."""
        frames = Frames(lambda size: os.read(self.source, size))
        assert self.loop is not None
        try:
            while True:
                body = frames.next()
                self.room.acquire()
                self.loop.call_soon_threadsafe(self._take, body)
        except (EOFError, OSError):
            end = self.leave
        except RuntimeError:  # the loop is closed
            return
        try:
            self.loop.call_soon_threadsafe(end)
        except RuntimeError:
            return

    def _take(self, body: bytes | None) -> None:
        self.room.release()
        if self.done is None or self.done.done():
            return
        try:
            message = json.loads(body) if body is not None else None
        except (ValueError, RecursionError):
            message = None
        if message is None:
            self.refuse(None, PARSE_ERROR, "a message that is not JSON, or longer than 64 MB")
        elif not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.refuse(None, INVALID_REQUEST, "a message that is not of JSON-RPC 2.0")
        else:
            self._judge(message)

    def _judge(self, message: dict[str, Any]) -> None:
        """Answer what may not be asked now, and hand on the rest."""
        method, number = message.get("method"), message.get("id")
        request = number is not None and isinstance(method, str)
        if request and (isinstance(number, bool) or not isinstance(number, (int, str))):
            self.refuse(None, INVALID_REQUEST, "the id of a request is a whole number or a text")
        elif method == "exit":
            self.leave()
        elif self.stopped:
            if request:
                self.refuse(number, INVALID_REQUEST, "the server was shut down")
        elif not self.initialized and method != "initialize":
            if request:
                self.refuse(number, NOT_INITIALIZED, "send initialize first")
        elif self.initialized and method == "initialize":
            self.refuse(number, INVALID_REQUEST, "initialize was sent twice")
        else:
            self._hand_on(message, method, number if request else None)

    def _hand_on(self, message: dict[str, Any], method: Any, number: Any) -> None:
        try:
            known = self.protocol.structure_message(message)
        except JsonRpcException:
            if number is not None:
                self.refuse(number, INVALID_PARAMS, f"parameters of the wrong shape for {method}")
            return
        if method == "initialize":
            self.initialized = True
            self._watch(message)
        self.protocol.handle_message(known)
        if method == "shutdown":
            self.stopped = True

    def _watch(self, message: dict[str, Any]) -> None:
        """End when the client's process does, where it named one that can be seen from here."""
        client = (message.get("params") or {}).get("processId")
        if isinstance(client, int) and client > 0 and _lives(client) and self.loop is not None:
            self.loop.call_later(WATCH_S, self._look, client)

    def _look(self, client: int) -> None:
        assert self.loop is not None
        if _lives(client):
            self.loop.call_later(WATCH_S, self._look, client)
        else:
            self.leave()

    # ---- out

    def refuse(self, number: Any, code: int, message: str) -> None:
        """An error response, to nobody in particular where the request has no number."""
        answer = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
        body = json.dumps(answer).encode()
        self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
