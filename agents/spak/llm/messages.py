"""Prompt items as the messages of a chat, and schemas as engines that mask want them.

Neighbouring items of one role become one message, so that no engine's template complains; the text of the
items is sent as it is, and nothing is added to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.llm.settings import Choice
from spak.ports import Prompt

ROLES = frozenset({"system", "user", "assistant"})


def grouped(prompt: Prompt) -> list[tuple[str, list[tuple[int, str]]]]:
    """The items by message: its role, and each item's index and text; empty items are left out."""
    found: list[tuple[str, list[tuple[int, str]]]] = []
    for index, item in enumerate(prompt.items):
        if not item["text"]:
            continue
        role = item["role"] if item["role"] in ROLES else "user"
        if found and found[-1][0] == role:
            found[-1][1].append((index, item["text"]))
        else:
            found.append((role, [(index, item["text"])]))
    return found


def chat(prompt: Prompt) -> list[dict[str, str]]:
    """The messages as most engines take them. A prompt of system items alone is asked as the user."""
    found = [
        {"role": role, "content": "\n\n".join(text for _, text in parts)} for role, parts in grouped(prompt)
    ]
    if found and all(message["role"] == "system" for message in found):
        return [{**message, "role": "user"} for message in found]
    return found


def sampling(prompt: Prompt, choice: Choice) -> dict[str, Any]:
    """What the answer is drawn with: the configured parameters, the prompt's over them, and the limit."""
    return {**choice.params, **prompt.params, "max_tokens": prompt.max_tokens or choice.longest}


def masked(schema: Any) -> Any:
    """The schema with `additionalProperties: false` wherever an object does not say: a grammar made without
    it lets a small model invent members until its answer is cut.
    """
    if isinstance(schema, Mapping):
        found = {name: _inside(name, value) for name, value in schema.items()}
        if "properties" in found and "additionalProperties" not in found:
            found["additionalProperties"] = False
        return found
    return [masked(item) for item in schema] if _deep(schema) else schema


def closed(schema: Any, every: bool = False) -> bool:
    """Whether a schema says all that it allows: no free objects, no values of any kind.

    Only such a schema survives the makers' stricter dialects with its meaning; those would turn a free object
    into an empty one. `every`: each object also demands all of its members, as OpenAI's strict mode wants it.
    """
    if not isinstance(schema, Mapping) or not _KINDS & set(schema) or isinstance(schema.get("type"), list):
        return False
    if every and {"oneOf", "allOf"} & set(schema):
        return False
    members = schema.get("properties", {})
    if schema.get("type") == "object" and (not members or schema.get("additionalProperties") is not False):
        return False
    if every and set(members) != set(schema.get("required", ())):
        return False
    inner = [*members.values(), *schema.get("$defs", {}).values()]
    inner += [item for name in ("anyOf", "oneOf", "allOf") for item in schema.get(name, ())]
    inner += [schema["items"]] if "items" in schema else []
    return all(closed(item, every) for item in inner)


_KINDS = frozenset({"type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"})
_DATA = frozenset({"enum", "const", "default", "examples", "required"})
"""Members of a schema that hold values and no schemas."""


def _inside(name: str, value: Any) -> Any:
    if name in _DATA:
        return value
    if name in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
        return {member: masked(item) for member, item in value.items()}
    return masked(value)


def _deep(value: Any) -> bool:
    return isinstance(value, (list, tuple))
