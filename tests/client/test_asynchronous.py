"""The client for event loops: the same calls as the one that blocks, awaited; and files that runs made."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from openapi_kit import run_shape
from spak.client import AsyncPlatform, Platform, RemoteFile, RemoteRun, asynchronous, calls
from spak.client.downloads import download
from spak.errors import UnavailableError, UsageError

SHAPE = run_shape()
RUN = dict.fromkeys(SHAPE["properties"], "") | {
    "key": "r1", "team": "demo", "spec": "tune", "version": 3, "state": "running",
    "ended": False, "records": 2,
}  # fmt: skip
Answer = Callable[[httpx.Request], httpx.Response]


def awaited(answer: Answer, work: Callable[[AsyncPlatform], Any]) -> Any:
    """What the work gives with a platform that answers so."""

    async def run() -> Any:
        async with AsyncPlatform("http://127.0.0.1:8000/", "spak_t", httpx.MockTransport(answer)) as found:
            return await work(found)

    return asyncio.run(run())


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(asynchronous.asyncio, "sleep", sleep)
    return made


def public(kind: type) -> dict[str, list[str]]:
    """Its methods with their parameters, as they are written."""
    found = inspect.getmembers(kind, inspect.isfunction)
    return {
        name: [str(one) for one in inspect.signature(method).parameters.values()]
        for name, method in found
        if not name.startswith("_")
    }


def test_both_clients_have_the_same_calls() -> None:
    blocking, awaiting = public(Platform), public(AsyncPlatform)
    assert blocking == awaiting and len(blocking) > 9
    assert all(inspect.getdoc(getattr(AsyncPlatform, name)) for name in awaiting)
    for name in blocking:
        assert inspect.getdoc(getattr(Platform, name)) == inspect.getdoc(getattr(AsyncPlatform, name))


def test_a_start_is_tried_again_with_its_key(pauses: list[float]) -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["idempotency-key"])
        if len(seen) == 1:
            raise httpx.ConnectError("reset")
        if len(seen) == 2:
            return httpx.Response(503, headers={"Retry-After": "7"})
        return httpx.Response(201, json=RUN)

    run = awaited(answer, lambda platform: platform.start("demo", "tune", labels=["ci"]))
    assert isinstance(run, RemoteRun) and run.key == "r1"
    assert len(seen) == 3 and len(set(seen)) == 1 and pauses[1] >= 7


def test_an_archive_is_sent_whole_and_again_from_its_start(pauses: list[float]) -> None:
    data, came = b"zip" * 100_000, []

    def answer(request: httpx.Request) -> httpx.Response:
        came.append((request.headers["content-length"], request.content))
        return httpx.Response(502) if len(came) == 1 else httpx.Response(201, json={"hash": "H"})

    found = awaited(answer, lambda platform: platform.bring("demo", "tune", io.BytesIO(data)))
    assert found == "H" and came == [(str(len(data)), data)] * 2


def test_records_are_followed_to_the_end_of_the_run() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if "/records/" not in request.url.path:
            return httpx.Response(200, json=RUN | {"state": "failed", "ended": True})
        after = int(request.url.params["after"])
        return httpx.Response(200, json={"records": [{"seq": after + 1}], "next": "x" if after < 1 else None})

    async def all_of(platform: AsyncPlatform) -> list[Any]:
        return [one async for one in platform.follow("demo", "r1")]

    found = awaited(answer, all_of)
    assert [one["seq"] for one in found[:-1]] == [0, 1, 2] and found[-1].state == "failed"


def test_refusals_are_the_same() -> None:
    told = {"code": "web.403", "detail": "no", "hint": "ask"}
    with pytest.raises(UsageError) as caught:
        awaited(lambda request: httpx.Response(403, json=told), lambda platform: platform.teams())
    assert (caught.value.code, caught.value.message) == ("web.403", "no")
    for url, token, code in (("ftp://a", "t", "client.url"), ("http://a.example", "t", "client.insecure"),
                             ("http://127.0.0.1", "", "client.token")):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            AsyncPlatform(url, token)
        assert caught.value.code == code


def test_two_at_once_are_two_requests_in_one_loop() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=RUN | {"key": request.url.path.split("/")[-2]})

    async def both(platform: AsyncPlatform) -> Any:
        return await asyncio.gather(*(platform.get("demo", key) for key in ("a", "b")))

    assert [run.key for run in awaited(answer, both)] == ["a", "b"]


# ---- files that a run made


def blocking(answer: Answer) -> Platform:
    return Platform("http://127.0.0.1:8000/", "spak_t", httpx.MockTransport(answer))


def made(*rows: tuple[str, str, int | None, bytes]) -> Answer:
    """A platform with these files: name, key, told size, content."""

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/runs/r1/files/") and path.startswith("/api/v1/"):
            body = [{"name": name, "key": key, "size": size, "url": "http://evil.example/x"}
                    for name, key, size, _ in rows]  # fmt: skip
            return httpx.Response(200, json={"files": body})
        assert request.url.host == "127.0.0.1"
        found = {f"/t/demo/runs/r1/files/{key}": data for _, key, _, data in rows}
        return httpx.Response(200, content=found[path]) if path in found else httpx.Response(404, json={})

    return answer


def fetch_into(folder: Path, answer: Answer) -> int:
    with blocking(answer) as platform:
        found = platform.files("demo", "r1")
        return download(found, folder, lambda one, into: platform.file("demo", "r1", one, into))


def test_files_are_written_by_their_names(tmp_path: Path) -> None:
    answer = made(
        ("best.c", "blob/abc", None, b"int"), ("src/deep/a b.txt", "file/src/deep/a b.txt", 4, b"text")
    )
    assert fetch_into(tmp_path / "out", answer) == 2
    assert (tmp_path / "out/best.c").read_bytes() == b"int"
    assert (tmp_path / "out/src/deep/a b.txt").read_bytes() == b"text"
    assert fetch_into(tmp_path / "out", answer) == 2, "again, over what is there"
    assert not list((tmp_path / "out").rglob(".spak-*"))


@pytest.mark.parametrize(
    "name", ["../a", "/etc/a", "a/../../b", "a//b", "", ".", "a/", "a\0b", "a\nb", "x" * 5000]
)
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    with pytest.raises(UsageError) as caught:
        fetch_into(folder, made((name, "file/a", 1, b"a")))
    assert caught.value.code == "client.artifacts"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_no_link_in_the_folder_is_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    folder.mkdir()
    (outside / "kept").write_text("mine")
    (folder / "sub").symlink_to(outside)
    (folder / "file").symlink_to(outside / "kept")
    (folder / "taken").mkdir()
    for name in ("sub/kept", "taken"):
        with pytest.raises(UsageError) as caught:
            fetch_into(folder, made((name, "file/a", 1, b"a")))
        assert caught.value.code == "client.artifacts"
    fetch_into(folder, made(("file", "file/a", 1, b"a")))
    assert (outside / "kept").read_text() == "mine" and not (folder / "file").is_symlink()


def test_a_file_that_comes_short_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        fetch_into(tmp_path, made(("a", "file/a", 5, b"four")))
    assert caught.value.code == "client.reply" and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "rows", [None, [None], [{}], [{"name": 1, "key": "a"}], [{"name": "a", "key": "b", "size": -1}],
             [{"name": "a", "key": "b", "size": True}]],
)  # fmt: skip
def test_lists_of_files_that_are_none(rows: Any) -> None:
    with pytest.raises(UnavailableError):
        blocking(lambda request: httpx.Response(200, json={"files": rows, "x": 1})).files("demo", "r1")


def test_a_download_is_tried_again_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spak.client.platform.time.sleep", lambda seconds: None)
    tries: list[int] = []

    class Cut(httpx.SyncByteStream):
        def __iter__(self) -> Any:
            yield b"half of it"
            raise httpx.ReadError("cut")

    def answer(request: httpx.Request) -> httpx.Response:
        tries.append(1)
        return httpx.Response(200, stream=Cut()) if len(tries) == 1 else httpx.Response(200, content=b"all")

    into = io.BytesIO()
    blocking(answer).file("demo", "r1", RemoteFile("a", "file/a", 3), into)
    assert into.getvalue() == b"all"


def test_a_file_without_end_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_BYTES", 10)
    with pytest.raises(UnavailableError):
        blocking(lambda request: httpx.Response(200, content=b"x" * 11)).file(
            "demo", "r1", RemoteFile("a", "file/a", None), io.BytesIO()
        )


def test_an_error_is_not_written_into_the_file() -> None:
    told = json.dumps({"code": "web.404", "detail": "gone"})
    into = io.BytesIO()
    with pytest.raises(UsageError):
        blocking(lambda request: httpx.Response(404, content=told)).file(
            "demo", "r1", RemoteFile("a", "file/a", 1), into
        )
    assert into.getvalue() == b""
