"""A bound on what a request may bring, for all pages, before any of it is read.

Django spools the whole body of a request to disk before a view sees it, however long it is. `Bounded` answers
413 in words to a request that says that it is longer than `REQUEST_BYTES`, and to one that does not say how
long it is as soon as more has come. Messages of webhooks, which anybody may send, have a bound of their own.
A fault of the host that no page answered, as where a body cannot be spooled, is answered 507.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings

from spakweb.ground import host_faults
from spakweb.ground.web import error_pages

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


HOOKS = "/api/v1/hooks/"
HOOK_BYTES = 4 << 20
"""Of a message of a webhook."""


class _TooLong(Exception):
    pass


class Bounded:
    """Refuses requests whose body is too large before it is read."""

    def __init__(self, app: App, most: int = 0) -> None:
        self.app = app
        self.most = most or settings.REQUEST_BYTES

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        hook = str(scope.get("path", "")).startswith(HOOKS)
        most = min(self.most, HOOK_BYTES) if hook else self.most
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > most:
            await _refuse(send, most, hook)
            return
        came = 0
        begun = False

        async def bounded() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > most:
                raise _TooLong
            return message

        async def heard(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, bounded, heard)
        except _TooLong:
            if not begun:
                await _refuse(send, most, hook)
        except Exception as error:
            if begun or not host_faults.is_fault(error):
                raise
            log.error("%s: %s", scope.get("path", ""), error)
            why = error_pages.not_writable(error)
            problem = {"code": why.code, "message": why.message, "hint": why.hint}
            await _answer(send, why.status, b"application/json", json.dumps(problem))


async def _refuse(send: Send, most: int, hook: bool) -> None:
    kind, text = (
        b"text/plain; charset=utf-8",
        (
            f"This is more than {most >> 20} MiB, the most that one request may bring. "
            "Nothing of it was kept. Leave out what the run does not need (SPAK_WEB_RUN_FILES_MB).\n"
        ),
    )
    if hook:
        kind, text = b"application/problem+json", json.dumps(too_long(most))
    await _answer(send, 413, kind, text)


async def _answer(send: Send, status: int, kind: bytes, text: str) -> None:
    headers = [(b"content-type", kind), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


def too_long(most: int) -> dict[str, Any]:
    """The problem of a message that is too long. Source: RFC 9457."""
    return {
        "type": "urn:spak:error:web.hook_size",
        "title": "That is too large",
        "status": 413,
        "detail": f"A message has at most {most >> 20} MiB.",
        "code": "web.hook_size",
        "hint": "Report fewer events in one message.",
    }
