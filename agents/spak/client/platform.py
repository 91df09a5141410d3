"""The API of a platform as Python that blocks: bring files, start a run, follow it, fetch what it made.

Takes an address and a token; gives documents of docs/openapi.yaml. What is asked and how it is tried again is
in calls.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Self, TypeVar

import httpx

from spak.client import calls
from spak.client.calls import Pause, RemoteFile, RemoteRun, Reply, Send, Show, Start, Steps

T = TypeVar("T")


class Platform:
    """A platform at `url`, for whoever the token is of. A context manager; `close` ends its connections."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        """Raises: UsageError `client.url`, `client.insecure`, `client.token`; UnavailableError
        `unavailable.platform` for a proxy of the environment that cannot be used."""
        self.url, self.token = calls.origin(url), token
        settings = calls.connection(self.url, token)
        try:
            self._http = httpx.Client(transport=transport, **settings)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise calls.bad_proxy(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def teams(self) -> list[dict[str, Any]]:
        """The teams that the token reaches."""
        return self._result(calls.teams())

    def bring(self, team: str, spec: str, archive: IO[bytes], name: str = "files.zip") -> str:
        """Bring a zip for runs of a spec; gives the hash that a start names."""
        return self._result(calls.bring(team, spec, archive, name))

    def start(
        self, team: str, spec: str, *, version: int | None = None, tag: str | None = None,
        files: str | None = None, inputs: Mapping[str, str] | None = None, labels: Sequence[str] = (),
        mode: str | None = None, backend: str | None = None, queue: str | None = None, key: str | None = None,
        source: str | None = None, ref: str | None = None, prior: str | None = None,
    ) -> RemoteRun:  # fmt: skip
        """Start a run of a version, of a tag, or of the newest version; `calls.Start` says what each means.

        Raises: UsageError `usage.arguments` for a key that is not 1 to 200 printable ASCII characters.
        """
        wanted = Start(version, tag, files, inputs, labels, mode, backend, queue, key, source, ref, prior)
        return self._result(calls.start(team, spec, wanted))

    def get(self, team: str, run: str, wait_s: int = 0) -> RemoteRun:
        """A run; with `wait_s` as soon as it has ended or needs somebody, or after so many seconds."""
        return self._result(calls.get(team, run, wait_s))

    def records(
        self, team: str, run: str, after: int = -1, wait_s: int = 0
    ) -> tuple[list[dict[str, Any]], bool]:
        """Records after a seq, at most 500, and whether more can come."""
        return self._result(calls.records(team, run, after, wait_s))

    def follow(self, team: str, run: str, until: float | None = None) -> Iterator[RemoteRun | dict[str, Any]]:
        """Each record as it comes, then the run: once it has ended, waits for somebody or is paused, or at
        `until` (time.monotonic)."""
        yield from self._shown(calls.follow(team, run, until))

    def junit(self, team: str, run: str) -> bytes:
        """The report as JUnit XML."""
        return self._result(calls.junit(team, run))

    def cancel(self, team: str, run: str) -> RemoteRun:
        """Ask that the run be cancelled."""
        return self._result(calls.cancel(team, run))

    def files(self, team: str, run: str) -> list[RemoteFile]:
        """The files that the run made or changed."""
        return self._result(calls.files(team, run))

    def file(self, team: str, run: str, wanted: RemoteFile, into: IO[bytes]) -> None:
        """Write one of them into a file that can seek."""
        self._result(calls.file(team, run, wanted, into))

    def _result(self, steps: Steps[T]) -> T:
        """What a call gives; what it shows is for `follow`."""
        shown = self._walk(steps)
        while True:
            try:
                next(shown)
            except StopIteration as end:
                result: T = end.value
                return result

    def _shown(self, steps: Steps[None]) -> Iterator[Any]:
        yield from self._walk(steps)

    def _walk(self, steps: Steps[T]) -> Any:
        reply: Reply | None = None
        trouble: Exception | None = None
        while True:
            try:
                step = steps.send(reply) if trouble is None else steps.throw(trouble)
            except StopIteration as end:
                return end.value
            reply = trouble = None
            if isinstance(step, Show):
                yield step.item
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            else:
                try:
                    reply = self._once(step)
                except (httpx.HTTPError, UnicodeEncodeError) as error:
                    trouble = error

    def _once(self, step: Send) -> Reply:
        with self._http.stream(step.method, self.url + step.path, **step.about) as reply:
            taken = calls.Taken(step, reply.status_code)
            for piece in reply.iter_bytes():
                taken.add(piece)
        return Reply(reply.status_code, bytes(taken.body), reply.headers.get("Retry-After", ""))
