"""Credentials of sources: sealed in the database, opened by a worker that needs them.

The key is derived from the platform's (SPAK_WEB_SECRET_KEY), so that a copy of the database alone opens
nothing. A deploy key is made here: its private half never leaves the platform.
"""

from __future__ import annotations

import base64
import hmac

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from spak.errors import RunError


def seal(secret: str) -> str:
    """As the database keeps it; empty for nothing."""
    return _box().encrypt(secret.encode()).decode() if secret else ""


def unseal(sealed: str) -> str:
    """Raises: RunError `git.sealed` where it was sealed with another key."""
    if not sealed:
        return ""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except (InvalidToken, ValueError) as error:
        raise RunError(
            "git.sealed",
            "the source's credentials were sealed with another key of the platform",
            "an admin of the team gives new ones on the page Sources",
        ) from error


def deploy_key(comment: str) -> tuple[str, str]:
    """A new pair: the private half as OpenSSH reads it, and the public one in a line."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), f"{public.decode()} {comment}"


def _box() -> Fernet:
    key = hmac.digest(settings.SECRET_KEY.encode(), b"spak credentials of sources", "sha256")
    return Fernet(base64.urlsafe_b64encode(key))
