"""Messages that other programs send: pushes of a source's repository, and what sets triggers off. A signature
stands in the place of a token."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from spakweb.api import shapes_incoming as shapes
from spakweb.api.base import View
from spakweb.bodies import HOOK_BYTES, too_long
from spakweb.errors import Refused
from spakweb.folders.pushes import pushed
from spakweb.incoming import actions
from spakweb.incoming.actions import Message, Outcome, State
from spakweb.incoming.models import Receiver
from spakweb.incoming.payloads import PUSHED
from spakweb.teams import bearer
from spakweb.triggers import actions as triggers

PING = "ping"
"""The event that GitHub sends when the webhook is added."""


@method_decorator(login_not_required, name="dispatch")
class Receive(View):
    """Messages of GitHub, GitLab, and senders of Standard Webhooks."""

    authentication_classes: Any = ()
    permission_classes: Any = ()
    throttle_classes: Any = ()
    http_method_names: ClassVar = ["post"]

    @extend_schema(
        operation_id="receive_webhook",
        request={"application/json": OpenApiTypes.OBJECT},
        responses={200: shapes.ReceivedShape},
        auth=[],
    )
    def post(self, request: Request, key: str) -> HttpResponseBase:
        """Take a signed message. One that was done before is answered and not done again."""
        asked = request._request
        body = _body(asked)
        headers = {name.lower(): value for name, value in asked.headers.items()}
        try:
            done = actions.receive(key, headers, body, _handle, _pointers)
        except Refused as why:
            late = bearer.too_often(asked) if why.status == 401 else None
            if late is None:
                raise
            return late
        return Response(
            {"state": str(done.state), "reason": done.reason, "run": done.run.key if done.run else None}
        )


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
