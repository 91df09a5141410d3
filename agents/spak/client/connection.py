"""A connection to a platform: requests that are sent again, answers that are bounded and checked.

Takes an origin and a token; gives the body of a good answer, or an error with the platform's code. Each
request is idempotent (a start has an Idempotency-Key), so that one without an answer is sent again a few
times. The calls are in platform.py. Source: docs/ci.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import urlsplit

import httpx

from spak.errors import UnavailableError, UsageError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
TRIES = 6
LONGEST_PAUSE_S = 20.0
WAIT_S = 60
"""Seconds that one request waits for news; the platform allows no more."""
SLACK_S = 30.0
MAX_BYTES = 256 << 20
"""Of an answer: 500 records, a report; and of a file, where its size is not known."""
MAX_TEXT = 2000
"""Characters of a message of the platform."""
MAX_TOKEN = 4096
_LATER = frozenset({429, 502, 503, 504})
_BUSY = "web.idempotency_busy"


class Connection:
    """Requests to the platform at `url`, with a token."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        """Raises: UsageError `client.url`, `client.insecure`, `client.token`; UnavailableError
        `unavailable.platform` for a proxy of the environment that cannot be used."""
        self.url = origin(url)
        settings = _settings(self.url, token)
        try:
            self._http = httpx.Client(transport=transport, **settings)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            hint = "http:// and https:// proxies can be used: HTTPS_PROXY, ALL_PROXY"
            raise UnavailableError(
                "unavailable.platform", "the proxy of the environment cannot be used", hint
            ) from error

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def ask(self, method: str, path: str, **about: Any) -> dict[str, Any]:
        """The JSON object of an answer. Raises: as `send`."""
        answer = _object(self.send(method, path, **about))
        if not answer:
            raise unusable("it is not JSON object")
        if "code" in answer and "detail" in answer:  # a long poll that lost its run: its answer had begun
            raise _refused(answer, "the run, the team or the token is gone")
        return answer

    def send(self, method: str, path: str, into: IO[bytes] | None = None, **about: Any) -> bytes:
        """The body of the answer, empty where it was written to `into`; `about` is what httpx takes besides.

        Raises: UnavailableError `unavailable.platform`, `client.reply`; UsageError with the platform's code,
        or `usage.arguments` for text that is not UTF-8.
        """
        trouble, wait = "", 0.5
        below = path if path.startswith("/") else f"/api/v1/{path}"
        for left in reversed(range(TRIES)):
            for stream in (about.get("content"), into):
                if stream is not None:
                    stream.seek(0)
            if into is not None:
                into.truncate()
            try:
                status, body, after = self._once(method, below, into, about)
            except httpx.HTTPError as error:
                trouble = str(error) or type(error).__name__
            except UnicodeEncodeError as error:
                hint = "inputs, labels and names are UTF-8"
                raise UsageError("usage.arguments", "a given text cannot be sent", hint) from error
            else:
                if status not in _LATER and not (status == 409 and _object(body).get("code") == _BUSY):
                    return _accepted(status, body)
                trouble = f"it answers {status}"
                wait = max(wait, float(after)) if after.isascii() and after.isdigit() else wait
            if left:
                time.sleep(min(wait, LONGEST_PAUSE_S))
                wait *= 2
        hint = "check the address and whether the platform runs: /healthz says so"
        raise UnavailableError("unavailable.platform", f"no answer of the platform: {trouble}", hint)

    def _once(
        self, method: str, path: str, into: IO[bytes] | None, about: Mapping[str, Any]
    ) -> tuple[int, bytes, str]:
        """Status, body and Retry-After of one request; the body of a good answer goes to `into`."""
        body, size = bytearray(), 0
        with self._http.stream(method, self.url + path, **about) as reply:
            target = into if into is not None and reply.is_success else None
            for piece in reply.iter_bytes():
                size += len(piece)
                if size > MAX_BYTES:
                    raise unusable(f"it is longer than {MAX_BYTES} bytes")
                if target is None:
                    body += piece
                else:
                    target.write(piece)
        return reply.status_code, bytes(body), reply.headers.get("Retry-After", "")


def origin(url: str) -> str:
    """Scheme, host, port and path of a platform's address, without a slash at its end.

    Raises: UsageError `client.url`, `client.insecure`.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        host, port, parts = None, None, urlsplit("")
    odd = parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("http", "https") or not host or odd:
        raise UsageError(
            "client.url",
            f"{url.rpartition('@')[2]!r} is not an address of a platform",
            "for example https://spak.example.org",
        )
    if parts.scheme == "http" and host not in LOOPBACK:
        raise UsageError("client.insecure", f"a token would go unencrypted to {host}", "use https://")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _settings(url: str, token: str) -> dict[str, Any]:
    """What a client of httpx is made with. Redirects are never followed, and a token goes over plain HTTP to
    this machine alone. Raises: UsageError `client.token`."""
    if not 0 < len(token) <= MAX_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        hint = "spak login URL, or put it into SPAK_TOKEN; the account page makes one"
        raise UsageError("client.token", "there is no usable token", hint)
    return {
        "headers": {"Authorization": f"Bearer {token}", "Accept": "application/json"},
        "timeout": httpx.Timeout(WAIT_S + SLACK_S, connect=SLACK_S),
        "trust_env": url.startswith("https:"),  # no proxy reads a token
    }


def _accepted(status: int, body: bytes) -> bytes:
    if 200 <= status < 300:
        return body
    found = _object(body)
    if status >= 500 or not found:
        raise unusable(f"it answers {status}")
    raise _refused({"code": "client.reply", "detail": f"the platform answers {status}"} | found, "")


def _refused(found: Mapping[str, Any], hint: str) -> UsageError:
    words = (found["code"], found["detail"], found.get("hint") or hint)
    return UsageError(*(str(word)[:MAX_TEXT] for word in words))


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer; empty where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def unusable(why: str) -> UnavailableError:
    """The error of an answer that is not what the schema says."""
    hint = "is this the address of a SPAK platform, of this version or a newer one?"
    return UnavailableError("client.reply", f"the answer of the platform cannot be used: {why}", hint)
