"""Idempotency-Key: the same request with the same key is answered once.

`once(request, work)` does the work and keeps its answer in one transaction. The same key with another request
is refused, and so is one that comes while the first is under way: it may come again in a second.
Source: draft-ietf-httpapi-idempotency-key-header-07.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core.cache import cache
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from spak import canon
from spakweb.ground.database.lock_wait import locked, short_lock_wait
from spakweb.ground.errors import Refused
from spakweb.store.api.models import KeptAnswer

HEADER = "Idempotency-Key"
KEPT = timedelta(hours=24)
LONGEST = 200

UNDER_WAY_S = 60
"""After so many seconds nobody is believed to be at it still."""

Work = Callable[[], Response]


class Busy(Refused):
    """The first request with a key is under way."""

    def __init__(self) -> None:
        words = "A request with this Idempotency-Key is under way."
        super().__init__("web.idempotency_busy", words, "Send it again in a few seconds.", 409)
        self.headers = {"Retry-After": "1"}


def once(request: Request, work: Work) -> Response:
    """The answer of `work`, or the one that is kept; what `work` raises is kept for nobody. An answer with a
    secret says in `kept` what may be kept of it.

    Raises: Refused `web.idempotency_key`, `web.idempotency_body`, `web.idempotency_busy`.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return work()
    if not 0 < len(key) <= LONGEST or not key.isascii() or not key.isprintable():
        hint = f"1 to {LONGEST} printable ASCII characters, such as a UUID."
        raise Refused("web.idempotency_key", "The Idempotency-Key cannot be used.", hint)
    asker, digest = _asker(request), _digest(request)
    kept = KeptAnswer.objects.filter(asker=asker, key=key, made_at__gte=timezone.now() - KEPT)
    if (row := kept.first()) is not None:
        return _kept(row, digest)
    mark = f"api-once:{canon.content_hash([asker, key])}"
    if not cache.add(mark, 1, UNDER_WAY_S):
        raise Busy
    try:
        return _done(asker, key, digest, work)
    finally:
        cache.delete(mark)


def _done(asker: str, key: str, digest: str, work: Work) -> Response:
    """The answer of the work, kept; where two caches differ, the table's constraint decides."""
    try:
        with short_lock_wait():
            KeptAnswer.objects.filter(asker=asker, made_at__lt=timezone.now() - KEPT).delete()
            try:
                with transaction.atomic():
                    row = KeptAnswer.objects.create(asker=asker, key=key, request=digest)
            except IntegrityError:
                return _kept(KeptAnswer.objects.get(asker=asker, key=key), digest)
            made = work()
            row.status, row.body = made.status_code, getattr(made, "kept", made.data)
            row.headers = {name: made[name] for name in ("Location", "ETag") if made.has_header(name)}
            row.save(update_fields=["status", "body", "headers"])
            return made
    except DatabaseError as error:
        if not locked(error):
            raise
        raise Busy from error


def _kept(row: KeptAnswer, digest: str) -> Response:
    if not row.status:
        raise Busy
    if row.request != digest:
        raise Refused(
            "web.idempotency_body", "This Idempotency-Key belongs to another request.",
            "Use a new key for each request.", 422,
        )  # fmt: skip
    return Response(row.body, status=row.status, headers={**row.headers, "Idempotent-Replayed": "true"})


def _asker(request: Request) -> str:
    token: Any = request.user.token
    return f"{request.user.pk}:{token.pk if token else 0}"


def _digest(request: Request) -> str:
    body = canon.digest(request._request.body)
    return canon.content_hash(
        [request.method, request.get_full_path(), body, request.headers.get("If-Match", "")]
    )
