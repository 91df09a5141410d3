"""The client of the API: what it sends and takes, when it tries again, and how it refuses."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from spak.client import Platform, RemoteRun, pack, platform, servers
from spak.errors import UnavailableError, UsageError, UserError

ROOT = Path(__file__).resolve().parents[2]
SHAPE = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())["components"]["schemas"]["RunShape"]
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
    monkeypatch.setattr(platform.time, "sleep", made.append)
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
    assert "Connection refused" in told and len(pauses) == platform.TRIES - 1


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
    ],
)
def test_an_address_that_is_none(url: str, code: str) -> None:
    refuses(code, lambda: Platform(url, "spak_t"))


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "ä"])
def test_a_token_that_is_none(token: str) -> None:
    refuses("client.token", lambda: Platform("https://example.org", token))


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


@pytest.mark.parametrize("make", ["link", "folder", "fifo", "name", "missing"])
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
