"""`budget_low`: given once when R2 passes its threshold, to an edge of NEXT and to a heuristic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kernel_kit import Budgets, Heuristic, World, fresh, program, rules
from spak.kernel.step import step
from spak.lang import check, parse
from spak.lang.catalog import Catalog
from spak.program import Step, Task

HINT = Heuristic("Write down what you have.", "budget_low")
ALWAYS = Heuristic("Look first.")


def planning(edges: Mapping[str, str] | None = None, **budget: Any) -> Any:
    """A task that plans and writes, again and again, and one that ends the run."""
    task = Task(
        "work",
        tools=("write",),
        steps=(Step("p", "plan"),),
        edges={"success": "work", "fail": "work", "budget_low": "close"} if edges is None else edges,
    )
    end = Task("close", tools=("write",), steps=(Step("q", "plan"),))
    return program(
        task, end, budgets=Budgets(**{"tokens": 100, "steps": 40, **budget}), heuristics=(ALWAYS, HINT)
    )


def spending(made: Any, *tokens: int, failing: bool = False) -> World:
    """A run whose plans cost so many tokens each, and nothing after them."""
    run, given = World(rules(made), fresh), iter(tokens)
    run.feed("genesis", {})
    while not run.state.ended and run.state.r6 is not None:
        effect = run.state.r6
        kind, body = fresh(effect, len(run.records))
        if failing and effect.act == "tool":
            body = {**body, "exit": 1}
        side = {"tokens": next(given, 0)} if effect.act == "plan" else {}
        run.feed(kind, {"of": effect.id, **body}, side)
    return run


def routed(run: World) -> list[tuple[str, str]]:
    return [(body.get("by", body["signal"]), body.get("to", "")) for body in run.bodies("route")]


@pytest.mark.parametrize(("percent", "turns"), [(80, 4), (60, 3), (99, 5)])
def test_the_edge_is_taken_once_the_threshold_is_passed(percent: int, turns: int) -> None:
    run = spending(planning(low_percent=percent), *[20, 20, 20, 20, 19, 0])
    assert run.state.status == "succeeded"
    assert routed(run) == [("success", "work/")] * (turns - 1) + [("budget_low", "close/"), ("success", "")]


def test_it_is_given_once_for_a_crossing() -> None:
    """The edge leads back to the task; from then on verdicts lead, until the budget ends the run."""
    run = spending(planning({"success": "work", "budget_low": "work"}), 50, 40, 5, 4, 1)
    assert [name for name, _ in routed(run)] == ["success", "budget_low", "success", "success", "success"]
    assert run.state.r7.codes == ("budget.tokens",)
    assert run.bodies("inject") == [{"heuristic": 2, "on": ["budget_low"]}]


def test_a_failure_at_that_moment_is_no_retry_and_keeps_its_heuristic() -> None:
    made = planning({"fail": "work", "budget_low": "close"})
    run = spending(made, 90, failing=True)
    first = run.bodies("route")[0]
    assert (first["signal"], first["by"], first["to"]) == ("fail", "budget_low", "close/")
    assert run.state.r7.retries == 3
    assert [body["heuristic"] for body in run.bodies("inject")] == [1, 2]


def test_the_heuristic_is_in_the_next_prompt_and_one_without_when_is_not() -> None:
    run = spending(planning({"success": "work"}), 85, 1, 14)
    assert [body["heuristic"] for body in run.bodies("inject")] == [2]
    prompts = [[item["name"] for item in effect.items] for effect in run.effects if effect.act == "plan"]
    assert ["heuristic.2" in names for names in prompts] == [False, True, False]


def test_without_tokens_in_the_budget_nothing_is_low() -> None:
    run = spending(planning(tokens=0, steps=6), 10**6, 10**6)
    assert "budget_low" not in dict(routed(run)) and not run.bodies("inject")


def test_a_replay_takes_the_same_edge() -> None:
    run = spending(planning(), 81, 1)
    again = World(run.rules, fresh)
    for record in run.records:
        if record.authority == "proposal":
            again.state = step(again.rules, again.state, record).state
    assert again.state == run.state


SPEC = """AGENT A LEVEL 4 {
  CONFIG { MODE full_auto BUDGET { steps: 9 TOKENS } }
  SYSTEM_MODEL M { HEURISTIC "Be brief." WHEN budget_low }
  START -> a
  TASK a { GOAL "x" step one: llm.query { prompt_template: "y" } NEXT { success -> b budget_low -> b } }
  TASK b { GOAL "z" step two: llm.query { prompt_template: "y" } }
}
"""


@pytest.mark.parametrize(
    ("tokens", "codes"), [("tokens: 100", []), ("", ["lang.dead_trigger", "lang.idle_heuristic"])]
)
def test_check_says_where_it_is_never_given(tokens: str, codes: list[str]) -> None:
    found = [item.code for item in check(parse(SPEC.replace("TOKENS", tokens)), Catalog())]
    assert sorted(code for code in found if code in ("lang.dead_trigger", "lang.idle_heuristic")) == codes
