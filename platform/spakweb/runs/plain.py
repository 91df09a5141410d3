"""NUL: a line of the ledger may hold it, text and JSON of a database may not (PostgreSQL refuses both).

`plain` gives a value to show, with its picture in its place; `demand` refuses what a person sends. `visible`
is for short names that people give.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from spakweb.errors import Refused

PICTURE = "\u2400"
T = TypeVar("T")


def plain(value: T) -> T:
    """The same JSON without NUL."""
    text = value if isinstance(value, str) else json.dumps(value)
    return _without(value) if "\0" in text or "\\u0000" in text else value


def demand(*values: Any) -> None:
    """Raises: Refused `web.text` when one of them holds a NUL."""
    sent = list(values)
    if plain(sent) != sent:
        raise Refused("web.text", "The text holds a NUL character.", "Take it out.")


def visible(text: str) -> str:
    """On one line, without what cannot be seen: control characters, marks that turn its direction."""
    return " ".join("".join(one for one in text if one.isprintable() or one.isspace()).split())


def _without(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\0", PICTURE)
        case dict():
            return {_without(key): _without(item) for key, item in value.items()}
        case list() | tuple():
            return [_without(item) for item in value]
    return value
