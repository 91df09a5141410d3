"""Signs that no text should hold, and ledgers do: what models, tools and imports put out is kept as it came.

NUL may not be in text and JSON of a database (PostgreSQL refuses both): `plain` gives a value to show, with
its picture in its place; `demand` refuses what a person sends. `visible` is for short names that people give.
`signs` makes all others seen, and the middleware `Seen` does so in every page about runs: who approves an
action must not read it in another order than it has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from spakweb.errors import Refused

PICTURE = "\u2400"
_SIGNS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_PAGES = ("spak-run", "spak-team-home", "spak-fleet")
T = TypeVar("T")


def without_nul(value: T) -> T:
    """The same JSON without NUL."""
    text = value if isinstance(value, str) else json.dumps(value)
    return _without(value) if "\0" in text or "\\u0000" in text else value


def require_no_nul(*values: Any) -> None:
    """Raises: Refused `web.text` when one of them holds a NUL."""
    sent = list(values)
    if without_nul(sent) != sent:
        raise Refused("web.text", "The text holds a NUL character.", "Take it out.")


def visible(text: str) -> str:
    """On one line, without what cannot be seen: control characters, marks that turn its direction."""
    return " ".join("".join(one for one in text if one.isprintable() or one.isspace()).split())


def reveal(text: str) -> str:
    """Control characters as their pictures, marks that turn the direction of a text by their numbers."""
    return _SIGNS.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20 or code == 0x7F:
        return chr(0x2400 + code) if code < 0x20 else "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\u27e8U+{code:04X}\u27e9"


class Seen:
    """Middleware of the pages about runs; files go out as they are."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        match = request.resolver_match
        of_runs = match is not None and str(match.url_name).startswith(_PAGES)
        page = str(response.headers.get("Content-Type", "")).startswith("text/html")
        if of_runs and page and not response.streaming and "Content-Disposition" not in response.headers:
            text = response.content.decode()
            if _SIGNS.search(text):
                response.content = reveal(text).encode()
        return response


def _without(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\0", PICTURE)
        case dict():
            return {_without(key): _without(item) for key, item in value.items()}
        case list() | tuple():
            return [_without(item) for item in value]
    return value
