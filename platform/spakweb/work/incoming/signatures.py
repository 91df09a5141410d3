"""Signatures of messages that come in: `judge(headers, body, secrets, now_s)` says whether one holds, and why
not. Pure.

Three forms, the first of which a message has counts: Standard Webhooks (GitLab's signing tokens are of this
form), which signs id, time and body; GitHub's, which signs the body alone; GitLab's secret token, which is
the secret itself. Each comparison takes the same time whatever differs.
Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md,
https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries,
https://docs.gitlab.com/user/project/integrations/webhooks/
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

PREFIX = "whsec_"
STANDARD = "webhook-signature"
"""The header of Standard Webhooks, the first that counts."""
TOLERANCE_S = 300
"""By how much the time of a message may differ from ours."""
LONGEST, MOST = 2000, 10
"""Characters of a header, and signatures in one."""
LONGEST_ID = 100
NOT_IN_ID = frozenset('."=')
"""Characters that an id of Standard Webhooks must not have. Without them `id.time.body` can be read in one
way alone, and is neither JSON nor a form. That matters because the text of the secret is a key of GitHub's
form too, where the signed text is the whole body."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether the signature of a message holds. `why` says what is wrong; `late` that it held once."""

    holds: bool
    why: str = ""
    late: bool = False
    known_by: str = ""
    """What is covered by the signature and no other message has; empty where it does not hold."""
    message: str = ""
    """The id of the message, as its sender gave it; empty for none."""
    event: str = ""
    """What a header says, which no form signs."""


def judge(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now_s: float) -> Judged:
    """Headers by their small names."""
    if STANDARD in headers:
        return _standard(headers, body, secrets, now_s)
    if "x-hub-signature-256" in headers:
        return _github(headers, body, secrets)
    if "x-gitlab-token" in headers:
        return _gitlab(headers, body, secrets)
    return Judged(False, "It has no signature.")


def _standard(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now_s: float) -> Judged:
    message, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    given = headers[STANDARD]
    if not _plain(message, LONGEST_ID) or not NOT_IN_ID.isdisjoint(message):
        return Judged(False, f'Its webhook-id is missing, or longer than {LONGEST_ID}, or has a . " or =.')
    if not (at.isascii() and at.isdigit() and len(at) <= 12):
        return Judged(False, "It has no webhook-timestamp in seconds.")
    signed = f"{message}.{at}.".encode() + body
    good = [
        f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"
        for secret in secrets
        for key in _keys(secret)
    ]
    if not _one_of(given.split(" ") if len(given) <= LONGEST else [], good):
        return Judged(False, "Its signature is wrong.")
    event = headers.get("x-gitlab-event", "")[:LONGEST_ID]
    apart = round(now_s - int(at))
    if abs(apart) > TOLERANCE_S:
        words = (
            f"Its time is {abs(apart)} seconds {'ago' if apart > 0 else 'ahead'}; {TOLERANCE_S} are taken."
        )
        return Judged(False, words, True, "", message, event)
    return Judged(True, "", False, message, message, event)


def _github(headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> Judged:
    good = [f"sha256={hmac.new(secret.encode(), body, 'sha256').hexdigest()}" for secret in secrets]
    if not _one_of([headers["x-hub-signature-256"][:LONGEST]], good):
        return Judged(False, "Its signature is wrong.")
    message = headers.get("x-github-delivery", "")
    event = headers.get("x-github-event", "")[:LONGEST_ID]
    return Judged(True, "", False, _hash(body), message if _plain(message, LONGEST_ID) else "", event)


def _gitlab(headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> Judged:
    if not _one_of([headers["x-gitlab-token"][:LONGEST]], secrets):
        return Judged(False, "Its token is wrong.")
    message = headers.get("idempotency-key") or headers.get("x-gitlab-event-uuid", "")
    message = message if _plain(message, LONGEST_ID) else ""
    event = headers.get("x-gitlab-event", "")[:LONGEST_ID]
    return Judged(True, "", False, message or _hash(body), message, event)


def _keys(secret: str) -> Iterator[bytes]:
    """The bytes that a secret of Standard Webhooks stands for; a sender may take its text as it is."""
    yield secret.encode()
    try:
        yield base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        return


def _one_of(given: Sequence[str], good: Sequence[str]) -> bool:
    found = False
    for one in given[:MOST]:
        for other in good:
            found |= hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())
    return found


def _plain(text: str, most: int) -> bool:
    return 0 < len(text) <= most and text.isascii() and text.isprintable()


def _hash(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
