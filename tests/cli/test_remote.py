"""`spak run --server` and `spak login` with answers of a platform that are made here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import spak.client
from cli_calls import Cli
from openapi_kit import run_shape
from spak.client import Platform, RemoteRun, servers

SHAPE = run_shape()
RUN = dict.fromkeys(SHAPE["properties"], "") | {
    "key": "r1", "team": "demo", "spec": "tune", "version": 3, "state": "failed", "ended": True,
    "records": 1, "html_url": "https://a/t/demo/runs/r1/",
}  # fmt: skip
Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Answer], None]:
    monkeypatch.setattr(servers, "token", lambda _: "spak_t")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))

    def use(answer: Answer) -> None:
        made = lambda url, token: Platform(url, token, httpx.MockTransport(answer))  # noqa: E731
        monkeypatch.setattr(spak.client, "Platform", made)

    return use


def platform(request: httpx.Request, junit: httpx.Response | None = None) -> httpx.Response:
    path = request.url.path
    if path.endswith("junit.xml"):
        return junit or httpx.Response(200, content=b"<testsuites/>")
    if path.endswith("/records/"):
        body = {"outcome": "ok\x1b[2J"}
        record = {"seq": 0, "kind": "act", "task": "A\x9b", "step": "b\u202e", "body": body}
        return httpx.Response(200, json={"records": [record], "next": None})
    return httpx.Response(200, json=RUN | {"why": "bad\x1b]0;x\x07"})


def test_no_character_of_an_answer_steers_the_terminal(cli: Cli, answers: Callable[[Answer], None]) -> None:
    answers(platform)
    done = cli("run", "demo/tune", "--server", "https://a", "--wait")
    assert done.code == 1 and "A\\x9b/b\\u202e" in done.err and "bad\\x1b]0;x\\x07" in done.err
    assert not set(done.err) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize("checked", [True, False, None])
def test_a_success_that_nothing_checked_is_called_as_on_the_pages(
    cli: Cli, answers: Callable[[Answer], None], checked: bool | None
) -> None:
    run = RUN | {"state": "succeeded", "checked": checked}

    def answer(request: httpx.Request) -> httpx.Response:
        records = {"records": [], "next": None}
        return httpx.Response(200, json=records if request.url.path.endswith("/records/") else run)

    answers(answer)
    asked = ("run", "demo/tune", "--server", "https://a", "--wait")
    done = cli(*asked)
    assert done.code == 0
    assert ("run r1: completed, unchecked" if checked is False else "run r1: succeeded") in done.err
    assert cli(*asked, "--json").json["state"] == "succeeded"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("demo/tune@7", {"version": 7}),
        ("demo/tune@\xb2", {"tag": "\xb2"}),
        ("demo/tune@" + "1" * 5000, {"tag": "1" * 5000}),
        ("demo/tune", {}),
    ],
)
def test_a_number_is_a_version_and_all_else_a_tag(
    cli: Cli, answers: Callable[[Answer], None], name: str, sent: dict[str, Any]
) -> None:
    answers(lambda request: httpx.Response(201, json=RUN | {"inputs": json.loads(request.content)}))
    assert cli("run", name, "--server", "https://a", "--json").json["inputs"] == sent


def test_a_prior_and_a_case_are_sent_and_a_refusal_shown(cli: Cli, answers: Callable[[Answer], None]) -> None:
    asked = ("run", "demo/tune", "--server", "https://a", "--prior")
    answers(lambda request: httpx.Response(201, json=RUN | {"inputs": json.loads(request.content)}))
    assert cli(*asked, "r0", "--json").json["inputs"] == {"prior": "r0"}
    sealed = ("--sealed", "nightly/first", "--json")
    assert cli(*asked, "r0", *sealed).json["inputs"] == {"prior": "r0", "sealed": "nightly/first"}
    refused = {"code": "web.run_prior", "title": "no such run", "detail": "no run none", "status": 400}
    answers(lambda request: httpx.Response(400 if b'"none"' in request.content else 201, json=refused))
    done = cli(*asked, "none")
    assert done.code == 2 and "[web.run_prior]" in done.err


@pytest.mark.parametrize("why", ["answer", "disk"])
def test_a_report_that_cannot_be_had_hides_no_end_of_a_run(
    cli: Cli, answers: Callable[[Answer], None], tmp_path: Path, why: str
) -> None:
    none = httpx.Response(409, json={"code": "web.run_unbegun", "detail": "not begun", "hint": "h"})
    answers(lambda request: platform(request, none if why == "answer" else None))
    file = Path("/dev/full") if why == "disk" else tmp_path / "out.xml"
    done = cli("run", "demo/tune", "--server", "https://a", "--wait", "--junit", str(file), "--json")
    assert (done.code, done.json["state"]) == (1, "failed")
    assert ("[usage.file]" if why == "disk" else "[web.run_unbegun]") in done.err


def test_who_interrupts_a_wait_is_told_the_run(
    cli: Cli, answers: Callable[[Answer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> RemoteRun:
        raise KeyboardInterrupt

    answers(platform)
    monkeypatch.setattr(Platform, "follow", interrupted)
    done = cli("run", "demo/tune", "--server", "https://a", "--wait", "--json")
    assert (done.code, done.json["key"]) == (6, "r1") and RUN["html_url"] in done.err


def test_a_folder_whose_name_is_not_utf_8_is_sent(
    cli: Cli, answers: Callable[[Answer], None], tmp_path: Path
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/files/"):
            return httpx.Response(200, json={"hash": request.url.params["name"]})
        return httpx.Response(201, json=RUN | {"files": json.loads(request.content)["files"]})

    answers(answer)
    folder = tmp_path / "f\udcff"
    folder.mkdir()
    (folder / "a").write_text("x")
    done = cli("run", "demo/tune", "--server", "https://a", "--files", str(folder), "--json")
    assert (done.code, done.json["files"]) == (0, "f\ufffd.zip")


@pytest.mark.parametrize("given", [b"\xff\xfe\n", b"", b"a" * 9000])
def test_a_token_on_standard_input_that_is_none(
    cli: Cli, answers: Callable[[Answer], None], given: bytes
) -> None:
    answers(platform)
    done = cli("login", "https://a", "--json", stdin=given)
    assert (done.code, done.error) == (2, "client.token") and not servers.path().exists()


def test_a_source_is_named_with_its_ref(cli: Cli, answers: Callable[[Answer], None], tmp_path: Path) -> None:
    answers(lambda request: httpx.Response(201, json=RUN | {"source": json.loads(request.content)["source"]}))
    line = ("run", "demo/tune", "--server", "https://a", "--json")
    assert cli(*line, "--source", "app", "--ref", "v1").json["source"] == {"name": "app", "ref": "v1"}
    assert cli(*line, "--source", "app").json["source"] == {"name": "app"}
    both = cli(*line, "--source", "app", "--files", str(tmp_path))
    assert (both.code, cli(*line, "--ref", "v1").code, cli("run", "a.spak", "--source", "app").code) == (
        2,
        2,
        2,
    )
    assert "usage.arguments" in both.err + both.out
