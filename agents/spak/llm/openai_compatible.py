"""Servers that speak `/chat/completions`: OpenAI, Gemini's compatible address, vLLM, llama-server, ...

Streamed as server-sent events; the schema goes as `response_format`. Some servers ignore that with a 200:
the caller validates the answer in any case. The stream is whole when a choice has its `finish_reason` and
the stream then ends by `[DONE]` or by the connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from spak.errors import UnavailableError
from spak.lang.catalog import NamedEntry
from spak.llm import http, messages, retry
from spak.llm.http_backend import HttpBackend
from spak.llm.retry import Put, Reply, Trouble
from spak.llm.settings import Choice
from spak.ports import Finish, Prompt

_FINISH: Mapping[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refused",
}


class OpenAICompatible(HttpBackend):
    """Models of any server that speaks the OpenAI protocol."""

    entry = NamedEntry("openai_compatible", "a model behind an address that speaks OpenAI's protocol")
    address = "https://api.openai.com/v1"

    async def models(self) -> tuple[str, ...]:
        """The models that the server lists. Raises: Trouble."""
        self.guard()
        try:
            found = await http.fetched(self.choice, f"{self.choice.base_url}/models")
        except Trouble as trouble:
            if trouble.code == "llm.unknown_model":
                raise Trouble("llm.unlisted", f"{http.where(self.choice)} lists no models") from None
            raise
        listed = found.get("data") if isinstance(found, dict) else None
        if not isinstance(listed, list):
            raise http.protocol(self.choice, "no list of models")
        return tuple(str(item["id"]) for item in listed if isinstance(item, dict) and "id" in item)

    def check(self) -> None:
        try:
            super().check()
        except UnavailableError as error:
            if error.code != "llm.unlisted":  # some servers list no models: the first call will show
                raise

    def has(self, model: str, listed: tuple[str, ...]) -> bool:
        return model in listed or f"models/{model}" in listed  # Gemini lists them so

    def body(self, prompt: Prompt, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request as it is sent."""
        own = self.choice.base_url == self.address
        body: dict[str, Any] = {
            "model": self.model(prompt),
            "messages": messages.chat(prompt),
            "stream": True,
            "stream_options": {"include_usage": True},
            **{name: value for name, value in params.items() if name != "max_tokens"},
            "max_completion_tokens" if own else "max_tokens": params["max_tokens"],
        }
        if self.choice.logprobs:
            body["logprobs"] = True
        if prompt.schema is not None and self.choice.structured:
            schema = messages.masked(prompt.schema)
            named = {"name": "answer", "schema": schema, "strict": messages.closed(schema, every=True)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return body

    async def attempt(self, body: Mapping[str, Any], put: Put) -> Reply:
        """Send a request and read its stream. Raises: Trouble."""
        text: list[str] = []
        logs: list[float] = []
        finish: Finish | None = None
        model = ""
        usage: Mapping[str, int] = {}
        url, kinds = f"{self.choice.base_url}/chat/completions", ("text/event-stream",)
        async with http.streamed(self.choice, "POST", url, body, kinds) as lines:
            async for part in _events(self.choice, lines):
                model = str(part.get("model") or model)
                usage = _usage(part) or usage
                chosen = part.get("choices") or [{}]
                first = chosen[0] if isinstance(chosen, list) else None
                delta = first.get("delta") or {} if isinstance(first, dict) else None
                piece = (delta.get("content") or "") if isinstance(delta, dict) else None
                if not isinstance(first, dict) or not isinstance(piece, str):
                    raise http.protocol(self.choice, "a choice in another shape")
                text.append(piece)
                put(piece)
                logprobs = first.get("logprobs")
                logs += retry.logprobs(logprobs.get("content") if isinstance(logprobs, dict) else None)
                if first.get("finish_reason"):
                    finish = _FINISH.get(str(first["finish_reason"]), "")
        if finish is None:
            raise http.cut(self.choice)
        return Reply("".join(text), finish, model, usage, tuple(logs) or None)


async def _events(choice: Choice, lines: AsyncIterator[bytes]) -> AsyncIterator[Mapping[str, Any]]:
    """The JSON objects of a stream of server-sent events, until `[DONE]` or the end.

    A field of another name than `data` is passed over, and so is an event without data. An object that stands
    there as it is, is what servers say that fail. Source: WHATWG HTML, "Interpreting an event stream".
    """
    data: list[bytes] = []
    async for line in lines:
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif line.startswith(b"{"):
            _object(choice, line)
        if data and (not line or data[-1] == b"[DONE]"):
            whole = b"\n".join(data).strip()
            data.clear()
            if whole == b"[DONE]":
                return
            if whole:
                yield _object(choice, whole)
    if data:
        raise http.cut(choice)


def _object(choice: Choice, data: bytes) -> Mapping[str, Any]:
    part = http.parsed(choice, data)
    if not isinstance(part, dict):
        raise http.protocol(choice, "an event that is not an object")
    if part.get("error"):
        raise http.complained(choice, part)
    return part


def _usage(part: Mapping[str, Any]) -> Mapping[str, int]:
    found = part.get("usage")
    if not isinstance(found, dict):
        return {}
    details = found.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return retry.tokens(
        input=found.get("prompt_tokens"), output=found.get("completion_tokens"), cached=cached
    )
