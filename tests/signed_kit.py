"""Messages of webhooks as their senders sign them: GitHub, GitLab with a token, and Standard Webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
from datetime import datetime
from typing import Any

from django.test import Client

from spakweb.ground import clock

_numbers = itertools.count(1)


def new_id() -> str:
    """An id that no message had yet."""
    return f"delivery-{next(_numbers)}"


def github(secret: str, body: bytes, event: str = "push", message: str = "") -> dict[str, str]:
    return {
        "x-github-event": event,
        "x-github-delivery": message or new_id(),
        "x-hub-signature-256": f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}",
    }


def gitlab(secret: str, body: bytes, event: str = "Push Hook", message: str = "") -> dict[str, str]:
    return {"x-gitlab-event": event, "x-gitlab-token": secret, "idempotency-key": message or new_id()}


def standard(
    secret: str, body: bytes, event: str = "", message: str = "", at: datetime | None = None
) -> dict[str, str]:
    key, message = base64.b64decode(secret.removeprefix("whsec_")), message or new_id()
    stamp = int((at or clock.now()).timestamp())
    signed = f"{message}.{stamp}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    more = {"x-gitlab-event": event} if event else {}
    return {
        "webhook-id": message, "webhook-timestamp": str(stamp), "webhook-signature": f"v1,{signature}", **more
    }  # fmt: skip


FORMS = {"github": github, "gitlab": gitlab, "standard": standard}


def push(ref: str = "refs/heads/main", commit: str = "a" * 40, **more: Any) -> bytes:
    return json.dumps({"ref": ref, "before": "b" * 40, "after": commit, **more}).encode()


def post(address: str, body: bytes, headers: dict[str, str], kind: str = "application/json") -> Any:
    return Client(headers=headers).post(address, body, content_type=kind)
