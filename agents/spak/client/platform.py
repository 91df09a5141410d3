"""The API of a platform as Python: bring files, start a run, wait for it, read its records and its report.

Takes an address and a token; gives documents of docs/openapi.yaml. A request without an answer is sent again
a few times: each of them is idempotent (a start has an Idempotency-Key). Redirects are never followed, and a
token goes over plain HTTP only to this machine. Source: docs/ci.md.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import IO, Any, Self
from urllib.parse import quote, urlsplit

import httpx

from spak.errors import UnavailableError, UsageError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
TRIES = 6
LONGEST_PAUSE_S = 20.0
WAIT_S = 60
"""Seconds that one request waits for news; the platform allows no more."""
SLACK_S = 30.0
_LATER = frozenset({429, 502, 503, 504})


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
            return cls(**given, document=document)
        except (KeyError, TypeError) as error:
            raise _reply(f"a run without {error}") from error


class Platform:
    """A platform at `url`, for whoever the token is of. A context manager; `close` ends its connections."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        """Raises: UsageError `client.url`, `client.insecure`, `client.token`."""
        self.url, self.token = origin(url), token
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            hint = "spak login URL, or put it into SPAK_TOKEN; the account page makes one"
            raise UsageError("client.token", "there is no usable token", hint)
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=httpx.Timeout(WAIT_S + SLACK_S, connect=SLACK_S),
            transport=transport,
        )

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
        return found if isinstance(found, list) else []

    def bring(self, team: str, spec: str, archive: IO[bytes], name: str = "files.zip") -> str:
        """Bring a zip for runs of a spec; gives the hash that a start names."""
        archive.seek(0)
        found = self._ask(
            "POST", f"{_spec(team, spec)}files/", content=archive.read(), params={"name": name},
            headers={"Content-Type": "application/zip"},
        )  # fmt: skip
        return str(found.get("hash", ""))

    def start(
        self, team: str, spec: str, *, version: int | None = None, tag: str | None = None,
        files: str | None = None, inputs: Mapping[str, str] | None = None, labels: Sequence[str] = (),
        mode: str | None = None, backend: str | None = None, queue: str | None = None, key: str | None = None,
    ) -> RemoteRun:  # fmt: skip
        """Start a run of a version, of a tag, or of the newest version. `key` makes a repeated call give the
        run of the first one; without it this call alone is protected."""
        given: dict[str, Any] = {
            "version": version,
            "tag": tag,
            "files": files,
            "inputs": dict(inputs or {}) or None,
        }
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
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise _reply("no list of records")
        return rows, found.get("next") is not None

    def follow(self, team: str, run: str, until: float | None = None) -> Iterator[RemoteRun | dict[str, Any]]:
        """Each record as it comes, then the run: once it has ended, waits for somebody or is paused, or at
        `until` (time.monotonic)."""
        after, more = -1, True
        while more:
            left = WAIT_S if until is None else int(min(WAIT_S, until - time.monotonic()))
            rows, more = self.records(team, run, after, max(left, 0))
            yield from rows
            after = rows[-1]["seq"] if rows else after
            seen = self.get(team, run)
            stopped = seen.state in ("waiting", "paused") and seen.records <= after + 1
            if stopped or (until is not None and time.monotonic() >= until):
                yield seen
                return
        yield self.get(team, run)

    def junit(self, team: str, run: str) -> bytes:
        """The report as JUnit XML."""
        return self._send("GET", f"{_run(team, run)}junit.xml", headers={"Accept": "*/*"}).content

    def cancel(self, team: str, run: str) -> RemoteRun:
        """Ask that the run be cancelled."""
        return RemoteRun.of(self._ask("POST", f"{_run(team, run)}cancel/"))

    def _ask(self, method: str, path: str, **about: Any) -> dict[str, Any]:
        reply = self._send(method, path, **about)
        try:
            found = reply.json()
        except ValueError as error:
            raise _reply("it is no JSON") from error
        if not isinstance(found, dict):
            raise _reply("it is no JSON object")
        if "code" in found and "detail" in found:  # a long poll that lost its run: its answer had begun
            raise UsageError(
                str(found["code"]), str(found["detail"]), "the run, the team or the token is gone"
            )
        return found

    def _send(self, method: str, path: str, **about: Any) -> httpx.Response:
        """The answer.

        Raises: UnavailableError `unavailable.platform`, `client.reply`; UsageError with the platform's code.
        """
        trouble, wait = "", 0.5
        for left in reversed(range(TRIES)):
            try:
                reply = self._http.request(method, path, **about)
            except httpx.HTTPError as error:
                trouble = str(error) or type(error).__name__
            else:
                if reply.status_code not in _LATER:
                    return _accepted(reply)
                trouble = f"it answers {reply.status_code}"
                after = reply.headers.get("Retry-After", "")
                wait = float(after) if after.isdigit() else wait
            if left:
                time.sleep(min(wait, LONGEST_PAUSE_S))
                wait *= 2
        hint = "check the address and whether the platform runs: /healthz says so"
        raise UnavailableError("unavailable.platform", f"no answer of {self.url}: {trouble}", hint)


def origin(url: str) -> str:
    """Scheme, host, port and path of a platform's address, without a slash at its end.

    Raises: UsageError `client.url`, `client.insecure`.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    odd = parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("http", "https") or not host or odd:
        raise UsageError(
            "client.url", f"{url!r} is no address of a platform", "for example https://spak.example.org"
        )
    if parts.scheme == "http" and host not in LOOPBACK:
        raise UsageError("client.insecure", f"a token would go unencrypted to {host}", "use https://")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _accepted(reply: httpx.Response) -> httpx.Response:
    if reply.is_success:
        return reply
    try:
        found = reply.json()
    except ValueError:
        found = {}
    found = found if isinstance(found, dict) else {}
    code, message = str(found.get("code") or "client.reply"), found.get("detail") or found.get("title")
    if reply.status_code >= 500 or not found:
        raise _reply(f"it answers {reply.status_code}")
    raise UsageError(
        code, str(message or f"the platform answers {reply.status_code}"), str(found.get("hint") or "")
    )


def _reply(why: str) -> UnavailableError:
    hint = "is this the address of a SPAK platform, of this version or a newer one?"
    return UnavailableError("client.reply", f"the answer of the platform cannot be used: {why}", hint)


def _spec(team: str, spec: str) -> str:
    return f"teams/{quote(team, safe='')}/specs/{quote(spec, safe='')}/"


def _run(team: str, run: str) -> str:
    return f"teams/{quote(team, safe='')}/runs/{quote(run, safe='')}/"
