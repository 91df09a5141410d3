"""What the form that starts a run says of backends and of the usual time."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.utils import timezone

from spakweb.face.runs import backends
from spakweb.face.runs.backends import Seen, Survey
from spakweb.face.runs.dashboards import usual_time
from spakweb.store.runs.models import Run, State

ROWS = (Seen("manual", True, "works"), Seen("anthropic", False, "no key; set ANTHROPIC_API_KEY"))


def test_every_backend_says_whether_it_works_here() -> None:
    from spak.llm import BACKENDS

    found = {one.name: one for one in backends.look()}
    assert set(found) == set(BACKENDS)
    assert found["manual"].works is True
    assert found["local"].works is True or found["local"].why


def test_those_that_work_come_first_and_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(backends, "look", lambda: asked.append(1) or ROWS)
    survey = Survey()
    assert [one.name for one in survey.seen()] == ["manual", "anthropic"]
    assert survey.seen() == survey.seen()
    assert asked == [1]


def test_a_page_does_not_wait_for_a_server_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(backends, "PATIENCE_S", 0.01)
    monkeypatch.setattr(backends, "look", lambda: (over.wait(), ROWS)[1])
    survey = Survey()
    assert {one.works for one in survey.seen()} == {None}
    thread = survey._thread
    assert thread is not None
    over.set()
    thread.join()
    assert survey.seen()[0] == ROWS[0]


def test_a_look_that_fails_is_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> Any:
        raise ValueError("odd")

    monkeypatch.setattr(backends, "look", fails)
    survey = Survey()
    while survey._thread or not caplog.records:
        assert {one.works for one in survey.seen()} == {None}
    assert "could not be looked at" in caplog.text


@pytest.mark.django_db
def test_the_form_names_them_and_the_usual_time(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "seen", lambda: ROWS)
    spec = cast.spec
    address = f"/t/{spec.team.slug}/specs/{spec.slug}/run/"
    page = cast.client("bob").get(address).content.decode()
    assert "anthropic (not available here)</option>" in page
    assert "Not available: no key; set ANTHROPIC_API_KEY" in page
    assert "Usually takes" not in page
    assert usual_time(spec) is None
    now = timezone.now()
    for number, seconds in enumerate((60, 90, 300)):
        Run.objects.create(
            team=spec.team, version=spec.head, name=spec.name, key=f"20260101-00000{number}-00000000",
            state=State.SUCCEEDED, ended_at=now, summary={"elapsed_ms": seconds * 1000},
        )  # fmt: skip
    assert usual_time(spec) == {"time": 90_000, "count": 3}
    page = cast.client("bob").get(address).content.decode()
    assert "median of 3 runs" in page
    run = Run.objects.create(
        team=spec.team, version=spec.head, name=spec.name, key="20260102-000000-00000000"
    )
    page = f"/t/{spec.team.slug}/runs/{run.key}/"
    assert "usually takes</dt><dd><b>1 min 30 s</b>" in cast.client("bob").get(page).content.decode()
    Run.objects.filter(pk=run.pk).update(state=State.CANCELLED, ended_at=now)
    assert "usually takes" not in cast.client("bob").get(page).content.decode()
