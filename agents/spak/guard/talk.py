"""What an agent and its model said, as text that people read: from the two formats that agents speak.

Takes a recorded request or answer, whole or streamed; gives who said what. Of a request only what came after
the model's last words, as the rest was said in the requests before. What is in another form is left out, and
a text that is no JSON is shown as it is. It decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spak.guard.wire import values

PERSON, TOOL, AGENT = "person", "tool", "agent"
"""Who speaks: the person (or what the agent adds in their name), what a tool of the agent gave, the model."""


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of a conversation."""

    who: str
    text: str


def asked(request: str) -> list[Said]:
    """What a request adds to the conversation."""
    try:
        value = json.loads(request)
    except (ValueError, RecursionError):
        return [Said(PERSON, request)] if request.strip() else []
    if not isinstance(value, Mapping):
        return []
    listed = value.get("messages", value.get("input"))
    if isinstance(listed, str):
        return [Said(PERSON, listed)]
    new: list[Any] = []
    for item in reversed(listed if isinstance(listed, list) else []):
        if _of_model(item):
            break
        new.append(item)
    return [said for item in reversed(new) for said in _message(item)]


def answered(answer: str) -> list[Said]:
    """What the model said."""
    found = list(values(answer.encode("utf-8", "replace")))
    if not found:
        return [Said(AGENT, answer)] if answer.strip() else []
    pieces = _streamed(found) if len(found) > 1 else list(_whole(found[0]))
    error = next((one["error"] for one in found if isinstance(one.get("error"), Mapping)), None)
    if not pieces and error is not None:
        pieces = [f"error: {error.get('message', '')}"]
    return [Said(AGENT, text) for text in pieces if text.strip()]


def _of_model(item: Any) -> bool:
    """Whether a message, or an item of the newer format, is what the model said."""
    if not isinstance(item, Mapping):
        return False
    return item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning")


def _message(item: Any) -> Iterator[Said]:
    if not isinstance(item, Mapping):
        return
    role = str(item.get("role", ""))
    if item.get("type") in ("function_call_output", "custom_tool_call_output"):
        yield Said(TOOL, _text(item.get("output")))
    elif role in ("system", "developer"):
        return  # the agent's own instructions, the same each time
    else:
        content = item.get("content")
        for block in content if isinstance(content, list) else [content]:
            kind = block.get("type") if isinstance(block, Mapping) else ""
            yield Said(TOOL if role == "tool" or kind == "tool_result" else PERSON, _text(block))


def _text(value: Any) -> str:
    """The text of a content, of a block, or of a list of blocks."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text, value)))
    if not isinstance(value, Mapping):
        return ""
    if isinstance(value.get("text"), str):
        return str(value["text"])
    if "content" in value or "output" in value:
        return _text(value.get("content", value.get("output")))
    return f"[{value.get('type', 'other')}]"


def _whole(value: Mapping[str, Any]) -> Iterator[str]:
    """The pieces of an answer that came at once."""
    response = value.get("response")
    for source in (value, response if isinstance(response, Mapping) else {}):
        for item in _items(source, "content", "output"):
            yield _piece(item)
        for choice in _items(source, "choices"):
            message = choice.get("message")
            message = message if isinstance(message, Mapping) else {}
            yield _text(message.get("content"))
            for call in _items(message, "tool_calls"):
                yield _piece(call.get("function"))


def _piece(item: Any) -> str:
    if not isinstance(item, Mapping):
        return ""
    if "name" in item:
        return _call(str(item["name"]), item.get("input", item.get("arguments")))
    return "" if item.get("type") in ("thinking", "redacted_thinking", "reasoning") else _text(item)


def _call(name: str, args: Any) -> str:
    """A call of a tool of the agent's own."""
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return f"{name} {args}"
    if isinstance(args, Mapping) and len(args) == 1:
        [only] = args.values()
        return f"{name}: {only if isinstance(only, str) else json.dumps(only, ensure_ascii=False)}"
    return f"{name} {json.dumps(args, ensure_ascii=False)}" if args else name


def _streamed(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """The pieces of a stream: texts that grow, calls with arguments that grow, or a response at its end."""
    texts: dict[str, str] = {}
    calls: dict[str, str] = {}
    for value in found:
        response = value.get("response")
        if isinstance(response, Mapping) and response.get("output"):
            return list(_whole(response))
        place = str(value.get("index", 0))
        block, delta = value.get("content_block"), value.get("delta")
        if isinstance(block, Mapping) and isinstance(block.get("name"), str):
            calls[place] = block["name"]
        if isinstance(delta, Mapping):
            grown = delta.get("text") or delta.get("partial_json") or ""
            texts[place] = texts.get(place, "") + str(grown)
        for choice in _items(value, "choices"):
            part = choice.get("delta")
            part = part if isinstance(part, Mapping) else {}
            texts["text"] = texts.get("text", "") + _text(part.get("content"))
            for call in _items(part, "tool_calls"):
                at, function = f"call {call.get('index', 0)}", call.get("function")
                function = function if isinstance(function, Mapping) else {}
                calls[at] = calls.get(at, "") + str(function.get("name") or "")
                texts[at] = texts.get(at, "") + str(function.get("arguments") or "")
    return [
        _call(calls[place], texts.get(place)) if place in calls else texts[place]
        for place in dict.fromkeys([*texts, *calls])
    ]


def _items(value: Mapping[str, Any], *names: str) -> Iterator[Mapping[str, Any]]:
    for name in names:
        listed = value.get(name)
        yield from (one for one in (listed if isinstance(listed, list) else []) if isinstance(one, Mapping))
