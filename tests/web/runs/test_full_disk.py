"""A disk without room: what pages, downloads, imports and logs say of it."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from spak.errors import LedgerError
from spakweb.face.runs import run_parts
from spakweb.face.streams.summaries import HEADER, header
from spakweb.ground.logs import log_rate_limit
from spakweb.store.ledger import export, intake, storage
from spakweb.store.runs.models import Run, State

pytestmark = pytest.mark.django_db(transaction=True)
Ran = Callable[..., Run]
JSON = {"Accept": "application/json"}
PATH = "/srv/data/media/blobs/xy"


def no_room(*ignored: object, **named: object) -> None:
    raise LedgerError("ledger.full", f"no space while writing a blob: {PATH}", "free some space")


def short(*ignored: object, **named: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", PATH)


@pytest.mark.parametrize("why", [no_room, short])
def test_a_download_that_needs_room(cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch, why: Any) -> None:
    run = ran()
    monkeypatch.setattr(export, "export", why)
    where = reverse("spak-run-export", args=[cast.team.slug, run.key])
    answer = cast.client("vera").get(where, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (507, "web.disk")
    page = cast.client("vera").get(where)
    assert b"disk of the server is full" in page.content and PATH.encode() not in page.content


def test_an_import_that_needs_room(cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ran()
    file = b"".join(export.as_jsonl(run))
    monkeypatch.setattr(intake, "store", no_room)
    answer = cast.client("bob").post(
        reverse("spak-run-import", args=[cast.team.slug]),
        {"file": SimpleUploadedFile("f.jsonl", file)}, headers=JSON,
    )  # fmt: skip
    assert (answer.status_code, answer.json()["code"]) == (507, "web.disk")
    assert PATH not in answer.content.decode() and Run.objects.count() == 1


def test_a_run_that_waits_for_room_says_so(ran: Ran, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ran(advance=False)
    monkeypatch.setattr(storage, "ROOM", 1 << 62)
    settings.DATA_DIR.mkdir(exist_ok=True)
    said = header(Run.objects.values(*HEADER).get(pk=run.pk), timezone.now())
    assert said["state"] == State.QUEUED and said["why"] == storage.FULL
    assert storage.FULL in run_parts.outcome(run)
    run.holder, run.count = "a worker", 7
    for lease in (timedelta(minutes=-1), timedelta(minutes=1)):  # nobody could write that it was put down
        run.lease_until = timezone.now() + lease
        assert storage.FULL in run_parts.outcome(run), run_parts.outcome(run)


def test_a_run_that_was_held_up_says_why(ran: Ran) -> None:
    run = ran(advance=False)
    run.reason = "workspace.full: no space while it wrote"
    assert "workspace.full: no space while it wrote" in run_parts.outcome(run)


def test_the_same_trouble_is_logged_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [100.0], []
    monkeypatch.setattr(log_rate_limit.time, "monotonic", lambda: now[0])
    log, handler = logging.Logger("x"), logging.Handler()
    handler.addFilter(log_rate_limit.RateLimit())
    monkeypatch.setattr(handler, "emit", lambda record: said.append(record.getMessage()))
    log.addHandler(handler)
    for _ in range(100):
        log.warning("it failed: %s", "full")
        now[0] += 0.5
    log.warning("it failed: %s", "other")
    now[0] += 30
    log.warning("it failed: %s", "full")
    assert said == ["it failed: full", "it failed: other", "it failed: full (and 99 times before)"]
    for number in range(log_rate_limit.REMEMBERED + 5):
        log.warning("%d", number)
    (filtered,) = handler.filters
    assert len(filtered._logged) == log_rate_limit.REMEMBERED  # type: ignore[union-attr]


def test_what_is_logged_wrongly_harms_nobody_and_another_error_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log, handler = logging.Logger("x"), logging.StreamHandler()
    handler.addFilter(log_rate_limit.RateLimit())
    log.addHandler(handler)
    log.warning("it has %d", "none")
    assert "it has %d" in capsys.readouterr().err
    for error in (OSError("a"), OSError("b"), ValueError("c")):
        log.warning("it failed", exc_info=error)
    said = capsys.readouterr().err
    assert "OSError: a" in said and "OSError: b" not in said and "ValueError: c" in said
