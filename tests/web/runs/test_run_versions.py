"""A run shows the version of the spec that it ran, and its like can be begun with that one or the newest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spakweb.face.runs import run_parts
from spakweb.store.runs.models import Run
from spakweb.work.specs.actions import save_version

pytestmark = pytest.mark.django_db(transaction=True)

OLD = 'task Before { step look: tool.list_files { path: "." } }\n'


def test_a_run_keeps_its_version_and_a_rerun_asks_which(cast: Any, ran: Callable[..., Run]) -> None:
    run, client = ran(OLD), cast.client("bob")
    spec = run.version.spec
    assert "The newest is" not in client.get(run_parts.retry_address(run)).content.decode()
    save_version(cast["alice"], spec, OLD.replace("Before", "After"), 1, "Renamed")
    page = client.get(reverse("spak-run", args=[run.team.slug, run.key])).content.decode()
    graph = page[page.index('id="run-graph"') :]
    assert 'data-task="Before"' in graph and 'data-task="After"' not in graph
    form = client.get(run_parts.retry_address(run)).content.decode()
    assert '<option value="1" selected>' in form and '<option value="2">' in form
    assert "The newest is version 2." in form
    run.refresh_from_db()
    assert run.version.number == 1
