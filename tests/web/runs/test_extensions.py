"""More of a budget for a run under way: asked for on its page and by the API, decided by the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs import limits
from spakweb.store.runs.models import Command, Run
from spakweb.work.runs import actions
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

Ran = Callable[..., Run]
ASKS = """
AGENT Bounded LEVEL 2 {
  CONFIG { BUDGET { steps: 2 extend_percent: PERCENT } }
  START -> go
  TASK go {
    step one: llm.query { role: "a" prompt_template: "First?" output_var: first }
    step two: tool.write_file { path: "1.txt" content: "{{first}}" }
    step three: tool.write_file { path: "2.txt" content: "{{first}}" }
  }
}
"""


@pytest.fixture
def waiting(ran: Ran) -> Run:
    run = ran(ASKS.replace("PERCENT", "100"))
    assert run.state == "waiting"
    return run


def address(run: Run) -> str:
    return reverse("spak-run-control", args=[run.team.slug, run.key])


def advanced(run: Run) -> Run:
    execute.advance(run.key)
    run.refresh_from_db()
    return run


def decided(run: Run) -> list[Any]:
    return [record.body for record, _ in DatabaseLedgers().reader(run.key).read() if record.kind == "extend"]


def test_a_person_extends_a_run_that_waits_and_it_goes_on_for_longer(cast: Any, waiting: Run) -> None:
    alice = cast.client("alice")
    page = reverse("spak-run", args=[waiting.team.slug, waiting.key])
    assert b"Extend a budget" in alice.get(page).content
    done = alice.post(address(waiting), {"do": "extend", "budget": "steps", "by": "1"})
    assert done.status_code == 302
    assert advanced(waiting).state == "waiting"
    assert decided(waiting) == [{"allow": True, "budget": "steps", "by": 1, "limit": 3}]
    control = next(
        record for record, _ in DatabaseLedgers().reader(waiting.key).read() if record.kind == "control"
    )
    assert control.side == {"by": "alice"}
    assert limits.budgets(waiting)["steps"] == 3
    actions.ask(cast["alice"], waiting, "answer", waiting.summary["waiting"]["id"], text="word")
    assert advanced(waiting).state == "succeeded"


def test_what_the_kernel_refuses_is_said_on_the_page(cast: Any, waiting: Run) -> None:
    actions.extend(cast["alice"], waiting, "steps", 3)
    assert advanced(waiting).state == "waiting" and decided(waiting) == []
    command = Command.objects.get(run=waiting, kind="extend")
    assert command.done_at is not None and command.outcome.startswith("budget.cap: ")
    page = cast.client("alice").get(reverse("spak-run", args=[waiting.team.slug, waiting.key]))
    assert "Refused: budget.cap" in page.content.decode()


@pytest.mark.parametrize(("budget", "by"), [("steps", "0"), ("steps", "-5"), ("steps", "x"), ("turns", "1")])
def test_what_makes_no_sense_is_never_asked(cast: Any, waiting: Run, budget: str, by: str) -> None:
    done = cast.client("alice").post(address(waiting), {"do": "extend", "budget": budget, "by": by})
    assert done.status_code == 400 and b"web.run_extension" in done.content
    assert not waiting.commands.exists()


def test_who_may_not_control_a_run_extends_nothing(cast: Any, waiting: Run) -> None:
    for name, status in (("vera", 403), ("charlie", 404)):
        done = cast.client(name).post(address(waiting), {"do": "extend", "budget": "steps", "by": "1"})
        assert done.status_code == status
    assert not waiting.commands.exists()


def test_an_ended_run_is_not_extended(cast: Any, waiting: Run) -> None:
    actions.ask(cast["alice"], waiting, "answer", waiting.summary["waiting"]["id"], text="word")
    assert advanced(waiting).state == "refused"
    done = cast.client("alice").post(address(waiting), {"do": "extend", "budget": "steps", "by": "1"})
    assert done.status_code == 409 and b"web.run_ended" in done.content


def test_a_spec_without_extensions_offers_none(cast: Any, ran: Ran) -> None:
    run = ran(ASKS.replace("PERCENT", "0"))
    page = cast.client("alice").get(reverse("spak-run", args=[run.team.slug, run.key]))
    assert b"Extend a budget" not in page.content
