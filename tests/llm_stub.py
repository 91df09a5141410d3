"""A server on this machine that speaks the wire of Ollama, OpenAI (SSE) and Anthropic, well or badly.

`Stub().script = ["503", "ok"]` says how each request is answered, the last word for all that follow: `ok`,
`say TEXT`, `raw` (the bytes in `raw`), a fault, `gone` (it listens no more), or a status of STATUSES.
What was asked is kept in `requests` as (method, path, headers, body).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEXT = '{"tool": "run", "note": "grüße"}'
PIECES = (TEXT[:9], TEXT[9:20], TEXT[20:])
BIG = "x" * 65_536
MODEL = "stub-1"

STATUSES = {
    "401": (401, {}, {"error": {"message": "wrong key sk-canary-0123456789abcdef"}}),
    "404": (404, {}, {"error": {"message": "model 'nope' not found"}}),
    "400": (400, {}, {"error": {"message": "temperature is not supported"}}),
    "window": (400, {}, {"error": {"message": "the request exceeds the available context size"}}),
    "429": (429, {"Retry-After": "0.3"}, {"error": {"message": "slow down"}}),
    "429_bare": (429, {}, {"error": {"message": "slow down"}}),
    "429_long": (429, {"Retry-After": "86400"}, {"error": {"message": "come back tomorrow"}}),
    "500": (500, {}, {"error": {"message": "boom"}}),
    "503": (503, {"Retry-After": "0"}, {"error": {"message": "Loading model", "code": 503}}),
    "529": (529, {}, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
}


def sse(value: Any, event: str = "") -> bytes:
    return (f"event: {event}\n" if event else "").encode() + b"data: " + json.dumps(value).encode() + b"\n\n"


class Ollama:
    path, kind = "/api/chat", "application/x-ndjson"

    @staticmethod
    def line(value: Any) -> bytes:
        return json.dumps(value).encode() + b"\n"

    def head(self) -> bytes:
        return b""

    def piece(self, text: str) -> bytes:
        message = {"role": "assistant", "content": text}
        return self.line(
            {
                "model": MODEL,
                "message": message,
                "done": False,
                "logprobs": [{"token": text, "logprob": -0.5}],
            }
        )

    def tail(self, usage: bool = True) -> bytes:
        counts = {"prompt_eval_count": 11, "eval_count": 7} if usage else {}
        message = {"role": "assistant", "content": ""}
        return self.line({"model": MODEL, "message": message, "done": True, "done_reason": "stop", **counts})

    def shape(self) -> bytes:
        return self.line({"message": {"content": ["not", "text"]}, "done": False})


class OpenAI:
    path, kind = "/chat/completions", "text/event-stream"

    def head(self) -> bytes:
        return sse(
            {"model": MODEL, "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
        )

    def piece(self, text: str) -> bytes:
        logs = {"content": [{"token": text, "logprob": -0.5}]}
        return sse({"model": MODEL, "choices": [{"index": 0, "delta": {"content": text}, "logprobs": logs}]})

    def tail(self, usage: bool = True) -> bytes:
        end = sse({"model": MODEL, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        details = {"prompt_tokens_details": {"cached_tokens": 4}}
        counts = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, **details}
        told = sse({"model": MODEL, "choices": [], "usage": counts}) if usage else b""
        return end + told + b"data: [DONE]\n\n"

    def shape(self) -> bytes:
        return sse({"choices": [{"index": 0, "delta": {"content": ["not", "text"]}}]})


class Anthropic:
    path, kind = "/v1/messages", "text/event-stream"

    def head(self) -> bytes:
        usage = {"input_tokens": 5, "output_tokens": 1}
        usage |= {"cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}
        message = {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": MODEL}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        start = sse({"type": "message_start", "message": message}, "message_start")
        return start + sse(block, "content_block_start") + sse({"type": "ping"}, "ping")

    def piece(self, text: str) -> bytes:
        delta = {"type": "text_delta", "text": text}
        return sse({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")

    def tail(self, usage: bool = True) -> bytes:
        counts = {"usage": {"output_tokens": 7}} if usage else {"usage": None}
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        return (
            sse({"type": "content_block_stop", "index": 0}, "content_block_stop")
            + sse({"type": "message_delta", "delta": delta, **counts}, "message_delta")
            + sse({"type": "message_stop"}, "message_stop")
        )

    def shape(self) -> bytes:
        return sse({"type": "content_block_delta", "index": 0, "delta": "not a delta"}, "content_block_delta")


WIRES = {"ollama": Ollama(), "openai_compatible": OpenAI(), "anthropic": Anthropic()}
Wire = Ollama | OpenAI | Anthropic


class Stub:
    """The server; use it as a context manager."""

    def __init__(self, port: int = 0) -> None:
        self.script: list[str] = ["ok"]
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.hung_up = threading.Event()
        """Set when a client closed its connection while it was being answered."""
        self.elsewhere = ""
        self.raw = b""
        self._over = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None: ...

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (ConnectionError, TimeoutError):
                    stub.hung_up.set()
                    self.close_connection = True

            def do_GET(self) -> None:
                stub._asked(self, b"")
                if self.path.endswith("/api/tags"):
                    self._json(200, {}, {"models": [{"name": MODEL}, {"name": "other:latest"}]})
                elif self.path.partition("?")[0].endswith("/models"):
                    item = {"id": MODEL, "type": "model", "display_name": "Stub"}
                    item |= {"created_at": "2026-01-01T00:00:00Z"}
                    self._json(200, {}, {"data": [item], "has_more": False})
                else:
                    self._json(404, {}, {"error": {"message": "no such path"}})

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length", 0)))
                stub._asked(self, data)
                word = stub.script.pop(0) if len(stub.script) > 1 else stub.script[0]
                wire = next((wire for wire in WIRES.values() if self.path.endswith(wire.path)), None)
                if word in STATUSES:
                    self._json(*STATUSES[word])
                elif wire is None:
                    self._json(404, {}, {"error": {"message": "no such path"}})
                elif word == "redirect":
                    self.send_response(307)
                    self.send_header("Location", stub.elsewhere + self.path)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                elif word == "gone":
                    stub._server.shutdown()
                    stub._server.server_close()
                    self.close_connection = True
                elif word == "silent":
                    stub._rest(30)
                    self.close_connection = True
                else:
                    self._stream(wire, word)

            def _json(self, status: int, headers: dict[str, str], value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, wire: Wire, word: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html" if word == "content_type" else wire.kind)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for part in stub._parts(wire, word):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    self.wfile.flush()
                if word == "cut":
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Stub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def bodies(self) -> list[Any]:
        return [json.loads(body) for method, _, _, body in self.requests if method == "POST"]

    def _asked(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        headers = {name.lower(): text for name, text in handler.headers.items()}
        self.requests.append((handler.command, handler.path, headers, body))

    def _rest(self, seconds: float) -> None:
        self._over.wait(seconds)

    def _parts(self, wire: Wire, word: str) -> Iterator[bytes]:
        """The chunks of a streamed reply."""
        match word:
            case "garbage":
                yield b"\x00<html>not what was asked for\n\n{{{\n\n"
                return
            case "empty":
                return
            case "raw":
                yield self.raw
                return
        pieces = PIECES
        if word.startswith("say "):
            text = word[4:]
            third = len(text) // 3
            pieces = (text[:third], text[third : 2 * third], text[2 * third :])
        yield wire.head() or b" "
        yield wire.piece(pieces[0])
        match word:
            case "half_json":
                yield wire.piece(PIECES[1])[:-12] + b"\n\n"
                yield wire.tail()
                return
            case "cut" | "no_done":
                yield wire.piece(PIECES[1])
                return
            case "done_open":
                yield wire.piece(PIECES[1])
                self._rest(30)
                return
            case "utf8":
                yield wire.piece("#").replace(b"#", b"\xff\xfe")
            case "shape":
                yield wire.shape()
            case "big":
                for _ in range(160):
                    yield wire.piece(BIG)
            case "drip":
                for byte in wire.piece(PIECES[1]):
                    if self._over.wait(0.1):
                        return
                    yield bytes([byte])
        for text in pieces[1:]:
            yield wire.piece(text)
        yield wire.tail(usage=word != "no_usage")
