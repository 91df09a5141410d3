"""Values too long for a record: out into blobs on the way in, back into text on the way out.

`{"$blob": sha, "size": n, "head": text}` stands for a long text, `{"$text": [parts]}` for text with such
values inside. The kernel carries both untouched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.errors import RunError
from spak.kernel.rules import INLINE, MAX_FILLED
from spak.ports import Blobs

MAX_EXPANDED = 2 * MAX_FILLED
"""Bytes of the blobs that one value is expanded with: what the kernel bounds is less."""
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
    """A JSON value with every reference in it replaced by its text.

    Raises: RunError `run.text_too_long`; what `blobs.get` raises.
    """
    room = MAX_EXPANDED

    def expanded(value: Any) -> Any:
        nonlocal room
        if isinstance(value, Mapping):
            if "$blob" in value:
                data = blobs.get(value["$blob"])
                room -= len(data)
                if room < 0:
                    raise RunError(
                        "run.text_too_long",
                        f"the texts of one step come to more than {MAX_EXPANDED >> 20} MiB",
                        "use a long variable less often in one step",
                    )
                return data.decode("utf-8", "replace")
            if "$text" in value:
                return "".join(str(expanded(part)) for part in value["$text"])
            return {name: expanded(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [expanded(item) for item in value]
        return value

    return expanded(value)
