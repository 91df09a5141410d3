"""Messages that other programs send: pushes of a source's repository, and what sets triggers off. A signature
stands in the place of a token."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from spakweb.face.api.json_view import OpenView
from spakweb.face.api.operations import post
from spakweb.face.api.shapes import incoming as shapes
from spakweb.ground.errors import Refused
from spakweb.ground.web.bodies import HOOK_BYTES, too_long
from spakweb.store.incoming.models import Receiver
from spakweb.work.folders.incoming_pushes import pushed
from spakweb.work.incoming import actions
from spakweb.work.incoming.actions import Message, Outcome, State
from spakweb.work.incoming.payloads import PUSHED
from spakweb.work.teams import bearer
from spakweb.work.triggers import actions as triggers

PING = "ping"
"""The event that GitHub sends when the webhook is added."""


@post(
    "spak-hook-receive", "hooks/<str:key>/", base=OpenView,
    takes={"application/json": OpenApiTypes.OBJECT}, gives=shapes.ReceivedShape,
)  # fmt: skip
def receive_webhook(request: Request, key: str) -> Any:
    """Take a signed message. One that was done before is answered and not done again."""
    asked = request._request
    headers = {name.lower(): value for name, value in asked.headers.items()}
    body = _body(asked)
    try:
        return actions.receive(key, headers, body, _handle, _pointers)
    except Refused as why:
        late = bearer.too_often(asked) if why.status == 401 else None
        if late is None:
            raise
        return late


def _body(asked: HttpRequest) -> bytes:
    """The bytes that were signed. Raises: Refused `web.hook_size`."""
    length = asked.headers.get("Content-Length") or "0"
    body = asked.read(HOOK_BYTES + 1) if length.isdigit() and int(length[:20]) <= HOOK_BYTES else None
    if body is None or len(body) > HOOK_BYTES:
        problem = too_long(HOOK_BYTES)
        raise Refused(problem["code"], problem["detail"], problem["hint"], 413)
    return bytes(body)


def _pointers(receiver: Receiver) -> tuple[str, str]:
    return PUSHED if receiver.source_id else triggers.pointers(receiver)


def _handle(receiver: Receiver, message: Message) -> Outcome:
    if message.event == PING:
        return Outcome(State.DONE, "The address and the secret are right.")
    return pushed(receiver, message) if receiver.source_id else triggers.fire(receiver, message)
