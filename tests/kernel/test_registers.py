"""The registers as the seed has them, and R4 with the schema and the payload, bounded."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_kit import TEXT, World, exited, fresh, program, rules, tool
from spak import canon
from spak.kernel import fit
from spak.kernel.state import Effect, State, registers
from spak.program import Budgets, Step, Task
from spak.records import Kind


def test_r1_has_deadline_and_loop_counter_and_r2_what_is_left() -> None:
    budgets = Budgets(steps=9, elapsed_ms=500, tokens=100)
    task = Task("t", steps=(tool("a", "write"),), edges={"success": "t"})
    made = World(rules(program(task, budgets=budgets)), lambda *_: exited(0, key="k", r3="r"))
    made.feed(Kind.GENESIS, {})
    for _ in range(2):
        assert made.state.r6 is not None
        answer = {"of": made.state.r6.id, "outcome": "exited", "exit": 0, "key": "k", "r3": "r"}
        made.feed(Kind.ACT, answer, {"ms": 20, "tokens": 30})
    found = registers(made.state, budgets)
    r1 = found["R1"]
    assert (r1["elapsed_ms"], r1["deadline_ms"]) == (40, 500)
    assert (r1["steps"], r1["steps_left"]) == (2, 7)
    assert (r1["loops"], r1["loop_limit"]) == (2, 3)
    assert found["R2"] == {"used": 60, "remaining": 40}
    assert (found["R7"]["task_id"], found["R7"]["depth"], found["R7"]["tokens"]) == ("t", 3, 60)


def test_what_has_no_limit_has_nothing_left_to_name() -> None:
    found = registers(State(), Budgets(steps=0, elapsed_ms=0))
    assert found["R1"]["deadline_ms"] is None and found["R1"]["steps_left"] is None
    assert found["R2"] == {"used": 0, "remaining": None}
    canon.dumps(registers(State()))


def refused(*candidates: Any) -> World:
    def script(effect: Effect, count: int) -> Any:
        return Kind.PLAN, {"candidates": list(candidates)}

    task = Task("t", tools=("write",), steps=(Step("p", "plan"),))
    return World(rules(program(task)), script).run()


def test_r4_names_the_expected_schema_and_the_received_payload() -> None:
    error = refused({"tool": "write", "args": {"text": 5}}).state.r4
    assert error == {
        "code": "schema.type",
        "expected": "string",
        "received": "integer",
        "hint": error["hint"] if error else "",
        "schema": TEXT,
        "payload": {"text": 5},
    }


def test_the_prompt_and_the_route_show_the_payload_too() -> None:
    made = refused({"tool": "write", "args": {"wrong": 1}})
    assert made.bodies("route")[0]["r4"]["payload"] == {"wrong": 1}
    told = [item["text"] for item in made.effects[1].items if item["name"] == "error"]
    assert '"payload":{"wrong":1}' in told[0] and '"schema":' in told[0]


@pytest.mark.parametrize(
    "payload",
    [
        {"text": "x" * 100_000},
        {"text": ["\u20ac" * 300] * 300},
        {f"k{number}": number for number in range(2000)},
        "\U0001f600" * 5000,
        [[[["deep" * 1000]]]],
    ],
)
def test_a_payload_is_bounded(payload: Any) -> None:
    found = fit.bounded(payload)
    assert len(canon.dumps(found).decode()) <= 2 * fit.BOUND
    assert fit.CUT in canon.dumps(found).decode()
    error = refused({"tool": "write", "args": {"text": 5, "more": payload}}).state.r4
    assert len(canon.dumps(error)) <= 4 * fit.BOUND


def test_a_short_payload_is_whole() -> None:
    assert fit.bounded({"a": ["x" * 1000]}) == {"a": ["x" * 1000]}


def test_an_answer_that_nobody_can_read_is_its_own_payload() -> None:
    def script(effect: Effect, count: int) -> Any:
        if effect.act == "ask":
            return Kind.ACT, {"outcome": "malformed", "code": "answer.not_json", "out": "let me think"}
        return fresh(effect, count)

    asked = Step("q", "ask", "coder", {"prompt": "x"})
    made = World(rules(program(Task("t", steps=(asked,), retries=9))), script).run()
    assert made.state.r4 is not None and made.state.r4["payload"] == "let me think"
    assert made.bodies("end")[0]["cause"] == {"name": "answer", "times": 3}
