"""A model for trying agents: a server on loopback that answers with calls of tools, one after another.

Takes the calls; speaks the Messages API and the Responses API, streamed, whichever it is asked in, and keeps
what the agent sent back. After the last call it says that it is done. It knows nothing and asks nobody.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple

MOST_REQUEST = 64 << 20


class ToolCall(NamedTuple):
    """What the model has the agent do."""

    tool: str
    args: Mapping[str, Any] | Callable[[str], Mapping[str, Any]]
    """Or what makes them of what the agent sent back before."""


@dataclass
class Scripted:
    """Answers with `calls` in turn; `results` are the last two messages of each request that had a turn, as
    JSON, and `keys` the keys of all."""

    calls: Sequence[ToolCall]
    results: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    key: str = "sk-a-key-that-stays-outside"
    port: int = 0

    @property
    def env(self) -> dict[str, str]:
        """Where the models are for who starts an agent, and the keys."""
        here = f"http://127.0.0.1:{self.port}"
        return {
            "ANTHROPIC_BASE_URL": here, "OPENAI_BASE_URL": f"{here}/v1",
            "ANTHROPIC_API_KEY": self.key, "OPENAI_API_KEY": self.key,
        }  # fmt: skip

    @contextmanager
    def serving(self) -> Iterator[Scripted]:
        """While entered it answers."""
        numbers = count()

        class Handler(_Handler):
            model = self
            number = staticmethod(lambda: next(numbers))

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            self.port = server.server_port
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()

    def events(self, asked: Mapping[str, Any], key: str, number: int) -> list[dict[str, Any]]:
        """The next call, or the end, in the format of the question. A request that offers none of the tools
        of `calls` (a title, a summary) has no turn."""
        self.keys.append(key)
        messages = asked.get("messages")
        said = messages if messages is not None else asked.get("input", [])
        offered = str(asked.get("tools", ()))
        call = None
        if messages is None or any(one.tool in offered for one in self.calls):
            call = self.calls[len(self.results)] if len(self.results) < len(self.calls) else None
            self.results.append(json.dumps(said[-2:]))
            if call is not None and callable(call.args):
                call = ToolCall(call.tool, call.args(self.results[-1]))
        model = str(asked.get("model", ""))
        return _response(call, model, number) if messages is None else _message(call, model, number)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Scripted

    @staticmethod
    def number() -> int:
        """Of the answer."""
        return 0

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        size = int(length) if length.isdecimal() else 0
        try:
            asked = json.loads(self.rfile.read(min(size, MOST_REQUEST)))
        except ValueError:
            self.send_error(400)
            return
        key = self.headers.get("x-api-key") or self.headers.get("authorization") or ""
        events = self.model.events(asked, key.removeprefix("Bearer "), self.number())
        data = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written."""


def _message(call: ToolCall | None, model: str, number: int) -> list[dict[str, Any]]:
    """Of the Messages API."""
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "Done."}
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": call.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.args)}
    begun: dict[str, Any] = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 100, "output_tokens": 1},
    }  # fmt: skip
    ended = {"stop_reason": "tool_use" if call is not None else "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ]


def _response(call: ToolCall | None, model: str, number: int) -> list[dict[str, Any]]:
    """Of the Responses API."""
    item: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"m{number}",
                            "content": [{"type": "output_text", "text": "Done."}]}  # fmt: skip
    if call is not None:
        item = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": call.tool,
                "arguments": json.dumps(call.args)}  # fmt: skip
    usage = {"input_tokens": 100, "input_tokens_details": None, "output_tokens": 20,
             "output_tokens_details": None, "total_tokens": 120}  # fmt: skip
    return [
        {"type": "response.created", "response": {"id": f"r{number}"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": f"r{number}", "model": model, "usage": usage}},
    ]
