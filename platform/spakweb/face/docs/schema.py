"""The schema of the API as it ships (docs/openapi.yaml, which a test compares with the code), for programs.

Gives its text as YAML, or as JSON to who asks for it by `?format=json` or by `Accept`. It is read once.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import orjson
import yaml
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import condition, require_safe

from spak import data
from spakweb.ground.access import by_token

YAML, JSON = "application/yaml", "application/json"


@cache
def text() -> bytes:
    """The schema as YAML."""
    return data.path("docs/openapi.yaml").read_bytes()


@cache
def document() -> dict[str, Any]:
    """The schema, read."""
    found: dict[str, Any] = yaml.load(text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


@cache
def _as_json() -> bytes:
    return orjson.dumps(document())


def _kind(request: HttpRequest) -> str:
    asked = request.GET.get("format", "")
    if asked in ("json", "yaml"):
        return JSON if asked == "json" else YAML
    return JSON if request.get_preferred_type([YAML, JSON]) == JSON else YAML


def etag(request: HttpRequest) -> str:
    """The ETag of the form of the schema that a request gets."""
    return f'"{hashlib.sha256(text()).hexdigest()[:32]}-{_kind(request)[12:]}"'


@by_token
@login_not_required
@require_safe
@condition(etag_func=etag)
def schema(request: HttpRequest) -> HttpResponse:
    """The whole schema."""
    kind = _kind(request)
    return HttpResponse(_as_json() if kind == JSON else text(), content_type=kind)
