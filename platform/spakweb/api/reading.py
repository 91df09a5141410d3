"""What readers may ask of every answer: a page of a list, only some members (`fields=`), and none when
nothing changed (ETag).

`asked` gives the parameters of a query that an address knows, `page_of` a page with the address of the next,
`chosen` cuts an answer down to the members that the query names; of a list those of its items. `validated`
gives an answer its ETag, and an empty 304 where the reader has it already. Source: RFC 9110, section 13.1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from rest_framework.request import Request
from rest_framework.serializers import ListSerializer, Serializer

from spak import canon
from spakweb.errors import Refused
from spakweb.text import as_number

NAME = "fields"
PAGE = 100
"""Rows of a page of a list."""


def asked(request: Request, *names: str) -> dict[str, str]:
    """The parameters of the query, empty ones left out. Raises: Refused `web.filter` for one that the address
    does not know: a program would take all rows for those that it meant."""
    given = dict(request.query_params.items())
    unknown = sorted(given.keys() - {*names, NAME})
    if unknown:
        hint = f"Known: {', '.join((*names, NAME))}."
        raise Refused("web.filter", f"There is no parameter {unknown[0][:60]!r}.", hint)
    odd = [name for name in names if not given.get(name, "").isprintable() or len(given.get(name, "")) > 200]
    if odd:
        raise Refused("web.filter", f"{odd[0]} cannot be used.", "At most 200 printable characters.")
    return {name: given[name] for name in names if given.get(name)}


def asked_number(given: Mapping[str, str], name: str) -> int | None:
    """A parameter that is a whole number; None where it is not given. Raises: Refused `web.filter`."""
    if name not in given:
        return None
    found = as_number(given[name])
    if found is None:
        raise Refused("web.filter", f"{name} is not a whole number of at most nine digits.", f"{name}=1")
    return found


def page_of(
    request: Request, rows: Sequence[Any], cursor: str, place: Callable[[Any], Any], size: int = 0
) -> tuple[list[Any], str | None]:
    """The first rows, and the address of those after them, in which `cursor` is the `place` of the last one;
    None where `rows` has no more. Take one row more than a page has."""
    size = size or PAGE
    if len(rows) <= size:
        return list(rows), None
    query = {**request.query_params.dict(), cursor: str(place(rows[size - 1]))}
    return list(rows[:size]), request.build_absolute_uri(f"{request.path}?{urlencode(query)}")


def chosen(query: Mapping[str, str], answers: type[Serializer] | None, body: Any) -> Any:
    """The answer, or as much of it as the query names. Raises: Refused `web.fields`."""
    wanted = query.get(NAME)
    if wanted is None or answers is None or not isinstance(body, dict):
        return body
    named, known = [word.strip() for word in wanted.split(",")], answers().fields
    lists = [(name, one.child.fields) for name, one in known.items() if isinstance(one, ListSerializer)]
    whole = "next" in known or len(known) == 1
    names = lists[0][1] if lists and whole else known
    unknown = [word for word in named if word not in names]
    if unknown:
        hint = f"Known: {', '.join(names)}."
        raise Refused("web.fields", f"There is no field {unknown[0][:60]!r}.", hint, 422)
    if not (lists and whole):
        return {name: body[name] for name in known if name in named and name in body}
    list_ = lists[0][0]
    items = [{name: item[name] for name in names if name in named and name in item} for item in body[list_]]
    return {**body, list_: items}


def validated(request: HttpRequest, response: HttpResponse) -> HttpResponse | None:
    """An answer that was written gets its ETag; instead of one that the reader has, an empty 304."""
    if response.status_code != 200 or request.method not in ("GET", "HEAD"):
        return None
    if not response.has_header("ETag"):
        response["ETag"] = f'"{canon.digest(response.content)}"'
    found: Any = get_conditional_response(request, etag=response["ETag"], response=response)
    return None if found is response else _unchanged(response, found)


def _unchanged(response: HttpResponse, found: HttpResponse) -> HttpResponse:
    for name in ("RateLimit", "RateLimit-Policy"):
        if response.has_header(name):
            found[name] = response[name]
    return found
