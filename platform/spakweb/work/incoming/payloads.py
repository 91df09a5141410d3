"""What a message says: `read(body)` gives its JSON, `at(payload, path)` what a JSON pointer names in
it, `pushed(payload)` the ref and the commit of a push. Pure.

Members that are not known are left alone: senders add some in every version. Source: RFC 6901.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import orjson

from spakweb.ground.errors import Refused
from spakweb.ground.text import one_line

MISSING: Any = object()
"""What a pointer gives that names nothing."""
POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
LONGEST = 200
FORM = b"payload="
"""How a form begins, as no JSON does. The header with the type is not signed, so it is not asked."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")


PUSHED = ("/ref", "/after")
"""Where a push names its ref and its commit."""


@dataclass(frozen=True, slots=True)
class Push:
    """A ref that was moved, and the commit that it is at now; empty where the message does not say so."""

    ref: str = ""
    commit: str = ""
    deleted: bool = False


def read(body: bytes) -> Any:
    """The JSON of a message; of a form, as GitHub may send it, that of its `payload`.

    Raises: Refused `web.hook_body`.
    """
    if body.startswith(FORM):
        try:
            fields = parse_qs(body.decode("ascii"), strict_parsing=True, max_num_fields=4)
            body = fields["payload"][0].encode("utf-8", "surrogatepass")
        except (ValueError, KeyError) as error:
            raise _no_json("it is a form without a payload") from error
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _no_json(str(error)[:100]) from error


def _no_json(why: str) -> Refused:
    return Refused("web.hook_body", f"The message is not JSON in UTF-8: {one_line(why, 100)}.", "", 400)


def pointer(text: str) -> str:
    """A JSON pointer as it is written. Raises: Refused `web.trigger_pointer`."""
    found = text.strip()
    if not POINTER.fullmatch(found) or len(found) > LONGEST or not found.isprintable():
        words = f"{found[:60]!r} is no JSON pointer."
        raise Refused("web.trigger_pointer", words, "/pull_request/number, /commits/0/id", 422)
    return found


def at(payload: Any, path: str) -> Any:
    """What a pointer names; MISSING where there is nothing."""
    for word in path.split("/")[1:]:
        name = word.replace("~1", "/").replace("~0", "~")
        if isinstance(payload, dict):
            payload = payload.get(name, MISSING)
        elif isinstance(payload, list) and _INDEX.match(name) and int(name) < len(payload):
            payload = payload[int(name)]
        else:
            return MISSING
    return payload


def pushed(payload: Any, ref_at: str, commit_at: str) -> Push:
    """The ref and the commit that a message names at these pointers. Zeros for a commit: the ref is gone."""
    ref, commit = at(payload, ref_at), at(payload, commit_at)
    name = one_line(ref, 255) if isinstance(ref, str) else ""
    digest = commit.lower() if isinstance(commit, str) and _COMMIT.match(commit.lower()) else ""
    return Push(
        name if name == ref else "", digest.strip("0") and digest, bool(digest) and not digest.strip("0")
    )
