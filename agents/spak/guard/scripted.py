"""A model for trying agents: a server on loopback that answers with calls of tools, one after another.

Takes the calls; speaks the Messages API and the Responses API, streamed, and chat completions, streamed or
whole, whichever it is asked in. It keeps what the agent sent back. After the last call it says that it is
done. It knows nothing and asks nobody.
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
        """The next call, or the end, in the format of the question, of the Messages or the Responses API."""
        call, model = self.turn(asked, key), str(asked.get("model", ""))
        return _message(call, model, number) if "messages" in asked else _response(call, model, number)

    def completion(self, asked: Mapping[str, Any], key: str, number: int) -> dict[str, Any]:
        """The same as an answer to a chat."""
        return _completion(self.turn(asked, key), str(asked.get("model", "")), number)

    def turn(self, asked: Mapping[str, Any], key: str) -> ToolCall | None:
        """The next call; none at the end, and for a request that offers none of the tools of `calls` (a
        title, a summary), which has no turn."""
        self.keys.append(key)
        said = asked.get("messages", asked.get("input", []))
        offered = str(asked.get("tools", ()))
        if "messages" in asked and not any(one.tool in offered for one in self.calls):
            return None
        call = self.calls[len(self.results)] if len(self.results) < len(self.calls) else None
        self.results.append(json.dumps(said[-2:]))
        if call is not None and callable(call.args):
            call = ToolCall(call.tool, call.args(self.results[-1]))
        return call


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
        key, streams = key.removeprefix("Bearer "), True
        if self.path.endswith("/chat/completions"):
            whole, streams = self.model.completion(asked, key, self.number()), bool(asked.get("stream"))
            text = json.dumps(whole)
            if streams:
                text = "".join(f"data: {one}\n\n" for one in (*map(json.dumps, _chunks(whole)), "[DONE]"))
        else:
            events = self.model.events(asked, key, self.number())
            text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streams else "application/json")
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


def _completion(call: ToolCall | None, model: str, number: int) -> dict[str, Any]:
    """Of chat completions."""
    message: dict[str, Any] = {"role": "assistant", "content": "Done." if call is None else None}
    if call is not None:
        function = {"name": call.tool, "arguments": json.dumps(call.args)}
        message["tool_calls"] = [{"id": f"c{number}", "type": "function", "function": function}]
    ended = "stop" if call is None else "tool_calls"
    return {
        "id": f"x{number}", "object": "chat.completion", "created": 0, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": ended}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }  # fmt: skip


def _chunks(whole: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The answer as the parts of a stream: what is said, and how it ended."""
    (choice,) = whole["choices"]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": 0, **one} for one in delta["tool_calls"]]
    parts = ({"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": choice["finish_reason"]})
    head = {**whole, "object": "chat.completion.chunk"}
    return [{**head, "choices": [{"index": 0, **part}]} for part in parts]
