"""What the editor shows of a task's last run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spakweb.store.runs.models import Run
from spakweb.work.runs.actions import start
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = 'task Echo { step say: tool.run { cmd: "echo spoken here" } success: exit_code(say) == 0 }'


def asked(cast: Any, spec: Any, body: Any, who: str = "vera") -> Any:
    address = reverse("spak-editor-ask", args=[cast.team.slug, spec.slug, "last"])
    return cast.client(who).post(address, json.dumps(body), content_type="application/json")


def test_the_newest_run_that_entered_the_task(cast: Any, ran: Callable[..., Run]) -> None:
    first = ran(TEXT)
    spec = first.version.spec
    found = asked(cast, spec, {"task": "Echo"}).json()
    assert (found["run"]["key"], found["run"]["version"]) == (first.key, 1)
    said = found["entries"][0]
    assert "echo spoken here" in said["input"]
    assert said["output"] == "spoken here\n"
    start(cast["alice"], spec)  # it has entered nothing yet
    assert asked(cast, spec, {"task": "Echo"}).json() == found
    later = start(cast["alice"], spec)
    execute.advance(later.key)
    assert asked(cast, spec, {"task": "Echo"}).json()["run"]["key"] == later.key
    assert asked(cast, spec, {"task": "Gone"}).json() == {"run": None, "entries": []}


def test_requests_that_are_none(cast: Any, ran: Callable[..., Run]) -> None:
    spec = ran(TEXT, advance=False).version.spec
    assert asked(cast, spec, {"task": 7}).json()["code"] == "web.request"
    assert asked(cast, spec, {"task": "Echo"}, "charlie").status_code == 404
