"""A spec that imports another of its team: the form reads it, it runs, the pages show all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spakweb.face.runs import run_parts
from spakweb.store.runs.models import Run, State
from spakweb.work.specs.actions import create_spec, save_version
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

SHARED = 'TASK finish {\n  step two: tool.write_file { path: "size.txt" content: "{{input.size}}" }\n}\n'
MAIN = """\
IMPORT "shared_end.spak"
AGENT Main LEVEL 2 {
  INPUTS { size: int = 3 }
  START -> look
  TASK look {
    step one: tool.list_files { path: "." }
    NEXT { success -> finish }
  }
}
"""


def test_a_spec_with_an_import_is_started_shown_and_compared(
    cast: Any, ran: Callable[..., Run], ground: None
) -> None:
    create_spec(cast["bob"], cast.team, "shared_end", SHARED)
    spec = create_spec(cast["alice"], cast.team, "main", MAIN)
    client, team = cast.client("bob"), cast.team.slug
    assert 'name="input.size"' in client.get(reverse("spak-run-new", args=[team, "main"])).content.decode()
    begin = reverse("spak-run-start", args=[team, "main"])
    assert client.post(begin, {"input.size": "large"}).status_code == 400
    client.post(begin, {"version": "1", "input.size": "7"})
    run = Run.objects.get()

    for state in (State.QUEUED, State.SUCCEEDED):
        page = client.get(run_parts.address(run)).content.decode()
        assert run.state == state, run.summary
        assert 'data-task="finish"' in page and "defined nowhere" not in page
        execute.advance(run.key)
        run.refresh_from_db()
    save_version(cast["alice"], spec, MAIN.replace("= 3", "= 4"), 1)
    asked = reverse("spak-spec-compare", args=[team, "main"])
    page = client.get(asked).content.decode()
    assert "finish" in page and "defined nowhere" not in page
    other = ran(MAIN.replace("= 3", "= 4"))
    asked = reverse("spak-run-compare", args=[team])
    text = client.get(asked, {"one": run.key, "two": other.key}).content.decode()
    assert "Their specs differ" in text and 'data-task="finish"' in text
