"""Signatures of webhooks, as Standard Webhooks 1.0 has them: HMAC-SHA256 over `id.timestamp.body`.

A webhook's secret is derived from the platform's key and the webhook's salt, so that a copy of the database
alone signs nothing. A new salt is a new secret; for a while the one before signs too.
Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime

from django.conf import settings

from spakweb.store.hooks.models import Webhook

PREFIX = "whsec_"


def secret_of(salt: str) -> str:
    """The secret as the receiver keeps it: `whsec_` and base64 of 32 bytes."""
    key = hmac.digest(settings.SECRET_KEY.encode(), b"spak webhook\0" + salt.encode(), "sha256")
    return PREFIX + base64.b64encode(key).decode()


def signature(secret: str, message: str, timestamp: int, body: bytes) -> str:
    """`v1,` and base64 of the HMAC."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(webhook: Webhook, message: str, now: datetime, body: bytes) -> dict[str, str]:
    """The headers of one attempt."""
    salts = [webhook.salt]
    if webhook.old_salt and webhook.old_until is not None and now < webhook.old_until:
        salts.append(webhook.old_salt)
    at = int(now.timestamp())
    return {
        "webhook-id": message,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(signature(secret_of(salt), message, at, body) for salt in salts),
        "content-type": "application/json",
    }
