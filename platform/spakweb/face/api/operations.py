"""Operations of the API: a function for each method of an address, which `get` and `post` enter in the table.

A decorator names the address and what the operation takes and gives; from it come the view, the schema (its
operationId is the function's name, its description the docstring) and the answer. The function decides and
acts. It takes the request, the parts of the address, `query` (the parameters, read) and `body` (a function
that gives what was sent, checked: call it when the rights are clear). It gives a row for the document; or a
function without arguments, which is called once for each Idempotency-Key; or an `Answer`; or a response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponseBase
from django.urls import URLPattern, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb.face.api.documents import Address, Document
from spakweb.face.api.idempotency import once
from spakweb.face.api.json_view import OpenView, View
from spakweb.face.api.reading import asked, known
from spakweb.ground.access import by_token

Query = OpenApiParameter
Act = TypeVar("Act", bound=Callable[..., Any])
TEAM = "teams/<slug:team>/"
SPEC = f"{TEAM}specs/<slug:spec>/"
RUN = f"{TEAM}runs/<str:run>/"
"""Where addresses begin."""
VIEWS: dict[str, type[View]] = {}
"""The view of each address."""


@dataclass(frozen=True)
class Answer:
    """A row with another status than usual, or with headers; `kept` is what of it may be kept for a repeated
    request, where that is less."""

    row: Any
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Operation:
    """What a decorator says."""

    act: Callable[..., Any]
    gives: Any
    takes: Any
    status: int
    query: Sequence[OpenApiParameter] | None
    parameters: Sequence[OpenApiParameter] = ()
    method: str = "get"
    filters: bool = False
    """Whether the act itself refuses what it does not know in the query."""

    def __call__(self, view: View, request: Request, **here: Any) -> HttpResponseBase:
        """The answer to a request."""
        if self.query is not None:
            here["query"] = asked(request, self.query)
        elif self.method == "get" and not self.filters:
            known(request, self.parameters)
        if self.takes is not None and not isinstance(self.takes, dict):
            here["body"] = partial(view.given, request, self.takes)
        result = self.act(request, **here)
        if callable(result) and not isinstance(result, HttpResponseBase):
            return once(request, lambda: self.answer(request, result()))
        return self.answer(request, result)

    def answer(self, request: Request, result: Any) -> HttpResponseBase:
        """What the act gave, as a response."""
        if isinstance(result, HttpResponseBase):
            return result
        whole = result if isinstance(result, Answer) else Answer(result)
        data: Any = self.gives.of(request, whole.row) if is_document(self.gives) else None
        status, headers = whole.status or self.status, dict(whole.headers)
        if status == 201 and isinstance(self.gives().fields.get("url"), Address):
            headers.setdefault("Location", data["url"])
        response = Response(data, status=status, headers=headers)
        if whole.kept is not None:
            response.kept = {**data, **whole.kept}
        return response


def is_document(gives: Any) -> bool:
    """Whether an operation gives a document, and no file."""
    return isinstance(gives, type) and issubclass(gives, Document)


def _operation(
    method: str, name: str, address: str, *, gives: Any = None, takes: Any = None, status: int = 200,
    also: Sequence[int] = (), query: Sequence[OpenApiParameter] | None = None,
    parameters: Sequence[OpenApiParameter] = (), around: Callable[..., Any] | None = None,
    base: type[View] = View, filters: bool = False, **view: Any,
) -> Callable[[Act], Act]:  # fmt: skip
    def enter(act: Act) -> Act:
        operation = Operation(act, gives, takes, status, query, parameters, method, filters)

        def answer(self: View, request: Request, **here: Any) -> HttpResponseBase:
            return operation(self, request, **here)

        answer.__doc__ = act.__doc__
        shape = gives if is_document(gives) else None
        said = dict.fromkeys((status, *also), shape) if shape or gives is None else gives
        made = VIEWS.setdefault(address, type("Operations", (base,), {"name": name, **view}))
        more: dict[str, Any] = {"request": takes} if method == "post" else {}
        if issubclass(made, OpenView):
            more["auth"] = []
        described = extend_schema(
            operation_id=act.__name__, responses=said, parameters=[*(query or ()), *parameters], **more
        )
        setattr(made, method, described(answer))
        if method == "get":
            made.answers = shape
        if around is not None:
            made.around = staticmethod(around)
        return act

    return enter


get = partial(_operation, "get")
post = partial(_operation, "post")


def patterns() -> Iterator[URLPattern]:
    """The addresses of all operations; a word before what stands for any word."""
    for address, view in sorted(VIEWS.items(), key=lambda one: one[0].replace("<", "~")):
        callback: Any = view.as_view()
        callback = view.around(callback) if view.around else callback
        enter = login_not_required if issubclass(view, OpenView) else partial(by_token, writes=True)
        yield path(address, enter(callback), name=view.name)
