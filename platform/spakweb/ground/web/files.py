"""Static files: how they are named (with a hash in production, else as they are) and served."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):
    """Names with a hash and compressed twins; imports of ES modules are rewritten too."""

    support_js_module_import_aggregation = True

    def post_process(self, paths: dict[str, Any], *args: Any, **options: Any) -> Iterator[Any]:
        """All but those of django_htmx: only its middleware is used; its scripts import what is not there."""
        ours = {name: file for name, file in paths.items() if not name.startswith("django_htmx/")}
        yield from super().post_process(ours, *args, **options)


class PlainFiles(StaticFilesStorage):
    """Names as they are: no `collectstatic` before a start."""


class Files(WhiteNoiseMiddleware):
    """WhiteNoise that hands files over whole: its iterators are for WSGI, and ASGI warns of each of them. The
    largest file has some hundred kilobytes."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """A static file as a response of its own, whole."""
        response = WhiteNoiseMiddleware.serve(static_file, request)
        whole = HttpResponse(b"".join(response.streaming_content), status=response.status_code)
        whole.headers = response.headers
        response.close()
        return _compressed(whole, request)


TEXTS = ("text/", "application/javascript", "image/svg+xml")


def _compressed(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """As it is where `collectstatic` has made a compressed twin; else compressed once for each content."""
    kind = response.headers.get("Content-Type", "")
    if response.has_header("Content-Encoding") or response.status_code != 200 or not kind.startswith(TEXTS):
        return response
    patch_vary_headers(response, ("Accept-Encoding",))
    if "gzip" not in request.headers.get("Accept-Encoding", "") or request.method != "GET":
        return response
    response.content = _gzip(response.content)
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(response.content))
    if "ETag" in response.headers:
        response.headers["ETag"] = f"W/{response.headers['ETag'].removeprefix('W/')}"
    return response


@lru_cache(maxsize=64)
def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, 6, mtime=0)
