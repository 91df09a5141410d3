"""What readers may ask of every answer: a page of a list, only some members (`fields=`), and none when
nothing changed (ETag).

`asked` reads the parameters of a query as an operation declares them, `known` refuses all others, `paged`
gives a page with the address of the next, `chosen` cuts an answer down to the members that the query names;
of a list those of its items. `validated` gives an answer its ETag, and an empty 304 where the reader has it
already. Source: RFC 9110, section 13.1.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.serializers import ListSerializer, Serializer

from spak import canon
from spakweb.face.api.documents import Page
from spakweb.ground.errors import Refused
from spakweb.ground.text import as_number

NAME = "fields"
PAGE = 100
"""Rows of a page of a list."""
LONGEST, MOST = 200, 999_999_999
"""Characters of a text in a query, and the largest number."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def asked(request: Request, parameters: Sequence[OpenApiParameter]) -> dict[str, Any]:
    """The parameters of the query, by the types and choices that they are declared with; empty ones are left
    out.

    Raises: Refused `web.filter`, also for one that the address does not know: a program would take all rows
    for those that it meant.
    """
    known(request, parameters)
    given = dict(request.query_params.items())
    return {one.name: _read(one, given[one.name]) for one in parameters if given.get(one.name)}


def known(request: Request, parameters: Sequence[OpenApiParameter]) -> None:
    """Check the names in the query, not the values. Raises: Refused `web.filter`."""
    names = [one.name for one in parameters if one.location == OpenApiParameter.QUERY]
    unknown = sorted(request.query_params.keys() - {*names, NAME})
    if unknown:
        hint = f"Known: {', '.join((*names, NAME))}."
        raise Refused("web.filter", f"There is no parameter {unknown[0][:60]!r}.", hint)


def _read(parameter: OpenApiParameter, text: str) -> Any:
    name = parameter.name
    if CONTROL.search(text) or len(text) > LONGEST:
        hint = f"At most {LONGEST} characters, none of them a control character."
        raise Refused("web.filter", f"{name} cannot be used.", hint)
    if parameter.enum is not None and text not in parameter.enum:
        known = ", ".join(str(one) for one in parameter.enum)
        raise Refused("web.filter", f"There is no {name} {text[:40]!r}.", f"Known: {known}.")
    if parameter.type is not int:
        return text
    number = as_number(text)
    if number is None:
        raise Refused("web.filter", f"{name} is not a whole number of at most nine digits.", f"{name}=1")
    return number


def paged(request: Request, rows: QuerySet, query: Mapping[str, Any], cursor: str, by: str) -> Page:
    """A page of rows in the order of the column `by`: with the cursor `before` the last ones first, and those
    before its value; with `after` the first ones first, and those after it."""
    backwards = cursor == "before"
    if (place := query.get(cursor)) is not None:
        rows = rows.filter(**{f"{by}__{'lt' if backwards else 'gt'}": place})
    return page_of(request, rows.order_by(f"-{by}" if backwards else by), cursor, attrgetter(by))


def page_of(request: Request, rows: QuerySet, cursor: str, place: Callable[[Any], Any]) -> Page:
    """The first rows, and the address of the next ones, in which `cursor` is the `place` of the last one."""
    found = list(rows[: PAGE + 1])
    if len(found) <= PAGE:
        return Page(found)
    query = {**request.query_params.dict(), cursor: str(place(found[PAGE - 1]))}
    return Page(found[:PAGE], request.build_absolute_uri(f"{request.path}?{urlencode(query)}"))


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
