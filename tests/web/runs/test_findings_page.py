"""Findings on the health page: known reads with their records and edit; observed transitions as a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spakweb.face.runs import findings
from spakweb.store.runs.models import Run

Ran = Callable[..., Run]
TWICE = """
AGENT Twice {
  START -> Reads
  TASK Reads {
    step one: tool.list_files { path: "." }
    step two: tool.list_files { path: "." }
    NEXT { success -> Keeps, timeout -> Keeps }
  }
  TASK Keeps { step keep: tool.write_file { path: "out.txt" content: "done" } }
}
"""


def part(cast: Any, run: Run, name: str = "vera", query: str = "") -> Any:
    address = reverse("spak-spec-findings", args=[cast.team.slug, run.version.spec.slug])
    return cast.client(name).get(address + query)


def test_a_known_read_is_shown_with_its_records_and_edit(cast: Any, ran: Ran) -> None:
    run = ran(TWICE)
    assert run.state == "succeeded", run.reason
    answer = part(cast, run)
    text = answer.content.decode()
    assert (answer.status_code, "redundant call" in text) == (200, True)
    assert "Remove step: task Reads, step two" in text
    (found,) = findings.of_version(run.version.spec, None).analysis.findings  # type: ignore[union-attr]
    for seq in found.records[:5]:
        assert reverse("spak-run-record", args=[cast.team.slug, run.key, seq]) in text


def test_the_graph_shows_what_was_taken_and_what_never_was(cast: Any, ran: Ran) -> None:
    run = ran(TWICE)
    text = part(cast, run).content.decode()
    assert "success 1 of 1" in text
    assert "timeout 0 of 1" in text
    assert '<td class="mono">timeout</td>' in text


def test_the_health_page_asks_for_the_findings_of_its_version(cast: Any, ran: Ran) -> None:
    run = ran(TWICE)
    page = cast.client("vera").get(reverse("spak-spec-health", args=[cast.team.slug, run.version.spec.slug]))
    address = reverse("spak-spec-findings", args=[cast.team.slug, run.version.spec.slug])
    assert f'hx-get="{address}?version=1"' in page.content.decode()


@pytest.mark.parametrize("query", ["", "?version=7", "?version=x"])
def test_no_run_is_no_finding(cast: Any, ran: Ran, query: str) -> None:
    run = ran(TWICE, advance=False)
    answer = part(cast, run, query=query)
    assert (answer.status_code, "No run to analyze yet" in answer.content.decode()) == (200, True)


def test_strangers_see_nothing(cast: Any, ran: Ran) -> None:
    assert part(cast, ran(TWICE), "charlie").status_code == 404
