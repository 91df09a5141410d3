"""Anthropic's Messages API through the official SDK (which runs on httpx2), streamed.

The stable items of a prompt (`Prompt.prefix`) end with a cache breakpoint, so that the next call of the task
reads them from the cache. The schema goes as `output_config.format`, in the form that the SDK makes of it;
what that form cannot say (lengths, ranges) the caller's validation says; a schema with free objects, which it
would turn into empty ones, is not sent. The SDK's own retries are off: there
is one place for them. Log-probabilities are not available.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spak.lang.catalog import NamedEntry
from spak.llm import address_check, http, messages, retry
from spak.llm.http_backend import HttpBackend
from spak.llm.retry import MAX_BYTES, Put, Reply, Trouble
from spak.llm.settings import LOOPBACK, Choice
from spak.ports import Finish, Prompt

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

_FINISH: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class Anthropic(HttpBackend):
    """Models behind Anthropic's API."""

    entry = NamedEntry("anthropic", "a model of Anthropic, with prompt caching")
    address = "https://api.anthropic.com"

    async def models(self) -> tuple[str, ...]:
        """The models that the key may use."""
        self.guard()
        found: list[str] = []
        with _mapped(self.choice):
            async with self._client("application/json") as client:
                async for item in client.models.list(limit=1000):
                    found.append(str(item.id))
        return tuple(found)

    def params(self, prompt: Prompt) -> dict[str, Any]:
        """What the answer is drawn with; there is no seed."""
        drawn = super().params(prompt)
        return {name: value for name, value in drawn.items() if name != "seed"}  # it has none

    def body(self, prompt: Prompt, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request as it is sent."""
        import_module("anthropic")  # which takes a second that is not the call's
        groups = messages.grouped(prompt)
        system = groups[0][1] if len(groups) > 1 and groups[0][0] == "system" else []
        stable = max((i for _, parts in groups for i, _ in parts if i < prompt.prefix), default=-1)
        talk = [("user" if role == "system" else role, parts) for role, parts in groups[bool(system) :]]
        body: dict[str, Any] = {
            "model": self.model(prompt),
            "messages": [{"role": role, "content": _blocks(parts, stable)} for role, parts in talk],
            "max_tokens": params["max_tokens"],
        }
        if "stop" in params:
            body["stop_sequences"] = params["stop"]
        drawn = {name: value for name, value in params.items() if name not in ("max_tokens", "stop")}
        if drawn:
            body["extra_body"] = drawn  # the SDK has no argument for them; older models take them
        if system:
            body["system"] = _blocks(system, stable)
        schema = messages.masked(prompt.schema) if self.choice.structured else None
        if messages.closed(schema):
            from anthropic import transform_schema

            body["output_config"] = {"format": {"type": "json_schema", "schema": transform_schema(schema)}}
        return body

    def _client(self, kind: str) -> AsyncAnthropic:
        """The SDK's client, over a transport of ours that takes bounded replies of one content type."""
        import anthropic
        import httpx2

        chosen = self.choice
        timeout = httpx2.Timeout(chosen.silence_s, connect=chosen.connect_s)

        async def judge(response: httpx2.Response) -> None:
            if response.status_code == 200:
                found = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                if found != kind:
                    raise http.protocol(chosen, f"content type {found[:60]!r} instead of {kind}")
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise http.protocol(chosen, "a compressed reply, which was not asked for")
                response.stream = _bounded(response.stream, MAX_BYTES, chosen)
            elif 300 <= response.status_code < 400:
                raise http.refused(chosen, response.status_code, response.headers, "")
            else:  # the SDK reads all of an error, and unpacks it
                response.headers.pop("content-encoding", None)
                response.stream = _bounded(response.stream, http.MAX_ERROR)

        return anthropic.AsyncAnthropic(
            api_key=chosen.secret.reveal() if chosen.secret is not None else "none",
            base_url=chosen.base_url,
            timeout=timeout,
            max_retries=0,
            open_telemetry=False,
            http_client=httpx2.AsyncClient(
                headers={"accept-encoding": "identity"},
                timeout=timeout,
                follow_redirects=False,
                trust_env=chosen.host not in LOOPBACK,
                transport=address_check.transport(httpx2, chosen),
                event_hooks={"response": [judge]},
            ),
        )

    async def attempt(self, body: Mapping[str, Any], put: Put) -> Reply:
        """Send a request and read its stream. Raises: Trouble."""
        text: list[str] = []
        usage: dict[str, Any] = {}
        finish: Finish = ""
        model, whole = "", False
        with _mapped(self.choice):
            async with self._client("text/event-stream") as client:
                stream = await client.messages.create(**body, stream=True)
                async with stream:
                    with _shaped(self.choice):
                        async for event in stream:
                            match event.type:
                                case "message_start":
                                    model = str(event.message.model)
                                    usage |= _counts(event.message.usage)
                                case "content_block_delta" if event.delta.type == "text_delta":
                                    text.append(event.delta.text)
                                    put(event.delta.text)
                                case "message_delta":
                                    finish = _FINISH.get(str(event.delta.stop_reason), "")
                                    usage |= _counts(event.usage)
                                case "message_stop":
                                    whole = True
                        answer = "".join(text)
        if not whole:
            raise http.cut(self.choice)
        return Reply(answer, finish, model, _usage(usage))


def _blocks(parts: list[tuple[int, str]], stable: int) -> list[dict[str, Any]]:
    """Text blocks; the last of the stable items carries the cache breakpoint."""
    mark = {"cache_control": {"type": "ephemeral"}}
    return [{"type": "text", "text": text, **(mark if index == stable else {})} for index, text in parts]


_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def _counts(usage: object) -> dict[str, Any]:
    """What an event says of tokens; the last word on each count is the one that holds."""
    found = {name: getattr(usage, name, None) for name in _COUNTS}
    return {name: value for name, value in found.items() if value is not None}


def _usage(counts: Mapping[str, Any]) -> Mapping[str, int]:
    """The counts in our words: `input` is all of the prompt, theirs is what no cache had to do with."""
    cached = counts.get("cache_read_input_tokens")
    written = counts.get("cache_creation_input_tokens")
    parts = retry.tokens(fresh=counts.get("input_tokens"), cached=cached or 0, cache_write=written or 0)
    whole = sum(parts.values()) if "fresh" in parts else None
    return retry.tokens(input=whole, output=counts.get("output_tokens"), cached=cached, cache_write=written)


@contextmanager
def _mapped(choice: Choice) -> Iterator[None]:
    """What the SDK raises, as Trouble."""
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError as error:
        status = error.status_code
        body = json.dumps(error.body) if isinstance(error.body, (dict, str)) else ""
        # An error inside a stream comes with the stream's own 200.
        raise http.refused(choice, 529 if status == 200 else status, error.response.headers, body) from None
    except (anthropic.APIConnectionError, httpx2.HTTPError) as error:
        cause = error.__cause__
        if isinstance(cause, Trouble):
            raise cause from None
        raise http.broken(choice, cause if isinstance(cause, httpx2.HTTPError) else error) from None
    except anthropic.AnthropicError as error:
        raise http.protocol(choice, f"what the SDK cannot read ({type(error).__name__})") from None


@contextmanager
def _shaped(choice: Choice) -> Iterator[None]:
    """The SDK takes events as they come: one of another shape shows itself only when it is read."""
    try:
        yield
    except UnicodeDecodeError:
        raise http.protocol(choice, "bytes that are not UTF-8") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise http.protocol(choice, f"an event in another shape ({type(error).__name__})") from None


def _bounded(inner: Any, limit: int, choice: Choice | None = None) -> Any:
    """The body's stream up to a limit; with a choice, what goes beyond it ends in Trouble."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in inner:
                size += len(chunk)
                if size > limit:
                    if choice is not None:
                        raise http.too_large(choice)
                    return
                yield chunk

        async def aclose(self) -> None:
            await inner.aclose()

    return Bounded()
