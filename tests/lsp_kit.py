"""A client of the language server for tests: a real process, spoken to over its standard streams.

`session(talk)` starts the server, initializes, runs the coroutine and ends properly; `raw` is for those who
want to speak broken protocol. The process is forked from here, where everything is imported already, and
runs the whole command; `SERVER` is its command line for the tests that want to start it as an editor does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeVar

from lsprotocol import types
from pygls.io_ import run_async
from pygls.lsp.client import LanguageClient

import spak.lsp  # noqa: F401  imported here, not in every child
from process_kit import WAIT_S
from spak import config
from spak.cli import main

SERVER = (sys.executable, "-c", "from spak.cli import main; main()", "lsp")
T = TypeVar("T")
config.catalog()


def start(source: int, sink: int, errors: BinaryIO) -> int:
    """A child that runs `spak lsp` on these descriptors; its process id."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        for number, descriptor in enumerate((source, sink, errors.fileno())):
            os.dup2(descriptor, number)
        os.closerange(3, 256)
        sys.argv = ["spak", "lsp"]
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def finish(child: int) -> int:
    """The exit code of a child."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


@dataclass
class Pipe:
    """What the client writes to."""

    descriptor: int

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.descriptor, data) :]

    def close(self) -> None:
        os.close(self.descriptor)


class Client(LanguageClient):
    """A client that keeps what the server publishes."""

    def __init__(self) -> None:
        super().__init__("tests", "1")
        self.published: list[types.PublishDiagnosticsParams] = []
        self.logged: list[str] = []
        self._news = asyncio.Event()
        self.capabilities: types.ServerCapabilities | None = None

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def on_publish(params: types.PublishDiagnosticsParams) -> None:
            self.published.append(params)
            self._news.set()

        @self.feature(types.WINDOW_LOG_MESSAGE)
        def on_log(params: types.LogMessageParams) -> None:
            self.logged.append(params.message)

    def open(self, text: str, uri: str = "untitled:a.spak") -> str:
        item = types.TextDocumentItem(uri, "spak", 1, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def edit(self, uri: str, version: int, *changes: types.TextDocumentContentChangeEvent) -> None:
        named = types.VersionedTextDocumentIdentifier(version, uri)
        self.text_document_did_change(types.DidChangeTextDocumentParams(named, list(changes)))

    async def diagnostics(self, uri: str, version: int | None = None) -> list[types.Diagnostic]:
        """What was published for a version of a document, waited for."""

        async def look() -> list[types.Diagnostic]:
            while True:
                for item in reversed(self.published):
                    if item.uri == uri and version in (None, item.version):
                        return list(item.diagnostics)
                self._news.clear()
                await self._news.wait()

        return await asyncio.wait_for(look(), WAIT_S)


def session(
    talk: Callable[[Client], Awaitable[T]], capabilities: types.ClientCapabilities | None = None
) -> T:
    """Start the server, initialize, talk, shut down; the server must end with 0 and say nothing aside."""
    to_server, from_server = os.pipe(), os.pipe()
    with TemporaryFile() as errors:
        child = start(to_server[0], from_server[1], errors)
        os.close(to_server[0])
        os.close(from_server[1])
        try:
            return asyncio.run(_talk(talk, capabilities, to_server[1], from_server[0]))
        finally:
            code = finish(child)
            errors.seek(0)
            assert errors.read() == b""
            assert code == 0


async def _talk(
    talk: Callable[[Client], Awaitable[T]], capabilities: types.ClientCapabilities | None, to: int, back: int
) -> T:
    client, pipe = Client(), Pipe(to)
    reader = asyncio.StreamReader(limit=1 << 26)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(back, "rb", buffering=0)
    )
    client.protocol.set_writer(pipe)
    listening = asyncio.create_task(run_async(client._stop_event, reader, client.protocol))
    able = capabilities or types.ClientCapabilities()
    params = types.InitializeParams(able, process_id=os.getpid(), root_uri=None)
    answer = await asyncio.wait_for(client.initialize_async(params), WAIT_S)
    client.capabilities = answer.capabilities
    client.initialized(types.InitializedParams())
    try:
        return await asyncio.wait_for(talk(client), WAIT_S)
    finally:
        await asyncio.wait_for(client.shutdown_async(None), WAIT_S)
        client.exit(None)
        pipe.close()
        await asyncio.wait_for(listening, WAIT_S)
        transport.close()


def at(text: str, words: str, inside: int = 0) -> types.Position:
    """The position of some words in a text, in UTF-16 units, by an independent way."""
    before = text[: text.index(words) + inside]
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return types.Position(len(lines) - 1, len(lines[-1].encode("utf-16-le")) // 2)


def taken(text: str, place: types.Range) -> str:
    """The text of a range, by an independent way (for texts with plain line ends)."""
    lines = text.split("\n")

    def offset(position: types.Position) -> int:
        units = lines[position.line].encode("utf-16-le")[: 2 * position.character]
        return sum(len(line) + 1 for line in lines[: position.line]) + len(units.decode("utf-16-le"))

    return text[offset(place.start) : offset(place.end)]


def document(uri: str) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri)


# ---- broken protocol -----------------------------------------------------------------------------------


def frame(message: Any) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def request(number: int, method: str, params: Any = None) -> bytes:
    return frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notice(method: str, params: Any = None) -> bytes:
    return frame({"jsonrpc": "2.0", "method": method, "params": params})


INITIALIZE = request(1, "initialize", {"capabilities": {}, "processId": None, "rootUri": None})
END = request(99, "shutdown") + notice("exit")


def raw(data: bytes) -> tuple[int, list[dict[str, Any]], bytes]:
    """Send bytes and close; the exit code, the server's messages, and its standard error."""
    with TemporaryFile() as source, TemporaryFile() as sink, TemporaryFile() as errors:
        source.write(data)
        source.flush()
        os.lseek(source.fileno(), 0, os.SEEK_SET)
        code = finish(start(source.fileno(), sink.fileno(), errors))
        sink.seek(0)
        errors.seek(0)
        return code, list(messages(sink.read())), errors.read()


def messages(data: bytes) -> list[dict[str, Any]]:
    """The messages of a stream."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
        length = int(fields[b"Content-Length"])
        found.append(json.loads(rest[:length]))
        data = rest[length:]
    return found
