"""Signs that no text should hold, and ledgers do: what models, tools and imports put out is kept as it came.

NUL may not be in text and JSON of a database (PostgreSQL refuses both): `plain` gives a value to show, with
its picture in its place; `demand` refuses what a person sends. `visible` is for short names that people give.
`reveal` makes all others seen, also those of no width (spak.unseen). The middleware `Seen` does so in every
page: who approves must not read a text in another order than it has. In pages about runs, and in what a view
gives that is `revealing`, it does so everywhere, else not in tags and in what a form or a script sends back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import orjson
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from spak.unseen import SIGNS
from spakweb.ground.errors import Refused

PICTURE = "\u2400"
_SENT_BACK = re.compile(
    r"(<textarea\b.*?</textarea>|<script\b.*?</script>|<style\b.*?</style>|<[^>]*>)",
    re.DOTALL | re.IGNORECASE,
)
_PAGES = ("spak-run", "spak-team-home", "spak-fleet")
T = TypeVar("T")


def without_nul(value: T) -> T:
    """The same JSON without NUL."""
    if isinstance(value, str):
        return _each(value, _pictured)
    return _each(value, _pictured) if b"\\u0000" in plain_json(value) else value


def storable(value: T) -> T:
    """The same JSON as every database takes it: also without lone surrogates."""
    return _each(value, lambda text: _pictured(text).encode(errors="replace").decode())


def plain_json(value: Any) -> bytes:
    """The value as JSON, for databases: by orjson, and by json where that refuses it (lone surrogates, large
    integers). Raises: TypeError, ValueError where it is no JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


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
    return SIGNS.sub(_picture, text)


def reveal_around_tags(page: str) -> str:
    """The same of what a page shows; what its forms and scripts send back stays as it is."""
    parts = _SENT_BACK.split(page)
    parts[::2] = map(reveal, parts[::2])
    return "".join(parts)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20 or code == 0x7F:
        return chr(0x2400 + code) if code < 0x20 else "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\u27e8U+{code:04X}\u27e9"


class Seen:
    """Middleware of all pages; files go out as they are."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        match = request.resolver_match
        of_runs = match is not None and str(match.url_name).startswith(_PAGES)
        return _revealed(response, reveal if of_runs else reveal_around_tags)


def revealing(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """The same view, where the signs of its page are seen. Not for pages whose form sends a text back."""

    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
        return _revealed(view(request, *args, **named), reveal)

    return shown


def _revealed(response: HttpResponseBase, how: Callable[[str], str]) -> HttpResponseBase:
    page = str(response.headers.get("Content-Type", "")).startswith("text/html")
    as_it_is = {"Content-Disposition", "Content-Encoding"} & set(response.headers)
    if page and not response.streaming and not as_it_is:
        text = response.content.decode()
        if SIGNS.search(text):
            response.content = how(text).encode()
    return response


def _pictured(text: str) -> str:
    return text.replace("\0", PICTURE)


def _each(value: Any, change: Callable[[str], str]) -> Any:
    """The value with all of its texts changed."""
    match value:
        case str():
            return change(value)
        case dict():
            return {_each(key, change): _each(item, change) for key, item in value.items()}
        case list() | tuple():
            return [_each(item, change) for item in value]
    return value
