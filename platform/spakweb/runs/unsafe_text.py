"""Signs that no text should hold, and ledgers do: what models, tools and imports put out is kept as it came.

NUL may not be in text and JSON of a database (PostgreSQL refuses both): `plain` gives a value to show, with
its picture in its place; `demand` refuses what a person sends. `visible` is for short names that people give.
`reveal` makes all others seen, also those of no width. The middleware `Seen` does so in every page about
runs, `revealing` in what a view gives: who approves must not read a text in another order than it has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from spakweb.errors import Refused

PICTURE = "\u2400"
_SIGNS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ud800-\udfff\U000e0000-\U000e007f]"
    "|(?<=[!-~])[\u200c\u200d]|[\u200c\u200d](?=[!-~])"
)
"""Those that join letters are part of scripts and pictures; beside ASCII they hide in a word."""
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
        return _revealed(response) if of_runs else response


def revealing(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """The same view, where the signs of its page are seen. Not for pages whose form sends a text back."""

    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
        return _revealed(view(request, *args, **named))

    return shown


def _revealed(response: HttpResponseBase) -> HttpResponseBase:
    page = str(response.headers.get("Content-Type", "")).startswith("text/html")
    if page and not response.streaming and "Content-Disposition" not in response.headers:
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
