"""The API of a platform as Python that blocks: bring files, start a run, follow it, fetch what it made.

Takes an address and a token; gives documents of docs/openapi.yaml. How a request is tried again is in
connection.py. A program with an event loop calls these through `asyncio.to_thread`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import IO, Any, Self, get_type_hints
from urllib.parse import quote

import httpx

from spak.client.connection import WAIT_S, Connection, unusable
from spak.errors import UsageError

UNSEEN = "web.token_imports"
"""The code of a refusal of what quotes specs that the token does not name."""
MAX_KEY = 200


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
    leaves_as: str = ""
    """Its class at the door, as the platform has it (spak.door)."""


class Platform:
    """A platform at `url`, for the owner of the token. A context manager; `close` ends its connections."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        """Raises: UsageError `client.url`, `client.insecure`, `client.token`; UnavailableError
        `unavailable.platform` for a proxy of the environment that cannot be used."""
        self._connection = Connection(url, token, transport)
        self.url, self.token = self._connection.url, token

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._connection.close()

    def teams(self) -> list[dict[str, Any]]:
        """The teams that the token reaches."""
        found = self._connection.ask("GET", "teams/").get("teams")
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise unusable("no list of teams")
        return found

    def bring(self, team: str, spec: str, archive: IO[bytes], name: str = "files.zip") -> str:
        """Bring a zip for runs of a spec; gives the hash that a start names."""
        answer = self._connection.ask(
            "POST", f"{_spec(team, spec)}files/", content=archive, params={"name": name},
            headers={"Content-Type": "application/zip"},
        )  # fmt: skip
        return str(answer.get("hash", ""))

    def law(self, team: str) -> dict[str, Any]:
        """What a new run of the team is under: `operator` and `team` texts, and `approvers`."""
        return self._connection.ask("GET", f"teams/{quote(team, safe='')}/law/")

    def report(self, team: str, run: str, lines: IO[bytes]) -> dict[str, Any]:
        """Report records of a guarded session (spak.client.reports); how many are there, and what was asked.

        Raises: UnavailableError `client.reply`."""
        found = self._connection.ask(
            "POST", f"teams/{quote(team, safe='')}/guarded/", content=lines, params={"session": run},
            headers={"Content-Type": "application/x-ndjson"},
        )  # fmt: skip
        asked = found.get("asked")
        if type(found.get("records")) is not int or not isinstance(asked, list) or "html_url" not in found:
            raise unusable("no answer to a report")
        return found

    def start(
        self, team: str, spec: str, *, version: int | None = None, tag: str | None = None,
        files: str | None = None, inputs: Mapping[str, str] | None = None, labels: Sequence[str] = (),
        mode: str | None = None, backend: str | None = None, queue: str | None = None, key: str | None = None,
        source: str | None = None, ref: str | None = None, prior: str | None = None,
        sealed: str | None = None,
    ) -> RemoteRun:  # fmt: skip
        """Start a run of a version, of a tag, or of the newest one; None leaves a choice to the platform.

        `key` makes a repeated start give the run of the first one; without it this one alone is protected.
        `source` is one of the team, whose files the platform fetches at `ref`. `prior` is the id of a run of
        the team that a search begins with, `sealed` the `SUITE/CASE` whose sealed checks judge what it made.

        Raises: UsageError `usage.arguments` for a key that is not 1 to 200 printable ASCII characters.
        """
        if key and not (len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
            hint = f"1 to {MAX_KEY} printable ASCII characters, such as a UUID"
            raise UsageError("usage.arguments", f"{key!r} cannot be an idempotency key", hint)
        given: dict[str, Any] = {
            "version": version, "tag": tag, "files": files, "inputs": dict(inputs or {}) or None,
            "labels": list(labels) or None, "mode": mode, "backend": backend, "queue": queue, "prior": prior,
            "sealed": sealed,
        }  # fmt: skip
        if source is not None:
            given["source"] = {"name": source, **({"ref": ref} if ref else {})}
        body = {name: value for name, value in given.items() if value is not None}
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        path = f"{_spec(team, spec)}runs/"
        return RemoteRun.of(self._connection.ask("POST", path, json=body, headers=headers))

    def get(self, team: str, run: str, wait_s: int = 0) -> RemoteRun:
        """A run; with `wait_s` as soon as it has ended or needs somebody, or after so many seconds."""
        params = {"wait": min(wait_s, WAIT_S)} if wait_s else None
        return RemoteRun.of(self._connection.ask("GET", _run(team, run), params=params))

    def records(
        self, team: str, run: str, after: int = -1, wait_s: int = 0
    ) -> tuple[list[dict[str, Any]], bool]:
        """Records after a seq, at most 500, and whether more can come."""
        params = {"after": after, **({"wait": min(wait_s, WAIT_S)} if wait_s else {})}
        found = self._connection.ask("GET", f"{_run(team, run)}records/", params=params)
        rows = found.get("records")
        if not isinstance(rows, list):
            raise unusable("no list of records")
        for row in rows:
            seq = row.get("seq") if isinstance(row, dict) else None
            if type(seq) is not int or seq <= after:
                raise unusable("no record, or one out of its order")
            after = seq
        return rows, found.get("next") is not None

    def follow(self, team: str, run: str, until: float | None = None) -> Iterator[RemoteRun | dict[str, Any]]:
        """Each record as it comes, then the run: once it has ended, waits for somebody or is paused, or at
        `until` (time.monotonic). Where the token does not see what the run imports, the run alone."""
        after = -1
        while True:
            try:
                rows, more = self.records(team, run, after, _left(until))
            except UsageError as error:
                if error.code != UNSEEN:
                    raise
                yield self._stopped(team, run, until)
                return
            yield from rows
            after = rows[-1]["seq"] if rows else after
            seen = self.get(team, run)
            stopped = seen.state in ("waiting", "paused") and seen.records <= after + 1
            if stopped or not more or (until is not None and time.monotonic() >= until):
                yield seen
                return
            if not rows:  # a platform with too many who wait answers at once
                time.sleep(1.0)

    def _stopped(self, team: str, run: str, until: float | None) -> RemoteRun:
        """The run once it stops, or at `until`."""
        while True:
            seen = self.get(team, run, _left(until))
            over = until is not None and time.monotonic() >= until
            if seen.ended or seen.state in ("waiting", "paused") or over:
                return seen
            time.sleep(1.0)

    def junit(self, team: str, run: str) -> bytes:
        """The report as JUnit XML."""
        return self._connection.send("GET", f"{_run(team, run)}junit.xml", headers={"Accept": "*/*"})

    def cancel(self, team: str, run: str) -> RemoteRun:
        """Ask that the run be cancelled."""
        return RemoteRun.of(self._connection.ask("POST", f"{_run(team, run)}cancel/"))

    def files(self, team: str, run: str) -> list[RemoteFile]:
        """The files that the run made or changed."""
        rows = self._connection.ask("GET", f"{_run(team, run)}files/").get("files")
        found = []
        for row in rows if isinstance(rows, list) else [None]:
            name, key, size, kind = (
                row.get(part) if isinstance(row, dict) else None
                for part in ("name", "key", "size", "leaves_as")
            )
            sized = size is None or (type(size) is int and size >= 0)
            if not (isinstance(name, str) and isinstance(key, str) and sized):
                raise unusable("no list of files")
            found.append(RemoteFile(name, key, size, kind if isinstance(kind, str) else ""))
        return found

    def file(self, team: str, run: str, wanted: RemoteFile, into: IO[bytes]) -> None:
        """Write one of them into a file that can seek. Raises: UnavailableError `client.reply` for one of
        another size."""
        parts = (quote(part, safe="") for part in (team, run))
        path = "/t/{}/runs/{}/files/".format(*parts) + quote(wanted.key, safe="/")
        self._connection.send("GET", path, into=into, headers={"Accept": "*/*"})
        if wanted.size is not None and into.tell() != wanted.size:
            raise unusable(f"{wanted.name!r} is {into.tell()} bytes long, and the list says {wanted.size}")


def _left(until: float | None) -> int:
    """How many seconds a request may wait."""
    return WAIT_S if until is None else max(0, int(min(WAIT_S, until - time.monotonic())))


def _spec(team: str, spec: str) -> str:
    return f"teams/{quote(team, safe='')}/specs/{quote(spec, safe='')}/"


def _run(team: str, run: str) -> str:
    return f"teams/{quote(team, safe='')}/runs/{quote(run, safe='')}/"
