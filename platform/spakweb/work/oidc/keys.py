"""The public keys of issuers: fetched, judged, kept for an hour in this process.

Takes an issuer and the id of a key; gives the key as the issuer publishes it. Only issuers that a rule names
are asked. The address is looked up once, judged by its kind (SPAK_WEB_OIDC_REACH) and connected to; no
redirect is followed; keys are taken from the issuer's own host alone. An id that is not known leads to one
more look, at most one a minute for each issuer, however many ask. Keys are never kept where others write: who
could write a shared cache could sign. Source: OpenID Connect Discovery 1.0; RFC 7517.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from spak.policy import urls
from spak.ports import Call
from spak.tools.http_request import HttpRequest
from spak.tools.observe.paths import resolve
from spakweb.ground.errors import Refused

KEPT_S = 3600.0
AGAIN_S = 60.0
"""So long an issuer is not asked again, whatever came of it."""
TIMEOUT_S, MAX_BYTES, MOST_KEYS = 5.0, 256 << 10, 100
WELL_KNOWN = "/.well-known/openid-configuration"


@dataclass(slots=True)
class _Known:
    """What is known of an issuer. Times are of time.monotonic()."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    asked_at: float | None = None
    good_until: float = 0.0
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    trouble: Refused | None = None


_issuers: dict[str, _Known] = {}


def key_of(issuer: str, kid: str) -> dict[str, Any]:
    """The key as a JWK. Raises: Refused `web.oidc_issuer`, `web.oidc_token` for an id that it has not."""
    known = _issuers.setdefault(issuer, _Known())
    with known.lock:
        now = time.monotonic()
        if not (now < known.good_until and kid in known.keys):
            if known.asked_at is None or now - known.asked_at >= AGAIN_S:
                _refresh(issuer, known, now)
            if known.trouble is not None:
                raise known.trouble
        if kid in known.keys:
            return known.keys[kid]
    raise Refused("web.oidc_token", "The issuer has no such key.", "Ask for a new id token.", 401)


def forget() -> None:
    """Forget all keys."""
    _issuers.clear()


def _refresh(issuer: str, known: _Known, now: float) -> None:
    """Ask the issuer; what was known stays until its hour is over."""
    known.asked_at = now
    try:
        known.keys = _fetched(issuer)
        known.good_until, known.trouble = now + KEPT_S, None
    except Refused as why:
        known.trouble = why


def _fetched(issuer: str) -> dict[str, dict[str, Any]]:
    about = _json(issuer.rstrip("/") + WELL_KNOWN)
    if about.get("issuer") != issuer:
        raise _trouble("its configuration names another issuer")
    address = about.get("jwks_uri")
    if not isinstance(address, str) or _place(address) != _place(issuer):
        raise _trouble("its keys are on another host")
    found = _json(address).get("keys")
    rows = found[:MOST_KEYS] if isinstance(found, list) else []
    return {
        row["kid"]: row
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("kid"), str) and row.get("use", "sig") == "sig"
    }


def _place(address: str) -> tuple[str, str, int] | None:
    found = urls.parse(address)
    return None if isinstance(found, urls.Trouble) else (found.scheme, found.host, found.port)


def _json(address: str) -> dict[str, Any]:
    place = _place(address)
    host = place[1] if place else ""
    call = Call(
        "oidc", "http_request", {"url": address, "max_bytes": MAX_BYTES, "timeout_s": TIMEOUT_S},
        workspace=Path(), launcher=None, observed={"hosts": [[host, list(resolve(host))]]},
        reach=tuple(settings.OIDC_REACH),
    )  # fmt: skip
    done = HttpRequest().run(call)
    if done.key.get("status") != 200:
        said = done.diagnostics[0]["message"] if done.diagnostics else f"it answers {done.key.get('status')}"
        raise _trouble(str(said)[:200])
    try:
        found = json.loads(done.output.partition(b"\n\n")[2])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _trouble("its answer is not JSON object")
    return found


def _trouble(why: str) -> Refused:
    return Refused(
        "web.oidc_issuer", f"The issuer's keys cannot be had: {why}.", "Try again in a minute.", 503
    )
