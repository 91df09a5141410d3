"""The API of a platform as Python: bring files, start a run, wait for it, read its records and its report.

Takes an address and a token; gives documents of docs/openapi.yaml. A request without an answer is sent again
a few times: each of them is idempotent (a start has an Idempotency-Key). Redirects are never followed, and a
token goes over plain HTTP only to this machine. Source: docs/ci.md.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import IO, Any, Self, get_type_hints
from urllib.parse import quote, urlsplit

import httpx

from spak.errors import UnavailableError, UsageError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
TRIES = 6
LONGEST_PAUSE_S = 20.0
WAIT_S = 60
"""Seconds that one request waits for news; the platform allows no more."""
SLACK_S = 30.0
MAX_BYTES = 256 << 20
"""Of an answer: 500 records, or a report."""
MAX_TEXT = 2000
"""Characters of a message of the platform."""
MAX_TOKEN, MAX_KEY = 4096, 200
_LATER = frozenset({429, 502, 503, 504})
_BUSY = "web.idempotency_busy"


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run of a platform as it was when one asked (RunShape); `document` has all of it."""

    key: str
    team: str
    spec: str | None
    version: int | None
    state: str
    ended: bool
    reason: str
    why: str
    task: str
    asks: str
    records: int
    html_url: str
    document: Mapping[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """From an answer. Raises: UnavailableError `client.reply`."""
        try:
            given = {one.name: document[one.name] for one in fields(cls) if one.name != "document"}
        except KeyError as error:
            raise _reply(f"a run without {error}") from error
        kinds = get_type_hints(cls)
        for name, value in given.items():
            if not isinstance(value, kinds[name]):
                raise _reply(f"the {name} of a run has another type")
        return cls(**given, document=document)


class Platform:
    """A platform at `url`, for whoever the token is of. A context manager; `close` ends its connections."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        """Raises: UsageError `client.url`, `client.insecure`, `client.token`; UnavailableError
        `unavailable.platform` for a proxy of the environment that cannot be used."""
        self.url, self.token = origin(url), token
        if not 0 < len(token) <= MAX_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            hint = "spak login URL, or put it into SPAK_TOKEN; the account page makes one"
            raise UsageError("client.token", "there is no usable token", hint)
        try:
            self._http = httpx.Client(
                base_url=f"{self.url}/api/v1/",
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
                timeout=httpx.Timeout(WAIT_S + SLACK_S, connect=SLACK_S),
                transport=transport,
                trust_env=self.url.startswith("https:"),  # no proxy reads a token
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            hint = "http:// and https:// proxies can be used: HTTPS_PROXY, ALL_PROXY"
            raise UnavailableError(
                "unavailable.platform", "the proxy of the environment cannot be used", hint
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def teams(self) -> list[dict[str, Any]]:
        """The teams that the token reaches."""
        found = self._ask("GET", "teams/").get("teams")
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise _reply("no list of teams")
        return found

    def bring(self, team: str, spec: str, archive: IO[bytes], name: str = "files.zip") -> str:
        """Bring a zip for runs of a spec; gives the hash that a start names."""
        found = self._ask(
            "POST", f"{_spec(team, spec)}files/", content=archive, params={"name": name},
            headers={"Content-Type": "application/zip"},
        )  # fmt: skip
        return str(found.get("hash", ""))

    def start(
        self, team: str, spec: str, *, version: int | None = None, tag: str | None = None,
        files: str | None = None, inputs: Mapping[str, str] | None = None, labels: Sequence[str] = (),
        mode: str | None = None, backend: str | None = None, queue: str | None = None, key: str | None = None,
        source: str | None = None, ref: str | None = None,
    ) -> RemoteRun:  # fmt: skip
        """Start a run of a version, of a tag, or of the newest version. `key` makes a repeated call give the
        run of the first one; without it this call alone is protected. With a `source` of the team the
        platform fetches the files, at a ref or at the usual one.

        Raises: UsageError `usage.arguments` for a key that is not 1 to 200 printable ASCII characters.
        """
        if key and not (len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
            hint = f"1 to {MAX_KEY} printable ASCII characters, such as a UUID"
            raise UsageError("usage.arguments", f"{key!r} cannot be an idempotency key", hint)
        given: dict[str, Any] = {
            "version": version,
            "tag": tag,
            "files": files,
            "inputs": dict(inputs or {}) or None,
        }
        if source is not None:
            given["source"] = {"name": source, **({"ref": ref} if ref else {})}
        given |= {"labels": list(labels) or None, "mode": mode, "backend": backend, "queue": queue}
        body = {name: value for name, value in given.items() if value is not None}
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        return RemoteRun.of(self._ask("POST", f"{_spec(team, spec)}runs/", json=body, headers=headers))

    def get(self, team: str, run: str, wait_s: int = 0) -> RemoteRun:
        """A run; with `wait_s` as soon as it has ended or needs somebody, or after so many seconds."""
        params = {"wait": min(wait_s, WAIT_S)} if wait_s else None
        return RemoteRun.of(self._ask("GET", _run(team, run), params=params))

    def records(
        self, team: str, run: str, after: int = -1, wait_s: int = 0
    ) -> tuple[list[dict[str, Any]], bool]:
        """Records after a seq, at most 500, and whether more can come."""
        params = {"after": after, **({"wait": min(wait_s, WAIT_S)} if wait_s else {})}
        found = self._ask("GET", f"{_run(team, run)}records/", params=params)
        rows = found.get("records")
        if not isinstance(rows, list):
            raise _reply("no list of records")
        for row in rows:
            seq = row.get("seq") if isinstance(row, dict) else None
            if type(seq) is not int or seq <= after:
                raise _reply("no record, or one out of its order")
            after = seq
        return rows, found.get("next") is not None

    def follow(self, team: str, run: str, until: float | None = None) -> Iterator[RemoteRun | dict[str, Any]]:
        """Each record as it comes, then the run: once it has ended, waits for somebody or is paused, or at
        `until` (time.monotonic)."""
        after = -1
        while True:
            left = WAIT_S if until is None else int(min(WAIT_S, until - time.monotonic()))
            rows, more = self.records(team, run, after, max(left, 0))
            yield from rows
            after = rows[-1]["seq"] if rows else after
            seen = self.get(team, run)
            stopped = seen.state in ("waiting", "paused") and seen.records <= after + 1
            if stopped or not more or (until is not None and time.monotonic() >= until):
                yield seen
                return
            if not rows:  # a platform with too many who wait answers at once
                time.sleep(1.0)

    def junit(self, team: str, run: str) -> bytes:
        """The report as JUnit XML."""
        return self._send("GET", f"{_run(team, run)}junit.xml", headers={"Accept": "*/*"})

    def cancel(self, team: str, run: str) -> RemoteRun:
        """Ask that the run be cancelled."""
        return RemoteRun.of(self._ask("POST", f"{_run(team, run)}cancel/"))

    def _ask(self, method: str, path: str, **about: Any) -> dict[str, Any]:
        found = _object(self._send(method, path, **about))
        if not found:
            raise _reply("it is no JSON object")
        if "code" in found and "detail" in found:  # a long poll that lost its run: its answer had begun
            raise _refused(found, "the run, the team or the token is gone")
        return found

    def _send(self, method: str, path: str, **about: Any) -> bytes:
        """The body of the answer.

        Raises: UnavailableError `unavailable.platform`, `client.reply`; UsageError with the platform's code,
        or `usage.arguments` for text that is not UTF-8.
        """
        trouble, wait = "", 0.5
        for left in reversed(range(TRIES)):
            try:
                status, body, after = self._once(method, path, **about)
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
        raise UnavailableError("unavailable.platform", f"no answer of {self.url}: {trouble}", hint)

    def _once(self, method: str, path: str, **about: Any) -> tuple[int, bytes, str]:
        """Status, body and Retry-After of one answer."""
        if "content" in about:
            about["content"].seek(0)
        body = bytearray()
        with self._http.stream(method, path, **about) as reply:
            for piece in reply.iter_bytes():
                body += piece
                if len(body) > MAX_BYTES:
                    raise _reply(f"it is longer than {MAX_BYTES} bytes")
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
            f"{url.rpartition('@')[2]!r} is no address of a platform",
            "for example https://spak.example.org",
        )
    if parts.scheme == "http" and host not in LOOPBACK:
        raise UsageError("client.insecure", f"a token would go unencrypted to {host}", "use https://")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _accepted(status: int, body: bytes) -> bytes:
    if 200 <= status < 300:
        return body
    found = _object(body)
    if status >= 500 or not found:
        raise _reply(f"it answers {status}")
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


def _reply(why: str) -> UnavailableError:
    hint = "is this the address of a SPAK platform, of this version or a newer one?"
    return UnavailableError("client.reply", f"the answer of the platform cannot be used: {why}", hint)


def _spec(team: str, spec: str) -> str:
    return f"teams/{quote(team, safe='')}/specs/{quote(spec, safe='')}/"


def _run(team: str, run: str) -> str:
    return f"teams/{quote(team, safe='')}/runs/{quote(run, safe='')}/"
