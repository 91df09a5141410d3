"""The API of a platform as Python that awaits: the calls of platform.py for an event loop.

What is asked and how it is tried again is in calls.py, for both. An archive that is brought is read between
two awaits in pieces, and a file that is fetched is written so: give files of this machine's disk.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import IO, Any, Self, TypeVar

import httpx

from spak.client import calls
from spak.client.calls import Pause, RemoteFile, RemoteRun, Reply, Send, Show, Start, Steps

PIECE = 1 << 16
T = TypeVar("T")


class AsyncPlatform:
    """A platform at `url`, for whoever the token is of. An async context manager; `close` ends its
    connections."""

    def __init__(self, url: str, token: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """Raises: UsageError `client.url`, `client.insecure`, `client.token`; UnavailableError
        `unavailable.platform` for a proxy of the environment that cannot be used."""
        self.url, self.token = calls.origin(url), token
        settings = calls.connection(self.url, token)
        try:
            self._http = httpx.AsyncClient(transport=transport, **settings)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise calls.bad_proxy(error) from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connections."""
        await self._http.aclose()

    async def teams(self) -> list[dict[str, Any]]:
        """The teams that the token reaches."""
        return await self._result(calls.teams())

    async def bring(self, team: str, spec: str, archive: IO[bytes], name: str = "files.zip") -> str:
        """Bring a zip for runs of a spec; gives the hash that a start names."""
        return await self._result(calls.bring(team, spec, archive, name))

    async def start(
        self, team: str, spec: str, *, version: int | None = None, tag: str | None = None,
        files: str | None = None, inputs: Mapping[str, str] | None = None, labels: Sequence[str] = (),
        mode: str | None = None, backend: str | None = None, queue: str | None = None, key: str | None = None,
        source: str | None = None, ref: str | None = None, prior: str | None = None,
    ) -> RemoteRun:  # fmt: skip
        """Start a run of a version, of a tag, or of the newest version; `calls.Start` says what each means.

        Raises: UsageError `usage.arguments` for a key that is not 1 to 200 printable ASCII characters.
        """
        wanted = Start(version, tag, files, inputs, labels, mode, backend, queue, key, source, ref, prior)
        return await self._result(calls.start(team, spec, wanted))

    async def get(self, team: str, run: str, wait_s: int = 0) -> RemoteRun:
        """A run; with `wait_s` as soon as it has ended or needs somebody, or after so many seconds."""
        return await self._result(calls.get(team, run, wait_s))

    async def records(
        self, team: str, run: str, after: int = -1, wait_s: int = 0
    ) -> tuple[list[dict[str, Any]], bool]:
        """Records after a seq, at most 500, and whether more can come."""
        return await self._result(calls.records(team, run, after, wait_s))

    async def follow(
        self, team: str, run: str, until: float | None = None
    ) -> AsyncIterator[RemoteRun | dict[str, Any]]:
        """Each record as it comes, then the run: once it has ended, waits for somebody or is paused, or at
        `until` (time.monotonic)."""
        async for item in self._walk(calls.follow(team, run, until), []):
            yield item

    async def junit(self, team: str, run: str) -> bytes:
        """The report as JUnit XML."""
        return await self._result(calls.junit(team, run))

    async def cancel(self, team: str, run: str) -> RemoteRun:
        """Ask that the run be cancelled."""
        return await self._result(calls.cancel(team, run))

    async def files(self, team: str, run: str) -> list[RemoteFile]:
        """The files that the run made or changed."""
        return await self._result(calls.files(team, run))

    async def file(self, team: str, run: str, wanted: RemoteFile, into: IO[bytes]) -> None:
        """Write one of them into a file that can seek."""
        await self._result(calls.file(team, run, wanted, into))

    async def _result(self, steps: Steps[T]) -> T:
        """What a call gives; what it shows is for `follow`."""
        result: list[T] = []
        async for _ in self._walk(steps, result):
            pass
        return result[0]

    async def _walk(self, steps: Steps[T], result: list[T]) -> AsyncIterator[Any]:
        reply: Reply | None = None
        trouble: Exception | None = None
        while True:
            try:
                step = steps.send(reply) if trouble is None else steps.throw(trouble)
            except StopIteration as end:
                result.append(end.value)
                return
            reply = trouble = None
            if isinstance(step, Show):
                yield step.item
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            else:
                try:
                    reply = await self._once(step)
                except (httpx.HTTPError, UnicodeEncodeError) as error:
                    trouble = error

    async def _once(self, step: Send) -> Reply:
        about = dict(step.about)
        if "content" in about:
            size = about["content"].seek(0, io.SEEK_END)
            about["headers"] = {**about.get("headers", {}), "Content-Length": str(size)}
            about["content"].seek(0)
            about["content"] = _pieces(about["content"])
        async with self._http.stream(step.method, self.url + step.path, **about) as reply:
            taken = calls.Taken(step, reply.status_code)
            async for piece in reply.aiter_bytes():
                taken.add(piece)
        return Reply(reply.status_code, bytes(taken.body), reply.headers.get("Retry-After", ""))


async def _pieces(archive: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := archive.read(PIECE):
        yield piece
