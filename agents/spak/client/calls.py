"""What is asked of a platform and what its answers mean, without a connection.

Each call is a generator: it yields what is to be done (`Send` a request, `Pause`, `Show` an item), is given
the reply or the error of a request, and returns what the call gives. `Platform` does it. Each request is
idempotent (a start has an Idempotency-Key), so that one without an answer is sent again a few times.
Source: docs/ci.md.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import IO, Any, Self, TypeVar, get_type_hints
from urllib.parse import quote, urlsplit

import httpx

from spak.errors import UnavailableError, UsageError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
TRIES = 6
LONGEST_PAUSE_S = 20.0
WAIT_S = 60
"""Seconds that one request waits for news; the platform allows no more."""
UNSEEN = "web.token_imports"
"""The code of a refusal of what quotes specs that the token does not name."""
SLACK_S = 30.0
MAX_BYTES = 256 << 20
"""Of an answer: 500 records, a report; and of a file, where its size is not told."""
MAX_TEXT = 2000
"""Characters of a message of the platform."""
MAX_TOKEN, MAX_KEY = 4096, 200
_LATER = frozenset({429, 502, 503, 504})
_BUSY = "web.idempotency_busy"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """A request to be sent: its path stands below the platform's address."""

    method: str
    path: str
    about: Mapping[str, Any] = field(default_factory=dict)
    """What httpx is told besides: params, headers, json, content."""
    into: IO[bytes] | None = None
    """Where the body of a good answer goes; None: into the reply."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A time to wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Show:
    """An item for whoever follows a run."""

    item: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request; `after` is Retry-After."""

    status: int
    body: bytes
    after: str = ""


Steps = Generator[Send | Pause | Show, Reply | None, T]


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
            raise unusable(f"a run without {error}") from error
        kinds = get_type_hints(cls)
        for name, value in given.items():
            if not isinstance(value, kinds[name]):
                raise unusable(f"the {name} of a run has another type")
        return cls(**given, document=document)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that a run made or changed: its path in the workspace and how the platform calls it."""

    name: str
    key: str
    size: int | None


# ---- calls


def teams() -> Steps[list[dict[str, Any]]]:
    """The teams that the token reaches."""
    found = (yield from _ask("GET", "teams/")).get("teams")
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise unusable("no list of teams")
    return found


def bring(team: str, spec: str, archive: IO[bytes], name: str) -> Steps[str]:
    """Bring a zip for runs of a spec; gives the hash that a start names."""
    found = yield from _ask(
        "POST", f"{_spec(team, spec)}files/", content=archive, params={"name": name},
        headers={"Content-Type": "application/zip"},
    )  # fmt: skip
    return str(found.get("hash", ""))


@dataclass(frozen=True, slots=True)
class Start:
    """What a run is to begin with; what is None is as the platform has it."""

    version: int | None = None
    tag: str | None = None
    files: str | None = None
    inputs: Mapping[str, str] | None = None
    labels: Sequence[str] = ()
    mode: str | None = None
    backend: str | None = None
    queue: str | None = None
    key: str | None = None
    """Makes a repeated start give the run of the first one; without it this one alone is protected."""
    source: str | None = None
    """A source of the team, whose files the platform fetches."""
    ref: str | None = None
    prior: str | None = None
    """The id of a run of the team that a search begins with."""


def start(team: str, spec: str, wanted: Start) -> Steps[RemoteRun]:
    """Start a run of a version, of a tag, or of the newest version.

    Raises: UsageError `usage.arguments` for a key that is not 1 to 200 printable ASCII characters.
    """
    key = wanted.key
    if key and not (len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        hint = f"1 to {MAX_KEY} printable ASCII characters, such as a UUID"
        raise UsageError("usage.arguments", f"{key!r} cannot be an idempotency key", hint)
    given: dict[str, Any] = {
        "version": wanted.version,
        "tag": wanted.tag,
        "files": wanted.files,
        "inputs": dict(wanted.inputs or {}) or None,
        "labels": list(wanted.labels) or None,
        "mode": wanted.mode,
        "backend": wanted.backend,
        "queue": wanted.queue,
        "prior": wanted.prior,
    }
    if wanted.source is not None:
        given["source"] = {"name": wanted.source, **({"ref": wanted.ref} if wanted.ref else {})}
    body = {name: value for name, value in given.items() if value is not None}
    headers = {"Idempotency-Key": key or str(uuid.uuid4())}
    return RemoteRun.of((yield from _ask("POST", f"{_spec(team, spec)}runs/", json=body, headers=headers)))


def get(team: str, run: str, wait_s: int = 0) -> Steps[RemoteRun]:
    """A run; with `wait_s` as soon as it has ended or needs somebody, or after so many seconds."""
    params = {"wait": min(wait_s, WAIT_S)} if wait_s else None
    return RemoteRun.of((yield from _ask("GET", _run(team, run), params=params)))


def records(
    team: str, run: str, after: int = -1, wait_s: int = 0
) -> Steps[tuple[list[dict[str, Any]], bool]]:
    """Records after a seq, at most 500, and whether more can come."""
    params = {"after": after, **({"wait": min(wait_s, WAIT_S)} if wait_s else {})}
    found = yield from _ask("GET", f"{_run(team, run)}records/", params=params)
    rows = found.get("records")
    if not isinstance(rows, list):
        raise unusable("no list of records")
    for row in rows:
        seq = row.get("seq") if isinstance(row, dict) else None
        if type(seq) is not int or seq <= after:
            raise unusable("no record, or one out of its order")
        after = seq
    return rows, found.get("next") is not None


def follow(team: str, run: str, until: float | None = None) -> Steps[None]:
    """Shows each record as it comes, then the run: once it has ended, waits for somebody or is paused, or at
    `until` (time.monotonic). Where the token does not see what the run imports, the run alone."""
    after = -1
    while True:
        try:
            rows, more = yield from records(team, run, after, _left(until))
        except UsageError as error:
            if error.code != UNSEEN:
                raise
            yield from _watch(team, run, until)
            return
        for row in rows:
            yield Show(row)
        after = rows[-1]["seq"] if rows else after
        seen = yield from get(team, run)
        stopped = seen.state in ("waiting", "paused") and seen.records <= after + 1
        if stopped or not more or (until is not None and time.monotonic() >= until):
            yield Show(seen)
            return
        if not rows:  # a platform with too many who wait answers at once
            yield Pause(1.0)


def _watch(team: str, run: str, until: float | None) -> Steps[None]:
    """Shows the run once it stops, or at `until`."""
    while True:
        seen = yield from get(team, run, _left(until))
        over = until is not None and time.monotonic() >= until
        if seen.ended or seen.state in ("waiting", "paused") or over:
            yield Show(seen)
            return
        yield Pause(1.0)


def _left(until: float | None) -> int:
    """How many seconds a request may wait."""
    return WAIT_S if until is None else max(0, int(min(WAIT_S, until - time.monotonic())))


def junit(team: str, run: str) -> Steps[bytes]:
    """The report as JUnit XML."""
    return (yield from _send("GET", f"{_run(team, run)}junit.xml", headers={"Accept": "*/*"}))


def cancel(team: str, run: str) -> Steps[RemoteRun]:
    """Ask that the run be cancelled."""
    return RemoteRun.of((yield from _ask("POST", f"{_run(team, run)}cancel/")))


def files(team: str, run: str) -> Steps[list[RemoteFile]]:
    """The files that the run made or changed."""
    rows = (yield from _ask("GET", f"{_run(team, run)}files/")).get("files")
    found = []
    for row in rows if isinstance(rows, list) else [None]:
        name, key, size = (
            row.get(part) if isinstance(row, dict) else None for part in ("name", "key", "size")
        )
        sized = size is None or (type(size) is int and size >= 0)
        if not (isinstance(name, str) and isinstance(key, str) and sized):
            raise unusable("no list of files")
        found.append(RemoteFile(name, key, size))
    return found


def file(team: str, run: str, wanted: RemoteFile, into: IO[bytes]) -> Steps[None]:
    """Write a file of the run. Raises: UnavailableError `client.reply` for one of another size."""
    parts = (quote(part, safe="") for part in (team, run))
    path = "/t/{}/runs/{}/files/".format(*parts) + quote(wanted.key, safe="/")
    yield from _send("GET", path, into=into, headers={"Accept": "*/*"})
    if wanted.size is not None and into.tell() != wanted.size:
        raise unusable(f"{wanted.name!r} has another size than was told")


# ---- requests


def _ask(method: str, path: str, **about: Any) -> Steps[dict[str, Any]]:
    found = _object((yield from _send(method, path, **about)))
    if not found:
        raise unusable("it is not JSON object")
    if "code" in found and "detail" in found:  # a long poll that lost its run: its answer had begun
        raise _refused(found, "the run, the team or the token is gone")
    return found


def _send(method: str, path: str, into: IO[bytes] | None = None, **about: Any) -> Steps[bytes]:
    """The body of the answer.

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
            reply = yield Send(method, below, about, into)
        except httpx.HTTPError as error:
            trouble = str(error) or type(error).__name__
        except UnicodeEncodeError as error:
            hint = "inputs, labels and names are UTF-8"
            raise UsageError("usage.arguments", "a given text cannot be sent", hint) from error
        else:
            assert reply is not None, "a request has a reply"
            if reply.status not in _LATER and not (
                reply.status == 409 and _object(reply.body).get("code") == _BUSY
            ):
                return _accepted(reply.status, reply.body)
            trouble = f"it answers {reply.status}"
            after = reply.after
            wait = max(wait, float(after)) if after.isascii() and after.isdigit() else wait
        if left:
            yield Pause(min(wait, LONGEST_PAUSE_S))
            wait *= 2
    hint = "check the address and whether the platform runs: /healthz says so"
    raise UnavailableError("unavailable.platform", f"no answer of the platform: {trouble}", hint)


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


def _spec(team: str, spec: str) -> str:
    return f"teams/{quote(team, safe='')}/specs/{quote(spec, safe='')}/"


def _run(team: str, run: str) -> str:
    return f"teams/{quote(team, safe='')}/runs/{quote(run, safe='')}/"


# ---- the connection's settings


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


def connection(url: str, token: str) -> dict[str, Any]:
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


def bad_proxy(error: Exception) -> UnavailableError:
    """The error of a proxy of the environment that cannot be used."""
    hint = "http:// and https:// proxies can be used: HTTPS_PROXY, ALL_PROXY"
    found = UnavailableError("unavailable.platform", "the proxy of the environment cannot be used", hint)
    found.__cause__ = error
    return found


class Taken:
    """The body of one answer as it comes: kept, or written where a good answer goes; bounded."""

    def __init__(self, step: Send, status: int) -> None:
        self.into = step.into if 200 <= status < 300 else None
        self.body = bytearray()
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Take a piece. Raises: UnavailableError `client.reply`."""
        self.size += len(piece)
        if self.size > MAX_BYTES:
            raise unusable(f"it is longer than {MAX_BYTES} bytes")
        if self.into is None:
            self.body += piece
        else:
            self.into.write(piece)
