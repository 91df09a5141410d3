"""What all views of the API share: who asks, what a body may be, errors as problem documents.

`problem` turns what a view raises into a document of RFC 9457; what it does not know is left to the handlers
of the whole platform.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from spak.errors import UserError
from spakweb.face.api import strict
from spakweb.face.api.limits import Limit
from spakweb.face.api.reading import chosen, validated
from spakweb.ground.access import CHALLENGE
from spakweb.ground.errors import Refused
from spakweb.ground.text import json_object
from spakweb.ground.web.error_pages import program_answer


class ByToken(BaseAuthentication):
    """The person of the token that the middleware read (work/teams/bearer.py)."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """The person and the token; None where none was sent."""
        user = request._request.user
        return (user, user.token) if user.is_authenticated and user.token else None

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401."""
        return CHALLENGE


class Json(BaseParser):
    """A JSON object in UTF-8, as long as a text may be."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        """Raises: Refused `web.request`, `web.text_size`."""
        try:
            data = stream.body if isinstance(stream, HttpRequest) else stream.read()
        except RequestDataTooBig as error:
            raise Refused("web.text_size", "The request is too large.", "Send less.", 413) from error
        return json_object(data)


class OnlyJson(BaseContentNegotiation):
    """JSON whatever is asked for: there is one form of each answer."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """The parser of what was sent; None, so a 415, for another kind."""
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        return next((one for one in parsers if one.media_type == kind), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """The one renderer."""
        return renderers[0], renderers[0].media_type


class View(APIView):
    """A view of the API: JSON in, JSON out."""

    authentication_classes: Any = (ByToken, SessionAuthentication)
    permission_classes: Any = (IsAuthenticated,)
    throttle_classes: Any = (Limit,)
    parser_classes: Any = (Json,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = OnlyJson
    http_method_names: ClassVar = ["get", "head", "post"]
    answers: type[Serializer] | None = None
    """The document that GET gives, whose members `fields` may name."""
    name = ""
    """Of its address."""
    around: Callable[..., Any] | None = None
    """What takes the view and gives one that answers later."""

    def get_exception_handler(self) -> Any:
        """Problem documents, whatever a setting says."""
        return problem

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """The answer with its limits, the fields that were asked for, and its ETag."""
        reads = request.method in ("GET", "HEAD") and isinstance(response, Response)
        if reads and response.status_code == 200:
            try:
                response.data = chosen(request.query_params, self.answers, response.data)
            except Refused as why:
                response = self.handle_exception(why)
        response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in getattr(request, "limit", {}).items():
            response[name] = value
        if reads and not response.has_header("Cache-Control"):
            response["Cache-Control"] = "private, no-cache"
        if isinstance(response, Response) and reads:
            response.add_post_render_callback(partial(validated, request._request))
        return response

    def given(self, request: Request, serializer: type[Serializer]) -> dict[str, Any]:
        """The body, checked. Raises: Refused `web.request` with the member and what is wrong with it."""
        read = serializer(data=request.data)
        strict.fits(read, request.data, typed=request.content_type == "application/json")
        if not read.is_valid():
            name, why = next(iter(read.errors.items()))
            raise Refused("web.request", f"{name}: {_first(why)}", strict.HINT, 422)
        return dict(read.validated_data)


class OpenView(View):
    """A view that nobody need be signed in for: what it takes says by itself whose it is."""

    authentication_classes = ()
    permission_classes: Any = ()
    throttle_classes: Any = ()
    http_method_names: ClassVar = ["post"]


def _first(why: Any) -> str:
    while isinstance(why, list | dict):
        why = next(iter(why.values() if isinstance(why, dict) else why), "")
    return str(why)


def problem(error: Exception, context: dict[str, Any]) -> JsonResponse | None:
    """The answer to what a view raised; None for what is not a client's doing."""
    request: HttpRequest = context["request"]._request
    headers: dict[str, str] = {}
    more: dict[str, Any] = {}
    if isinstance(error, Refused):
        fields, status, more = error.to_json(), error.status, getattr(error, "more", {})
        headers |= getattr(error, "headers", {})
    elif isinstance(error, UserError) and error.code.startswith(("web.", "run.", "lang.", "edit.")):
        fields, status = {"code": error.code, "message": error.message, "hint": error.hint}, 409
    elif isinstance(error, Http404):
        fields, status = {"code": "web.404", "message": "There is nothing here, or it is not yours."}, 404
    elif isinstance(error, PermissionDenied):
        fields, status = {"code": "web.403", "message": str(error)[:300] or "You may not do that."}, 403
    elif isinstance(error, exceptions.Throttled):
        wait = int(error.wait or 60) + 1
        fields, status = {"code": "web.rate", "message": "Too many requests.", "hint": f"Wait {wait} s."}, 429
        headers["Retry-After"] = str(wait)
    elif isinstance(error, exceptions.NotAuthenticated):
        hint = "Make a token on the account page and send it: Authorization: Bearer spak_..."
        fields = {"code": "web.signed_out", "message": "This needs a token.", "hint": hint}
        status, headers = 401, {"WWW-Authenticate": CHALLENGE}
    elif isinstance(error, exceptions.APIException):
        status = error.status_code
        fields = {"code": f"web.{status}", "message": _first(error.detail)}
    else:
        return None
    return program_answer(request, fields, status, headers, more)
