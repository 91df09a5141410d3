"""Inputs of a run out of a message: `texts(known, mapping, payload)`.

`known` are the inputs that the version declares. A value has the type that is declared: a number of JSON is
no text, and a text is read as the command line reads it (`"5"` is a number where one is declared). What the
message does not have, or has as null, is left to the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spakweb.ground.errors import Refused
from spakweb.work.incoming.payloads import MISSING, at

LONGEST = 64 << 10
"""Characters of one input."""


def texts(known: Mapping[str, Any], mapping: Mapping[str, str], payload: Any) -> dict[str, str]:
    """The inputs as texts. Raises: Refused `web.trigger_input`."""
    found: dict[str, str] = {}
    for name, path in mapping.items():
        item, value = known[name], at(payload, path)
        if value is MISSING or value is None:
            if item.required:
                raise _wrong(f"The message has nothing at {path}, which the input {name} needs.")
            continue
        if wanted := item.problem(item.read(value)):
            raise _wrong(f"The input {name} wants {wanted}; the message has {_kind(value)} at {path}.")
        text = value if isinstance(value, str) else _text(value)
        if len(text) > LONGEST:
            raise _wrong(f"What the message has at {path} is longer than {LONGEST:,} characters.")
        found[name] = text
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _kind(value: Any) -> str:
    """The type of a JSON value, in words; never the value itself."""
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "another text", list: "a list"}
    return kinds.get(type(value), "an object")


def _wrong(message: str) -> Refused:
    hint = "Change the message, or the trigger's pointers."
    return Refused("web.trigger_input", message, hint, 422)
