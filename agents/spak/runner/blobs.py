"""Values too long for a record: out into blobs on the way in, back into text on the way out.

`{"$blob": sha, "size": n, "head": text}` stands for a long text, `{"$text": [parts]}` for text with such
values inside. The kernel carries both untouched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.kernel.rules import INLINE
from spak.ports import Blobs

_HEAD = 200


def keep(text: str, blobs: Blobs) -> Any:
    """The text itself, or a reference when it is longer than a variable may hold."""
    data = text.encode("utf-8", "replace")
    if len(data) <= INLINE:
        return data.decode("utf-8")
    return {"$blob": blobs.put(data), "size": len(data), "head": text[:_HEAD]}


def shrink(value: Any, blobs: Blobs) -> Any:
    """A JSON value with every long text in it replaced by a reference."""
    if isinstance(value, str):
        return keep(value, blobs)
    if isinstance(value, Mapping):
        return {name: shrink(item, blobs) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shrink(item, blobs) for item in value]
    return value


def expand(value: Any, blobs: Blobs) -> Any:
    """A JSON value with every reference in it replaced by its text."""
    if isinstance(value, Mapping):
        if "$blob" in value:
            return blobs.get(value["$blob"]).decode("utf-8", "replace")
        if "$text" in value:
            return "".join(str(expand(part, blobs)) for part in value["$text"])
        return {name: expand(item, blobs) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [expand(item, blobs) for item in value]
    return value
