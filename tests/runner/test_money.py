"""A budget in money: it ends a run before it is passed, in exact integers; what nobody knows is no zero."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from host_kit import PERMITS, Look
from law_kit import under
from spak import begin as begin_
from spak.cancel import Cancel
from spak.errors import UnavailableError
from spak.kernel.replay import replay
from spak.lang import parse
from spak.lang.catalog import Catalog, NamedEntry
from spak.ledger.files import FileLedgers
from spak.ports import Answer, Prompt
from spak.program import compile as compile_program
from spak.records import Kind
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.runner.views.run_json import metrics
from spak.workspace import Workspace

SPEC = """
AGENT Payer LEVEL 5 {
  CONFIG { MODE full_auto BUDGET { cost: COST } }
  START -> one
  TASK one { GOAL "Look." TOOLS [look] NEXT { success -> two } }
  TASK two { GOAL "Look." TOOLS [look] NEXT { success -> one } }
}
"""


@dataclass
class Paid:
    """Each answer costs `cost` nano-dollars (None: nobody knows), each call `most` at most."""

    cost: int | None
    most: int | None
    entry: NamedEntry = field(default_factory=lambda: NamedEntry("paid", "a script"))
    asked: int = 0
    counted: list[int] = field(default_factory=list)

    def check(self) -> None: ...

    def bound(self, prompt: Prompt, input_tokens: int) -> int | None:
        self.counted.append(input_tokens)
        return self.most

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        self.asked += 1
        call = {"tool": "look", "args": {"text": str(self.asked)}}
        usage = {"input": 100, "output": 20, "cached": 90, "cache_write": 5}
        return Answer(json.dumps(call), usage, "paid-1", cost_nanousd=self.cost)


def begin(folder: Path, backend: Any, cost: int) -> Run:
    catalog = Catalog(tools={"look": Look().entry})
    place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
    spec = SPEC.replace("COST", str(cost))
    body = genesis(spec, catalog, {}, place.snapshot(), 5, {"run": "run-1"}, law=under(PERMITS))
    host = Host(tools={"look": Look()}, backend=backend)
    return Run.create(FileLedgers(folder), "run-1", body, host, place)


@pytest.mark.parametrize(
    ("budget", "cost", "most", "answers"),
    [
        (10, 1_000, 1_000, 10),  # to the last nano-dollar
        (10, 1_000, 1_001, 9),
        (10, 999, 1_001, 10),
        (10, 3_000, 4_000, 3),
        (10, 1, 10_001, 0),
        (10, None, 4_000, 2),  # no usage: the worst is taken
    ],
)
def test_it_ends_before_it_is_passed(
    tmp_path: Path, budget: int, cost: int | None, most: int, answers: int
) -> None:
    backend = Paid(cost, most)
    run = begin(tmp_path, backend, budget)
    assert run.advance("full_auto") == "ended"
    assert (run.state.status, run.state.r7.codes) == ("refused", ("budget.cost",))
    assert run.state.r7.knob == f"BUDGET {{ cost: {budget * 2} }}"
    assert backend.asked == answers
    assert run.state.r7.cost <= budget * 1_000
    found = replay(record for record, _ in run.ledger.read())
    assert found.difference is None and found.state == run.state
    run.close()


def test_the_sums_by_task_and_in_all(tmp_path: Path) -> None:
    run = begin(tmp_path, Paid(1_000, 1_000), 3)
    run.advance("full_auto")
    seen = metrics(run.state)
    assert (seen["calls"], seen["tokens"], seen["cost_nanousd"]) == (3, 360, 3_000)
    assert seen["by_task"] == {
        "one": {"calls": 2, "tokens": 240, "cost_nanousd": 2_000},
        "two": {"calls": 1, "tokens": 120, "cost_nanousd": 1_000},
    }
    run.close()


def test_the_schema_and_a_quarter_are_counted_too(tmp_path: Path) -> None:
    from spak import tokens

    backend = Paid(1_000, 1_000)
    run = begin(tmp_path, backend, 3)
    prompt = run.performer.prompt(run.pending())
    run.advance("semi_auto", 1)
    assert prompt.schema and backend.counted[0] > tokens.count(prompt.items) * 5 // 4
    run.close()


def test_an_unknown_price_stops_the_run_and_a_person_may_go_on(tmp_path: Path) -> None:
    backend = Paid(None, None)
    run = begin(tmp_path, backend, 10)
    with pytest.raises(UnavailableError) as caught:
        run.advance("full_auto")
    assert caught.value.code == "llm.no_price" and backend.asked == 0
    run.performer.host = Host(tools={"look": Look()})
    assert run.advance("stepwise") == "waiting"
    run.answer('{"tool": "look", "args": {}}')
    assert run.advance("stepwise") == "waiting" and run.state.r7.cost == 0
    assert {r.body["act"] for r, _ in run.ledger.read() if r.kind == Kind.CONTEXT} == {"send"}
    run.close()


def test_a_run_without_a_price_does_not_begin() -> None:
    catalog = Catalog(tools={"look": Look().entry})
    bounded, free = (compile_program(parse(SPEC.replace("COST", cost)), catalog, {}) for cost in ("5", "0"))
    begin_.priced(free, Paid(None, None))
    begin_.priced(bounded, Paid(None, 7))
    with pytest.raises(UnavailableError) as caught:
        begin_.priced(bounded, Paid(None, None))
    assert caught.value.code == "llm.no_price"
