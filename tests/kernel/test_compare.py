"""Conditions compare numbers with numbers; a text that is none is an error that names what was compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kernel_kit import World, program, rules
from spak.kernel.state import Effect
from spak.program import All, AnyOf, Atom, Compare, Condition, Not, Ref, Step, Task, Template
from spak.records import Kind

LINES = Ref("metric.lines")
IS_TWO = Compare("==", LINES, 2)
THERE = Atom("file_exists", ("a",))


def judged(condition: Condition, out: Any, there: bool = False, **task: Any) -> World:
    """A run whose check `lines` gives `out`, and whose success is the condition."""
    count = Step("lines", "tool", "look", {"text": "a"}, metric="metric.lines", on_fail="continue")
    made = program(
        Task("t", steps=(count, Step("c", "check")), success=condition, **task),
        Task("mend", steps=(Step("q", "ask", "", {"prompt": Template(("Mend: ", Ref("error")))}),)),
    )

    def script(effect: Effect, number: int) -> tuple[Kind, Mapping[str, Any]] | None:
        if effect.act == "check":
            return Kind.ACT, {"facts": [there]}
        return (
            (Kind.ACT, {"outcome": "exited", "exit": 0, "key": "k", "out": out})
            if effect.act == "tool"
            else None
        )

    return World(rules(made), script).run()


@pytest.mark.parametrize("out", ["2", " 2\n", "2.0", "2e0"])
def test_a_whole_text_that_is_a_number_is_one(out: str) -> None:
    assert judged(IS_TWO, out).state.status == "succeeded"


@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("out", ["2 a\n", "", "two", "2;3", "0x2", "1e999", "２", "٢"])
def test_a_text_that_is_no_number_is_reported(op: Any, out: str) -> None:
    run = judged(Compare(op, LINES, 2), out)
    assert (run.state.status, run.state.r7.codes) == ("failed", ("run.not_a_number",))
    error = run.state.r4
    assert error is not None and error["code"] == "run.not_a_number"
    assert f"lines {op} 2" in error["hint"] and error["expected"] == "a number to compare with 2"
    assert error["received"] == f'"{out.strip()}"'


def test_the_number_may_stand_on_the_left_and_a_text_may_be_long() -> None:
    run = judged(Compare("<", 3, LINES), "x" * 5000)
    assert run.state.r4 is not None and "3 < lines" in run.state.r4["hint"]
    assert len(run.state.r4["received"]) < 100
    run = judged(IS_TWO, {"$blob": "b", "size": 70_000})
    assert run.state.r4 is not None and "too long" in run.state.r4["received"]


@pytest.mark.parametrize(
    ("condition", "there", "code"),
    [
        (Not(IS_TWO), False, "run.not_a_number"),
        (All((IS_TWO, THERE)), True, "run.not_a_number"),
        (All((IS_TWO, THERE)), False, "run.success_unmet"),
        (AnyOf((IS_TWO, THERE)), False, "run.not_a_number"),
        (AnyOf((IS_TWO, THERE)), True, ""),
        (Not(All((IS_TWO, THERE))), False, ""),
    ],
)
def test_other_parts_of_a_condition_may_decide_it(condition: Condition, there: bool, code: str) -> None:
    run = judged(condition, "2 a", there)
    assert run.state.r7.codes == ((code,) if code else ())
    assert run.state.status == ("failed" if code else "succeeded")


@pytest.mark.parametrize(
    ("condition", "out"), [(Compare("==", LINES, "2 a"), "2 a"), (Compare("!=", LINES, "x"), "y")]
)
def test_texts_are_compared_with_texts(condition: Condition, out: str) -> None:
    assert judged(condition, out).state.status == "succeeded"


def test_whoever_mends_it_sees_what_was_compared() -> None:
    run = judged(IS_TWO, "2 a", edges={"fail": "mend", "success": "mend"})
    pending = run.state.r6
    assert pending is not None and pending.act == "ask"
    assert "2 a" in pending.items[-1]["text"] and "lines == 2" in pending.items[-1]["text"]


def test_an_invariant_that_cannot_be_answered_is_broken() -> None:
    step = Step("s", "tool", "write", {"text": "x"})
    first = Step("f", "tool", "look", {"text": "x"}, output_var="size")
    invariant = Compare("<", Ref("size"), 9)
    made = program(
        Task("t", steps=(first,), edges={"success": "u"}), Task("u", steps=(step,), invariant=invariant)
    )

    def script(effect: Effect, number: int) -> tuple[Kind, Mapping[str, Any]]:
        return Kind.ACT, {
            "outcome": "exited",
            "exit": 0,
            "key": "k",
            "out": "3 kB",
            "r3": "root-1",
            "facts": [],
        }

    run = World(rules(made), script).run()
    assert (run.state.status, run.state.r7.codes) == ("failed", ("run.not_a_number",))
    assert run.bodies("route")[-1]["txn"] == "rollback" and run.state.r3 == "root-0"
