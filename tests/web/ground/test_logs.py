"""Structured lines of the log: what they belong to, and what is never in them."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from spakweb.ground.logs import lines as logs
from spakweb.work.worker import execute

TOKEN = "spak_" + "a" * 49


def line(words: str, *args: object, error: bool = False) -> dict[str, Any]:
    """What a handler writes of a record."""
    try:
        raise ValueError(f"of {TOKEN}") if error else KeyError
    except (ValueError, KeyError) as found:
        info = (type(found), found, found.__traceback__) if error else None
    record = logging.LogRecord("spakweb.x", logging.WARNING, __file__, 1, words, args, info)
    assert logs.Ids().filter(record)
    written = logs.Json().format(record)
    assert "\n" not in written
    return dict(json.loads(written))


def test_a_line_has_its_run_and_ends_with_it() -> None:
    with logs.of_run("20261124-1"):
        with logs.of_run("20261124-2"):
            assert line("one %s", "two")["run"] == "20261124-2"
        found = line("one %s", "two")
    assert (found["run"], found["message"], found["level"]) == ("20261124-1", "one two", "warning")
    assert found["at"].endswith("Z") and "error" not in found
    assert "run" not in line("later")


def test_odd_signs_and_tokens(caplog: pytest.LogCaptureFixture) -> None:
    found = line("a\nb\x00\u2028 %s", TOKEN, error=True)
    assert found["message"] == "a\nb\x00\u2028 spak_[token]"
    assert "ValueError: of spak_[token]" in found["error"] and "Traceback" in found["error"]


def test_requests_have_the_id_that_they_are_answered_with(cast: Any, caplog: Any) -> None:
    seen: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logs.Ids().filter(record)
            seen.append(json.loads(logs.Json().format(record))["request"])

    handler = Keep()
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)
    try:
        answer = cast.client("bob").get("/t/kernel-tuners/specs/none/")
    finally:
        logger.removeHandler(handler)
    assert answer.status_code == 404
    assert seen == [answer["X-Request-Id"]]


def test_the_work_of_a_run_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(execute, "_tried", lambda key, slice_s: seen.append(line("x")["run"]) or "stopped")
    assert execute.advance_or_busy("20261124-9") == "stopped"
    assert seen == ["20261124-9"]
