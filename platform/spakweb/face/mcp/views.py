"""`/mcp`: the platform as a server of MCP, one JSON answer to each POST.

Takes a request with a token of the API; gives what `tools` offers to the person of that token, as the SDK's
adapter (spak.mcp.sdk_server) speaks it. Host, size and token are checked as for every address; here are the
rate, which is that of the API, and the Origin. There are no sessions: any process may answer the next call.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from spak import __version__
from spak.mcp import sdk_server
from spakweb.face.api.limits import Limit
from spakweb.face.mcp.tools import LOOKING, Specs
from spakweb.ground.access import CHALLENGE, by_token
from spakweb.ground.web.error_pages import program_answer
from spakweb.ground.web.origins import elsewhere

CALL = "tools/call"
MOST_BYTES = 1 << 20
"""Of a request."""


@login_not_required
@csrf_exempt
async def answer(request: HttpRequest) -> HttpResponse:
    """The answer to one message of the protocol."""
    user: Any = await request.auser()
    if (refused := await sync_to_async(_refused)(request, user)) is not None:
        return refused
    await sync_to_async(sdk_server.load, thread_sensitive=False)()
    reply = await sdk_server.answer(
        "spak", __version__, Specs(request, user), "POST", request.path, request.headers, request.body
    )
    headers = {"Content-Type": "text/plain", "Cache-Control": "no-store"}
    headers |= {key.title(): value for key, value in reply.headers.items() if key.lower() != "content-length"}
    return HttpResponse(reply.body, status=reply.status, headers=headers)


by_token(answer, writes=True)


def _refused(request: HttpRequest, user: Any) -> HttpResponse | None:
    if not getattr(user, "token", None):
        hint = "Make a token on the account page and send it: Authorization: Bearer spak_..."
        fields = {"code": "web.signed_out", "message": "This needs a token.", "hint": hint}
        return program_answer(request, fields, 401, {"WWW-Authenticate": CHALLENGE})
    if elsewhere(request):
        fields = {
            "code": "web.mcp_origin",
            "message": "A page of another origin asks.",
            "hint": "The operator names it in SPAK_WEB_ORIGINS.",
        }
        return program_answer(request, fields, 403)
    if request.method != "POST":
        fields = {"code": "web.405", "message": "A message is sent by POST.", "hint": ""}
        return program_answer(request, fields, 405, {"Allow": "POST"})
    try:
        fits = len(request.body) <= MOST_BYTES
    except RequestDataTooBig:
        fits = False
    if not fits:
        fields = {"code": "web.text_size", "message": "The request is too large.", "hint": "Send less."}
        return program_answer(request, fields, 413)
    return _too_often(request, user)


def _too_often(request: HttpRequest, user: Any) -> HttpResponse | None:
    """The answer where the rate of the API is used up: what does something counts as a write."""
    asked = SimpleNamespace(method="POST" if _acts(request.body) else "GET", user=user, auth=user.token)
    limit = Limit()
    if limit.allow_request(cast("Any", asked), cast("Any", None)):
        return None
    wait = int(limit.wait() or 60) + 1
    fields = {"code": "web.rate", "message": "Too many requests.", "hint": f"Wait {wait} s."}
    return program_answer(request, fields, 429, {"Retry-After": str(wait), **asked.limit})


def _acts(body: bytes) -> bool:
    """Whether a message is a call of a tool that does something; also where it cannot be read."""
    try:
        message = json.loads(body)
        return bool(message["method"] == CALL and message["params"]["name"] not in LOOKING)
    except (ValueError, LookupError, TypeError, RecursionError):
        return True
