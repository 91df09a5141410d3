"""What a model says that a call took, in the two formats that agents speak, streamed or whole.

Takes the bytes of an answer; gives its model and its tokens as `spak.costs` counts them. Reads nothing else
of it, and what it does not understand counts as nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def used(answer: bytes) -> tuple[str, dict[str, int]]:
    """The model, and tokens by kind (`input` with what came from a cache or went to it, `output`)."""
    model, usage = "", dict[str, int]()
    for value in values(answer):
        for part in (value, value.get("message"), value.get("response")):
            if not isinstance(part, Mapping):
                continue
            if isinstance(part.get("model"), str):
                model = part["model"][:200]
            if isinstance(part.get("usage"), Mapping):
                usage |= _tokens(part["usage"])
    return model, usage


def values(answer: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of an event stream, or the one that the answer is."""
    lines = [line[5:] for line in answer.splitlines() if line.startswith(b"data:")]
    for text in lines or [answer]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    def count(*names: str) -> int | None:
        for name in names:
            value: Any = usage
            for part in name.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if type(value) is int and 0 <= value < 1 << 40:
                return value
        return None

    found: dict[str, int] = {}
    cached = count("cache_read_input_tokens", "input_tokens_details.cached_tokens",
                   "prompt_tokens_details.cached_tokens")  # fmt: skip
    written = count("cache_creation_input_tokens")
    given, made = count("input_tokens", "prompt_tokens"), count("output_tokens", "completion_tokens")
    if given is not None:
        beside = "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage
        found["input"] = given + ((cached or 0) + (written or 0) if beside else 0)
    if made is not None:
        found["output"] = made
    if cached is not None:
        found["cached"] = cached
    if written is not None:
        found["cache_write"] = written
    return found
