"""What counts as a failure of a task, and as one that it corrected: by hand, and of a run that really ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command

from spak.records import Kind, Record
from spakweb.face.runs import dashboards
from spakweb.store.ledger.projection import Projection
from spakweb.store.runs.models import Run
from spakweb.work.runs import actions
from spakweb.work.worker import execute

CHECKED = """\
AGENT Heal LEVEL 3 {
  START -> build
  TASK build {
    step look: tool.run { cmd: "test -e ready.txt", on_fail: continue }
    step make: tool.write_file { path: "ready.txt", content: "x" }
    success: exit_code(look) == 0
    NEXT { success -> done, fail -> build }
  }
  TASK done { step last: tool.list_files { path: "." } }
}
"""


def route(step: str, signal: str, to: str = "", **more: Any) -> tuple[Kind, str, dict[str, Any], Any]:
    return Kind.ROUTE, step, {"signal": signal, **({"to": to} if to else {}), **more}, {}


INJECT = (Kind.INJECT, "ask", {"heuristic": 1}, {})
PERSON = (Kind.ACT, "ask", {"outcome": "answered"}, {"by": "alice"})
MODEL = (Kind.ACT, "ask", {"outcome": "answered"}, {"by": "m-1", "ms": 3})
FORTH = route("ask", "success", "test")
BACK, AGAIN = route("test", "fail", "ask"), route("test", "fail", "t/")
ON = route("test", "success", "next/")
WELL = (Kind.END, "test", {"state": "succeeded"}, {})
BADLY: tuple[Any, ...] = (Kind.END, "test", {"state": "failed"}, {})
CASES = {
    "none": ([FORTH, ON], (0, 0, 0)),
    "a step that may fail is no failure of its task": ([route("ask", "fail", "test"), ON], (0, 0, 0)),
    "all failures before it came right": ([FORTH, AGAIN, FORTH, AGAIN, FORTH, ON], (2, 2, 0)),
    "back to who proposed it": ([FORTH, BACK, FORTH, ON], (1, 1, 0)),
    "a step that is its own proposer": ([route("ask", "fail", "ask"), FORTH, ON], (1, 1, 0)),
    "with a heuristic": ([FORTH, AGAIN, INJECT, MODEL, FORTH, ON], (1, 1, 1)),
    "a heuristic before it does not count": ([INJECT, FORTH, AGAIN, FORTH, ON], (1, 1, 0)),
    "a person is no correction of its own": ([FORTH, AGAIN, INJECT, PERSON, FORTH, ON], (1, 0, 0)),
    "a person before it failed": ([PERSON, FORTH, AGAIN, MODEL, FORTH, ON], (1, 1, 0)),
    "out of time is no success": ([FORTH, AGAIN, FORTH, route("test", "timeout", "next/")], (2, 0, 0)),
    "void is measured again": ([route("test", "fail", "test", code="validator.void"), ON], (0, 0, 0)),
    "the end of it": ([FORTH, AGAIN, FORTH, route("test", "success"), WELL], (1, 1, 0)),
    "ended by the watchdog": ([FORTH, AGAIN, FORTH, route("test", "success"), BADLY], (1, 0, 0)),
    "given up": ([FORTH, AGAIN, FORTH, route("test", "fail"), BADLY], (2, 0, 0)),
}


@pytest.mark.parametrize(("records", "wanted"), CASES.values(), ids=CASES)
def test_failures_and_what_became_of_them(records: list[Any], wanted: tuple[int, int, int]) -> None:
    seen = Projection()
    for kind, step, body, side in records:
        authority = "proposal" if kind == Kind.ACT else "commit"
        seen.feed(Record(kind, authority, body, "t", step, side=side))
        seen = Projection(seen.data)  # as a worker finds it that takes the run over
    assert (seen.data["failures"], seen.data["healed"], seen.data["guided"]) == wanted


@pytest.mark.django_db(transaction=True)
def test_of_a_run_that_ran(ran: Callable[..., Run]) -> None:
    """It failed once; its two writes, two looks and one list were permitted, its checks are no actions."""
    run = ran(CHECKED)
    assert run.state == "succeeded"
    told = {name: run.summary[name] for name in ("failures", "healed", "guided", "permitted", "denied")}
    assert told == {"failures": 1, "healed": 1, "guided": 0, "permitted": 5, "denied": 0}
    assert run.summary["steps"] == 7


@pytest.mark.django_db(transaction=True)
def test_what_a_fork_took_over_is_counted_once(cast: Any, ran: Callable[..., Run]) -> None:
    """It failed and came right before the fork: that happened in one run, whichever shows it."""
    parent = ran(CHECKED)
    made = actions.fork(cast["alice"], parent, parent.count - 3)
    execute.advance(made.key)
    made.refresh_from_db()
    assert made.state == "succeeded" and made.summary["failures"] == 1
    assert made.summary["taken"] | {"tokens": 0} == {
        "permitted": 5, "denied": 0, "failures": 1, "healed": 1, "guided": 0, "cost": 0, "tokens": 0,
        "answers": 0, "priced": 0, "axioms": 0, "held": 0, "scored": 0, "micronats": 0,
    }  # fmt: skip
    rebuilt = made.summary
    call_command("rebuild", made.key)
    made.refresh_from_db()
    assert made.summary == rebuilt
    (one,) = dashboards.health(cast.team)
    assert (one.count, one.failures, one.healed, one.permitted) == (2, 1, 1, 5)
    Run.objects.filter(pk=made.pk).update(
        summary={
            **rebuilt,
            "tokens": {"input": 90, "output": 10},
            "taken": {"tokens": {"input": 60, "output": 10}},
        }
    )
    assert dashboards.health(cast.team)[0].tokens == 30
