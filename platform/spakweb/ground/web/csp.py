"""The Content-Security-Policy header, from the setting SECURE_CSP.

The names are those of Django 6, so that this file can go. Scripts and styles come from this host only; a page
that must let a library write a style (the editor) uses `request.csp_nonce`, and only that page's answer
carries the nonce.
"""

from __future__ import annotations

import secrets
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject, empty

HEADER = "Content-Security-Policy"


class ContentSecurityPolicy:
    """Sends the policy of what a page may load."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        request.csp_nonce = SimpleLazyObject(lambda: secrets.token_urlsafe(16))
        if iscoroutinefunction(self):
            return self._later(request)
        return self._sign(request, self.get_response(request))

    async def _later(self, request: HttpRequest) -> HttpResponse:
        return self._sign(request, await self.get_response(request))

    def _sign(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        nonce = request.csp_nonce
        used = str(nonce) if nonce._wrapped is not empty else ""
        response.headers.setdefault(HEADER, policy(settings.SECURE_CSP, used))
        return response


def policy(directives: dict[str, list[str]], nonce: str = "") -> str:
    """The header's value; a nonce is for styles."""
    parts = []
    for name, sources in directives.items():
        more = [f"'nonce-{nonce}'"] if nonce and name == "style-src" else []
        parts.append(" ".join([name, *sources, *more]))
    return "; ".join(parts)
