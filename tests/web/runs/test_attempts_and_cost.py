"""Single attempts and steps on the page of a run: a choice of attempts, what each step cost, a skip."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.urls import reverse

from spak.records import Record
from spakweb.face.runs import record_parts, run_parts, timeline
from spakweb.store.ledger import projection
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, RunRecord
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

Ran = Callable[..., Run]
LOOP = """\
AGENT Loop LEVEL 2 {
  START -> first
  TASK first {
    step look: tool.run { cmd: "ls" }
    success: file_exists("never")
    NEXT { fail -> first }
  }
}
"""
ASKING = """\
task Talk {
  step hear: llm.query { prompt: "A word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "<{{word}}>" }
  success: file_contains("word.txt", "<")
}
"""


def page(cast: Any, run: Run, query: str) -> str:
    address = reverse("spak-run", args=[run.team.slug, run.key])
    return cast.client("alice").get(f"{address}{query}").content.decode()


def test_a_record_offers_the_other_attempts_of_its_step(cast: Any, ran: Ran) -> None:
    run = ran(LOOP)
    permits = RunRecord.objects.filter(run=run, kind="permit", task="first", step="look").order_by("seq")
    seqs = list(permits.values_list("seq", flat=True))
    assert len(seqs) > 2
    for at, seq in enumerate(seqs, 1):
        text = page(cast, run, f"?tab=records&seq={seq + 1}")  # what answered it belongs to it
        options = re.findall(r'<option value="(\d+)"( selected)?>(\d+) of (\d+)</option>', text)
        assert [(int(value), int(number)) for value, _, number, _ in options] == list(
            zip(seqs, range(1, len(seqs) + 1), strict=True)
        )
        assert [int(number) for _, now, number, _ in options if now] == [at]
    assert "Attempt of this step" not in page(cast, run, "?tab=records&seq=0")


def test_the_table_of_steps_shows_where_tokens_and_money_went(cast: Any, ran: Ran) -> None:
    def bar(step: str, tokens: int, cost: int = 0) -> timeline.Bar:
        return timeline.Bar(1, "t", step, 0, 1, tokens=tokens, cost=cost)

    free = timeline.lines_of([bar("a", 0), bar("b", 1), bar("c", 100), bar("c", 300), bar("d", 200)])
    assert [(line.step, line.tokens, line.heat) for line in free] == [
        ("a", 0, 0), ("b", 1, 1), ("c", 400, 4), ("d", 200, 2),
    ]  # fmt: skip
    paid = timeline.lines_of([bar("a", 900, 10), bar("b", 1, 40)])
    assert [line.heat for line in paid] == [1, 4]
    assert 'Longest</th><th scope="col" class="num">Tokens' not in page(cast, ran(LOOP), "?tab=timeline")


def test_the_table_of_tasks_shows_tokens_and_cost_of_each(cast: Any, ran: Ran) -> None:
    """In the page, in what scripts poll and in the projection that the stream sends from."""
    run = ran(LOOP)
    seen = projection.Projection(run.summary)
    used = {"tokens": 1234, "usage": {"input": 1200, "output": 34}, "cost_nanousd": 1_500_000}
    for side in (used, used, {"tokens": "odd"}):
        seen.feed(Record("act", "proposal", {}, "first", "look", side=side))
    seen.feed(Record("act", "proposal", {}, "never entered", "x", side=used))
    assert projection.spent(seen.data["nodes"]["first"])[1:] == [2468, 3_000_000, 0]
    Run.objects.filter(pk=run.pk).update(summary=seen.data)
    run.refresh_from_db()
    assert run_parts.live(run)["nodes"]["first"][2:] == [2468, 3_000_000, 0]
    assert '<td class="num spent" data-label="Tokens">2,468 · $0.0030</td>' in page(cast, run, "")


def facts_of(text: str) -> dict[str, str]:
    """The rows under "Tokens and cost", by their names."""
    _, found, after = text.partition("<h3>Tokens and cost</h3>")
    rows = re.findall(r'<dt class="mono">(.*?)</dt><dd class="mono">(.*?)</dd>', after.partition("</dl>")[0])
    return dict(rows) if found else {}


@pytest.mark.parametrize(
    ("side", "shown"),
    [
        (
            {"tokens": 1234, "usage": {"input": 1200, "output": 34, "cached": 7}, "cost_nanousd": 4_500},
            {"tokens": "1,234", "of the prompt": "1,200", "of the answer": "34", "read from a cache": "7",
             "cost": "$0.0000045"},
        ),
        ({"tokens": 9, "cost_nanousd": 0}, {"tokens": "9", "cost": "$0.00"}),
        ({"tokens": 9, "usage": "odd"}, {"tokens": "9", "cost": "not available"}),
        ({"tokens": "odd", "by": "alice"}, {}),
    ],
)  # fmt: skip
def test_the_page_of_a_record_shows_its_tokens_and_cost(
    cast: Any, ran: Ran, side: dict[str, Any], shown: dict[str, str]
) -> None:
    run = ran(LOOP)
    seq = run.records.filter(kind="act").first().seq
    record = Record("act", "proposal", {"out": "x"}, "first", "look", seq=seq, side=side)
    blobs = DatabaseLedgers().reader(run.key).blobs
    text = render_to_string("runs/_parts.html", {"parts": record_parts.parts(run, record, blobs)})
    assert facts_of(text) == shown
    assert not shown or "cost_nanousd" not in text, "told once"


def test_a_record_of_the_runner_is_called_no_proposal(cast: Any, ran: Ran) -> None:
    run = ran(ASKING, mode="stepwise")
    address = reverse("spak-run-answer", args=[run.team.slug, run.key])
    cast.client("alice").post(address, {"of": run.summary["waiting"]["id"], "text": "yes"})
    execute.advance(run.key)
    resumed = run.records.get(kind="resume")
    text = page(cast, run, f"?tab=records&seq={resumed.seq}")
    assert "Note of the runner" in text and "Proposal from" not in text


def test_a_waiting_step_is_skipped_with_an_empty_answer(cast: Any, ran: Ran) -> None:
    run = ran(ASKING, mode="stepwise")
    assert "Skip this step" in page(cast, run, "") and "data-confirm=" in page(cast, run, "")
    address = reverse("spak-run-answer", args=[run.team.slug, run.key])
    given = {"of": run.summary["waiting"]["id"], "skip": "1"}
    assert cast.client("vera").post(address, given).status_code == 403
    assert cast.client("alice").post(address, given).status_code == 302
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == "succeeded"
    answered = run.records.get(step="hear", kind="act")
    assert b'"out":""' in bytes(answered.line) and b'"by":"alice"' in bytes(answered.line)
