"""Plans of a search: verdicts that come with a candidate, and refusals that come without one."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_kit import World, fresh, looping, planned, program, rules, tool
from spak.kernel.state import Effect
from spak.program import Proposing, Step, Task
from spak.records import Kind


def answering(body: dict[str, Any]) -> Any:
    def script(effect: Effect, count: int) -> Any:
        return (Kind.PLAN, body) if effect.act == "plan" else fresh(effect, count)

    return script


def searching(body: dict[str, Any], edges: dict[str, str]) -> World:
    task = Task(
        "t",
        tools=("write",),
        steps=(Step("p", "plan", "repair"),),
        edges=edges,
        proposing=Proposing("repair"),
    )
    return World(rules(program(task, Task("end", steps=(tool("s"),)))), answering(body)).run()


REFUSAL = {"candidates": [], "refusal": {"code": "repair.exhausted", "message": "none", "hint": ""}}


def test_a_refusal_of_a_search_ends_the_run_as_refused() -> None:
    run = searching(REFUSAL, {"success": "end"})
    assert run.state.status == "refused"
    assert run.bodies("end")[0]["codes"] == ["repair.exhausted"]


def test_it_goes_along_the_edge_for_fail_where_there_is_one() -> None:
    run = searching(REFUSAL, {"success": "end", "fail": "end"})
    assert run.state.status == "succeeded"
    assert run.bodies("route")[0] == {"signal": "fail", "code": "repair.exhausted", "to": "end/"}


@pytest.mark.parametrize("code", ["", "exhausted", "a.b.c", 7, None, "x" * 200 + ".y", "A.B", "repair.\n"])
def test_a_code_of_another_form_is_not_taken(code: Any) -> None:
    run = searching({"candidates": [], "refusal": {"code": code}}, {"success": "end"})
    assert run.bodies("end")[0]["codes"] == ["run.no_candidates"]


@pytest.mark.parametrize("refusal", [None, [], "repair.exhausted", 3])
def test_a_refusal_of_another_shape_is_not_taken(refusal: Any) -> None:
    run = searching({"candidates": [], "refusal": refusal}, {"success": "end"})
    assert run.bodies("end")[0]["codes"] == ["run.no_candidates"]


def test_a_candidate_whose_verdicts_are_ok_is_taken() -> None:
    checks = [{"name": "hidden", "ok": True}, {"name": "agrees", "ok": True}]
    run = World(
        rules(looping()),
        answering({"candidates": [{"tool": "write", "args": {"text": "x"}, "checks": checks}]}),
    ).run()
    assert run.state.status == "succeeded"


@pytest.mark.parametrize(
    "checks", [[{"name": "hidden", "ok": False}], [{"ok": 1}], ["ok"], [{}], "all", None, 1]
)
def test_a_candidate_with_a_verdict_that_is_not_ok_is_not(checks: Any) -> None:
    candidate = {"tool": "write", "args": {"text": "x"}, "checks": checks}

    def script(effect: Effect, count: int) -> Any:
        return planned(candidate) if effect.act == "plan" else fresh(effect, count)

    run = World(rules(looping()), script).run()
    assert run.bodies("select")[0] == {"n": 1, "rejected": ["plan.unproved"], "i": -1}
