"""The client of the API: what it sends and takes, when it tries again, and how it refuses."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest

from openapi_kit import run_shape
from spak.client import Platform, RemoteRun, connection, pack, servers
from spak.errors import UnavailableError, UsageError, UserError

SHAPE = run_shape()
RUN = dict.fromkeys(SHAPE["properties"], "") | {
    "key": "r1", "team": "demo", "spec": "tune", "version": 3, "state": "running",
    "ended": False, "records": 2,
}  # fmt: skip


def asked(answer: Callable[[httpx.Request], httpx.Response]) -> Platform:
    return Platform("http://127.0.0.1:8000/", "spak_t", httpx.MockTransport(answer))


def refuses(code: str, action: Callable[[], object], kind: type[UserError] = UsageError) -> str:
    with pytest.raises(kind) as caught:
        action()
    assert caught.value.code == code and caught.value.hint
    return caught.value.message


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr(connection.time, "sleep", made.append)
    return made


def test_what_it_takes_of_a_run_is_in_the_schema() -> None:
    names = {one.name for one in fields(RemoteRun)} - {"document"}
    assert names <= set(SHAPE["properties"]) and names <= set(SHAPE["required"])


def test_a_start_is_sent_with_what_was_given_and_a_key() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json=RUN)

    run = asked(answer).start("demo", "tune", tag="good", files="H", inputs={"n": "5"}, labels=["ci"])
    (request,) = seen
    assert (request.method, request.url.path) == ("POST", "/api/v1/teams/demo/specs/tune/runs/")
    assert json.loads(request.content) == {
        "tag": "good",
        "files": "H",
        "inputs": {"n": "5"},
        "labels": ["ci"],
    }
    assert (
        request.headers["authorization"] == "Bearer spak_t" and len(request.headers["idempotency-key"]) == 36
    )
    assert (run.key, run.state, run.version) == ("r1", "running", 3)


def test_a_request_without_an_answer_is_sent_again_with_the_same_key(pauses: list[float]) -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["idempotency-key"])
        if len(seen) == 1:
            raise httpx.ConnectError("refused")
        if len(seen) == 2:
            return httpx.Response(429, headers={"Retry-After": "7"}, json={"code": "web.rate", "detail": "x"})
        return httpx.Response(201, json=RUN)

    asked(answer).start("demo", "tune")
    assert len(seen) == 3 and len(set(seen)) == 1 and pauses == [0.5, 7.0]


def test_a_platform_that_is_not_there_is_said_in_words(pauses: list[float]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused")

    told = refuses("unavailable.platform", asked(answer).teams, UnavailableError)
    assert "Connection refused" in told and len(pauses) == connection.TRIES - 1


@pytest.mark.parametrize(
    ("answer", "code", "kind"),
    [
        (
            httpx.Response(404, json={"code": "web.404", "detail": "nothing", "hint": "h"}),
            "web.404",
            UsageError,
        ),
        (
            httpx.Response(500, json={"code": "web.500", "detail": "x", "hint": "h"}),
            "client.reply",
            UnavailableError,
        ),
        (
            httpx.Response(302, headers={"Location": "https://evil.example/"}),
            "client.reply",
            UnavailableError,
        ),
        (httpx.Response(200, text="<html>"), "client.reply", UnavailableError),
        (httpx.Response(200, json=["a"]), "client.reply", UnavailableError),
        (httpx.Response(200, json={"key": "r1"}), "client.reply", UnavailableError),
        (httpx.Response(200, json=RUN | {"state": ["x"]}), "client.reply", UnavailableError),
        (httpx.Response(200, json=RUN | {"records": "2"}), "client.reply", UnavailableError),
        (httpx.Response(200, content=b"[" * 200_000), "client.reply", UnavailableError),
        (httpx.Response(200, json={"code": "web.404", "detail": "gone"}), "web.404", UsageError),
    ],
)
def test_an_answer_that_cannot_be_used(answer: httpx.Response, code: str, kind: type[UserError]) -> None:
    refuses(code, lambda: asked(lambda _: answer).get("demo", "r1"), kind)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://a", "client.url"),
        ("example.org", "client.url"),
        ("https://", "client.url"),
        ("https://a:b@example.org", "client.url"),
        ("https://example.org/?x=1", "client.url"),
        ("https://example.org:99999999/", "client.url"),
        ("http://example.org", "client.insecure"),
        ("http://127.0.0.1.example.org", "client.insecure"),
        ("https://a..example.org", "client.url"),
        (f"https://{'a' * 70}.org", "client.url"),
        ("https://example.org/\udcff", "client.url"),
        ("https://example.org/\x01", "client.url"),
    ],
)
def test_an_address_that_is_none(url: str, code: str) -> None:
    refuses(code, lambda: Platform(url, "spak_t"))


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "ä"])
def test_a_token_that_is_none(token: str) -> None:
    refuses("client.token", lambda: Platform("https://example.org", token))


def test_a_password_in_an_address_is_not_repeated() -> None:
    assert "secret" not in refuses("client.url", lambda: Platform("https://me:secret@example.org", "spak_t"))


@pytest.mark.parametrize(
    "rows", [["x"], [{}], [{"seq": "0"}], [{"seq": True}], [{"seq": 1}, {"seq": 1}], [{"seq": -1}]]
)
def test_records_that_are_none_or_in_no_order(rows: list[Any]) -> None:
    client = asked(lambda _: httpx.Response(200, json={"records": rows, "next": "more"}))
    refuses("client.reply", lambda: client.records("demo", "r1"), UnavailableError)


def test_teams_that_are_none() -> None:
    client = asked(lambda _: httpx.Response(200, json={"teams": ["demo"]}))
    refuses("client.reply", client.teams, UnavailableError)


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_BYTES", 100)
    pieces: list[int] = []

    def endless() -> Iterator[bytes]:
        while len(pieces) < 50:
            pieces.append(1)
            yield b"x" * 40

    client = asked(lambda _: httpx.Response(200, content=endless()))
    assert "100 bytes" in refuses("client.reply", lambda: client.junit("demo", "r1"), UnavailableError)
    assert len(pieces) < 10


@pytest.mark.parametrize("after", ["99999999", "9" * 400, "0", "\xb2", "Wed, 21 Oct 2026 07:28:00 GMT", "-5"])
def test_how_long_a_platform_may_have_one_wait(pauses: list[float], after: str) -> None:
    headers = {b"Retry-After": after.encode("latin-1")}
    client = asked(lambda _: httpx.Response(503, headers=headers))
    refuses("unavailable.platform", client.teams, UnavailableError)
    assert all(0.5 <= pause <= connection.LONGEST_PAUSE_S for pause in pauses) and len(pauses) == 5


def test_a_start_whose_first_request_is_still_under_way_is_sent_again(pauses: list[float]) -> None:
    busy = httpx.Response(409, json={"code": "web.idempotency_busy", "detail": "x"})
    answers = iter((busy, httpx.Response(201, json=RUN)))
    assert asked(lambda _: next(answers)).start("demo", "tune").key == "r1" and len(pauses) == 1


@pytest.mark.parametrize("key", ["\xe4", "a\nb", "a" * 201, "\udcff"])
def test_a_key_that_no_header_can_hold(key: str) -> None:
    client = asked(lambda _: pytest.fail("it was sent"))
    refuses("usage.arguments", lambda: client.start("demo", "tune", key=key))


def test_an_input_that_is_not_utf_8() -> None:
    client = asked(lambda _: httpx.Response(201, json=RUN))
    refuses("usage.arguments", lambda: client.start("demo", "tune", inputs={"n": "\udcff"}))


def test_an_archive_is_sent_in_pieces_and_again_from_its_start(pauses: list[float]) -> None:
    seen: list[bytes] = []

    class Archive(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None and 0 < size <= 1 << 20
            return super().read(size)

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.read())
        return httpx.Response(200, json={"hash": "H"}) if len(seen) == 2 else httpx.Response(503)

    held = Archive(b"z" * 300_000)
    held.seek(7)
    assert asked(answer).bring("demo", "tune", held) == "H"
    assert seen == [b"z" * 300_000] * 2


@pytest.mark.parametrize(
    ("url", "goes"), [("http://127.0.0.1:8000", False), ("http://[::1]:8000", False), ("https://a.org", True)]
)
def test_no_token_goes_over_plain_http_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, url: str, goes: bool
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(connection.httpx, "Client", lambda **about: given.update(about))
    Platform(url, "spak_t")
    assert given["trust_env"] is goes


def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "odd://me:secret@proxy")
    told = refuses("unavailable.platform", lambda: Platform("https://a.org", "spak_t"), UnavailableError)
    assert "secret" not in told


def test_a_wait_that_a_full_platform_cuts_short_asks_no_faster(pauses: list[float]) -> None:
    asks: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asks.append(request.url.path)
        ended = len(asks) > 6
        if request.url.path.endswith("/records/"):
            return httpx.Response(200, json={"records": [], "next": None if ended else "more"})
        return httpx.Response(200, json=RUN | {"ended": ended})

    list(asked(answer).follow("demo", "r1"))
    assert pauses == [1.0] * 3 and len(asks) == 8


def test_records_are_followed_to_the_end_of_the_run() -> None:
    pages = {"-1": ([{"seq": 0}, {"seq": 1}], "more"), "1": ([], "more"), "1 again": ([{"seq": 2}], None)}
    state = {"at": ""}

    def answer(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/records/"):
            ended = state["at"] == "1 again"
            return httpx.Response(
                200, json=RUN | {"ended": ended, "state": "succeeded" if ended else "running"}
            )
        assert request.url.params["wait"] == "60"
        after = request.url.params["after"]
        state["at"] = "1 again" if after == "1" and state["at"] == "1" else after
        rows, more = pages[state["at"]]
        return httpx.Response(200, json={"records": rows, "next": more})

    news = list(asked(answer).follow("demo", "r1"))
    assert [one["seq"] for one in news if isinstance(one, dict)] == [0, 1, 2]
    assert isinstance(news[-1], RemoteRun) and news[-1].state == "succeeded"


def test_following_ends_where_the_run_needs_somebody() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/records/"):
            return httpx.Response(200, json={"records": [{"seq": 0}, {"seq": 1}], "next": "more"})
        return httpx.Response(200, json=RUN | {"state": "waiting", "asks": "q"})

    assert [getattr(one, "state", "record") for one in asked(answer).follow("demo", "r1")] == [
        "record", "record", "waiting",
    ]  # fmt: skip


def test_a_run_whose_text_the_token_does_not_see_is_waited_for(pauses: list[float]) -> None:
    """Its records are refused; how it ends is not."""
    states = iter(["running", "running", "succeeded"])

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/records/"):
            said = {
                "code": "web.token_imports",
                "detail": "It has the text of other specs.",
                "hint": "Name them.",
            }
            return httpx.Response(403, json=said)
        assert request.url.params["wait"] == "60"
        state = next(states)
        return httpx.Response(200, json=RUN | {"state": state, "ended": state == "succeeded"})

    (news,) = asked(answer).follow("demo", "r1")
    assert isinstance(news, RemoteRun) and news.state == "succeeded" and pauses == [1.0, 1.0]

    def refused(request: httpx.Request) -> httpx.Response:
        return httpx.Response(403, json={"code": "web.403", "detail": "No.", "hint": "Ask."})

    refuses("web.403", lambda: list(asked(refused).follow("demo", "r1")))


# ---- files


def names(folder: Path) -> dict[str, int]:
    held = io.BytesIO()
    count = pack(folder, held)
    with zipfile.ZipFile(held) as archive:
        found = {one.filename: one.external_attr >> 16 & 0o777 for one in archive.infolist()}
    assert count == len(found)
    return found


def test_what_git_ignores_is_not_sent(tmp_path: Path) -> None:
    for name, text in (
        (".gitignore", ".env\n"),
        (".env", "K=1"),
        ("a.py", "x"),
        ("s/b.sh", "y"),
        ("gone", "z"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "s/b.sh").chmod(0o755)
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "gone"], cwd=tmp_path, check=True)
    (tmp_path / "gone").unlink()
    assert names(tmp_path) == {".gitignore": 0o644, "a.py": 0o644, "s/b.sh": 0o755}
    assert names(tmp_path / "s") == {"b.sh": 0o755}


def test_what_git_ignores_is_not_sent_where_it_ignores_all(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / ".env").write_text("K=1")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    refuses("client.files", lambda: pack(tmp_path, io.BytesIO()))


@pytest.mark.parametrize("why", ["broken", "no git"])
def test_a_work_tree_that_git_does_not_list_is_not_sent_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    (tmp_path / ".env").write_text("K=1")
    (tmp_path / "s").mkdir()
    (tmp_path / "s/a.py").write_text("x")
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    if why == "no git":
        monkeypatch.setenv("PATH", str(tmp_path))
    for folder in (tmp_path, tmp_path / "s"):
        assert "git" in refuses("client.files", lambda at=folder: pack(at, io.BytesIO()))


def test_runs_in_a_work_tree_are_not_sent(tmp_path: Path) -> None:
    (tmp_path / ".spak/runs").mkdir(parents=True)
    (tmp_path / ".spak/runs/r").write_text("x")
    (tmp_path / "a.py").write_text("x")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    assert names(tmp_path) == {"a.py": 0o644}


def test_a_folder_without_git_is_sent_whole_and_always_as_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / ".spak").mkdir()
    (tmp_path / ".spak/run").write_text("x")
    (tmp_path / "ä b.txt").write_text("x")
    assert names(tmp_path) == {"ä b.txt": 0o644}
    first, second = io.BytesIO(), io.BytesIO()
    pack(tmp_path, first)
    os.utime(tmp_path / "ä b.txt", (1, 1))
    pack(tmp_path, second)
    assert first.getvalue() == second.getvalue()


@pytest.mark.parametrize("make", ["link", "folder", "fifo", "name", "missing", "repository"])
def test_what_is_no_file_is_refused_by_name(tmp_path: Path, make: str) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    match make:
        case "link":
            (folder / "odd").symlink_to("/etc/passwd")
        case "folder":
            (folder / "odd").symlink_to("/etc")
        case "fifo":
            os.mkfifo(folder / "odd")
        case "name":
            (folder / os.fsdecode(b"odd\xff")).write_text("x")
        case "repository":
            for place in (folder, folder / "odd"):
                subprocess.run(["git", "init", "-q", str(place)], check=True)
            (folder / "odd/a").write_text("x")
            author = ("-c", "user.name=a", "-c", "user.email=a@b")
            for words in (("add", "a"), (*author, "commit", "-qm", "x")):
                subprocess.run(["git", *words], cwd=folder / "odd", check=True)
        case "missing":
            folder = tmp_path / "odd"
    assert "odd" in refuses("client.files", lambda: pack(folder, io.BytesIO()))


# ---- tokens that were kept


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SPAK_TOKEN", raising=False)
    return tmp_path / "spak" / servers.NAME


def test_tokens_are_kept_for_their_platform_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert servers.token("https://a") == ""
    servers.keep("https://a", "one")
    servers.keep("https://b", "two")
    assert (servers.token("https://a"), servers.token("https://b")) == ("one", "two")
    assert home.stat().st_mode & 0o777 == 0o600
    assert servers.forget("https://a") and not servers.forget("https://a")
    assert (servers.token("https://a"), servers.token("https://b")) == ("", "two")
    monkeypatch.setenv("SPAK_TOKEN", "three")
    assert servers.token("https://b") == "three"


@pytest.mark.parametrize("make", ["readable", "link", "no json", "a list"])
def test_a_file_of_tokens_that_is_not_trusted(home: Path, make: str) -> None:
    home.parent.mkdir()
    match make:
        case "readable":
            home.write_text("{}")
            home.chmod(0o644)
        case "link":
            home.symlink_to("/dev/null")
        case _:
            home.write_text("[]" if make == "a list" else "{")
            home.chmod(0o600)
    refuses("client.servers", lambda: servers.token("https://a"))


def test_a_token_is_in_no_error(pauses: list[float]) -> None:
    def answer(request: httpx.Request) -> Any:
        raise httpx.ConnectError("refused")

    assert "spak_t" not in refuses("unavailable.platform", asked(answer).teams, UnavailableError)
