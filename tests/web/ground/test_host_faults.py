"""Requests that meet a fault of the host: 507 in words, and `/readyz` 503 while nothing can be written."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.backends.base import SessionBase
from django.db import OperationalError
from django.test import Client, RequestFactory

from spakweb.face.home import views
from spakweb.ground.web import bodies, error_pages
from spakweb.store.specs.models import Draft

TEAM = "/t/kernel-tuners"
pytestmark = [pytest.mark.findings("F8"), pytest.mark.django_db]
NAMES = ("EDQUOT", "EIO", "EROFS", "EMFILE", "ENOSPC", "ENOMEM")


def error(name: str) -> OSError:
    number = getattr(errno, name)
    return OSError(number, os.strerror(number), "/srv/data/x")


def code_of(name: str) -> str:
    return "web.disk" if name in ("EDQUOT", "ENOSPC") else "web.host"


@pytest.mark.parametrize("name", NAMES)
def test_a_view_that_meets_one_answers_507(cast: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def fails(*given: Any, **named: Any) -> None:
        raise error(name)

    monkeypatch.setattr(Draft.objects, "update_or_create", fails)
    body = {"text": "TASK other { }", "base_version": 1}
    answer = cast.client("bob").post(f"{TEAM}/specs/small/edit/draft", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (507, code_of(name))
    assert "/srv" not in answer.content.decode()


@pytest.mark.parametrize("what", [error("EIO"), OperationalError("unable to open database file")], ids=repr)
def test_so_does_what_fails_outside_of_the_view(
    cast: Any, monkeypatch: pytest.MonkeyPatch, what: Exception
) -> None:
    if isinstance(what, OperationalError):
        what.__cause__ = type("Error", (Exception,), {"sqlite_errorcode": 14})()

    def fails(self: SessionBase, *given: Any) -> None:
        raise what

    client = cast.client("bob")
    client.raise_request_exception = False
    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", fails)
    answer = client.get(f"{TEAM}/", headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (507, "web.host")


def test_other_errors_are_500(monkeypatch: pytest.MonkeyPatch) -> None:
    request = RequestFactory().get("/x")
    assert error_pages.server_error(request).status_code == 500
    try:
        raise ValueError
    except ValueError:
        assert error_pages.server_error(request).status_code == 500


def asked(app: Any) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(bodies.Bounded(app, most=100)({"type": "http", "path": "/x", "headers": []}, receive, send))
    return sent


@pytest.mark.parametrize("name", NAMES)
def test_what_no_page_answers_is_answered_in_words(name: str) -> None:
    """As where there is no room to spool a body: the server's own words would be `Internal Server Error`."""

    async def app(*given: Any) -> None:
        raise error(name)

    begin, body = asked(app)
    assert (begin["status"], json.loads(body["body"])["code"]) == (507, code_of(name))


def test_errors_of_ours_and_answers_under_way_are_left() -> None:
    async def ours(*given: Any) -> None:
        raise ValueError

    async def begun(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error("EIO")

    for app, kind in ((ours, ValueError), (begun, OSError)):
        with pytest.raises(kind):
            asked(app)


def test_readyz_says_that_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    folders: list[Path] = []
    said = [os.strerror(errno.EROFS)]

    def unwritable(folder: Path) -> str:
        folders.append(folder)
        return said[0]

    monkeypatch.setattr(views, "unwritable", unwritable)
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"data folder not writable: Read-only file system\n")
    said[0] = ""
    assert Client().get("/readyz").content == b"ready\n" and folders == [Path(settings.DATA_DIR)] * 2


def test_readyz_looks_at_the_folder_of_runs_too(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    """It may be a disk of its own."""
    settings.DATA_DIR = tmp_path
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(views, "unwritable", lambda folder: "worn out" if folder.name == "runs" else "")
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"data folder not writable: worn out\n")
    (tmp_path / "runs").rmdir()
    assert Client().get("/readyz").content == b"ready\n"
