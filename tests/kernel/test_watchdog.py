"""The watchdog's decision: a loop is a whole turn that repeats, and the cause of the end is data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kernel_kit import World, exited, fresh, program, rules, tool
from spak.kernel import watchdog
from spak.kernel.state import Effect
from spak.program import Budgets, Step, Task
from spak.records import Kind

LOOP = ["run.watchdog_loop"]


def trying(*steps: Step) -> Task:
    """A task whose steps are tried again and again."""
    return Task("t", tools=("write", "look", "poll"), steps=steps, edges={"success": "t"})


def scripted(*answers: Any) -> Any:
    """Every effect gets the next answer, from the first again after the last."""
    return lambda effect, count: answers[count % len(answers)]


def codes(run: World) -> list[str]:
    return run.bodies("end")[0].get("codes", [])


def ended(*steps: Step, script: Any, **budgets: int) -> World:
    limits = Budgets(**{"steps": 80, **budgets})
    return World(rules(program(trying(*steps), budgets=limits)), script).run()


SAME = exited(0, key="same", r3="root-0")


@pytest.mark.parametrize("times", [1, 2, 3, 7])
def test_the_number_of_turns_that_end_a_run_is_that_of_config(times: int) -> None:
    run = ended(tool("a", "write"), script=lambda *_: SAME, watchdog=times)
    assert codes(run) == LOOP and len(run.effects) == times


@pytest.mark.parametrize("part", ["task", "action", "key", "r3"])
def test_each_part_of_a_mark_makes_a_difference(part: str) -> None:
    same = {"task": "t", "action": "a", "key": "k", "root": "r"}
    name = "root" if part == "r3" else part
    seen = [watchdog.mark(**{**same, name: f"{number}"}) for number in range(6)]
    assert watchdog.loop(seen, 3, 3) is None
    assert watchdog.loop([watchdog.mark(**same)] * 3, 3, 3) == (1, 3)


def look_elsewhere(effect: Effect, count: int) -> Any:
    """The first step always reads the same; the plan looks at another thing each time."""
    if effect.act == "plan":
        return Kind.PLAN, {"candidates": [{"tool": "look", "args": {"text": f"file {count}"}}]}
    return exited(0, key="same" if effect.step == "first" else f"{count}")


def test_a_try_that_begins_with_the_same_reading_step_is_no_loop() -> None:
    run = ended(tool("first"), Step("p", "plan"), script=look_elsewhere)
    assert codes(run) == ["budget.steps"]


def test_the_same_plan_with_the_same_result_is_a_loop() -> None:
    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            return Kind.PLAN, {"candidates": [{"tool": "write", "args": {"text": "x"}}]}
        return SAME

    run = ended(tool("first"), Step("p", "plan"), script=script)
    assert codes(run) == LOOP
    assert run.bodies("end")[0]["cause"] == {"name": "write", "turn": 2, "times": 3}
    assert "knob" not in run.bodies("end")[0], "a higher limit does not help against a loop"


@pytest.mark.parametrize(("answers", "looped"), [(["a"], True), (["a", "b", "c", "d", "e"], False)])
def test_a_new_answer_is_a_difference_in_the_turn(answers: list[str], looped: bool) -> None:
    def script(effect: Effect, count: int) -> Any:
        if effect.act == "ask":
            return Kind.ACT, {"outcome": "answered", "out": answers[count // 2 % len(answers)]}
        return SAME

    asked = Step("q", "ask", "coder", {"prompt": "x"}, output_var="v")
    run = ended(asked, tool("w", "write"), script=script, steps=28)
    assert codes(run) == (LOOP if looped else ["budget.steps"])


def test_a_turn_that_only_reads_may_repeat_until_it_fills_the_window() -> None:
    run = ended(tool("a", "poll"), script=lambda *_: SAME, window=7)
    assert codes(run) == LOOP and len(run.effects) == 7
    both = ended(tool("a", "poll"), tool("b", "poll", text="other"), script=lambda *_: SAME, window=7)
    assert codes(both) == LOOP and len(both.effects) == 8


def test_one_changing_result_in_the_turn_is_progress() -> None:
    def script(effect: Effect, count: int) -> Any:
        return exited(0, key="same" if effect.step == "a" else f"{count}", r3="root-0")

    assert codes(ended(tool("a", "write"), tool("b", "write"), script=script)) == ["budget.steps"]


@pytest.mark.parametrize(
    ("marks", "size", "times", "found"),
    [
        ("aaa", 12, 3, (1, 3)),
        ("aa", 12, 3, None),
        ("ababab", 12, 3, (2, 3)),
        ("xaybab", 12, 3, None),
        ("aab", 12, 2, None),
        ("xabcabcabc", 12, 3, (3, 3)),
        ("abcabcabc", 2, 3, None),
        ("laylbzlc", 12, 3, None),
        ("abab", 12, 2, (2, 2)),
    ],
)
def test_turns(marks: Sequence[str], size: int, times: int, found: tuple[int, int] | None) -> None:
    assert watchdog.loop(marks, size, times) == found


def test_the_window_of_r1_is_bounded() -> None:
    run = ended(tool("a", "write"), script=fresh, steps=60, window=4)
    assert len(run.state.r1.window) == 12
    assert watchdog.kept(10**9, 10**9) == watchdog.MOST


# ---- rollbacks


def misfits(*tools: str) -> Any:
    """Plans that fit nothing, by the tool that they name; an empty name is an answer that nobody can read."""

    def script(effect: Effect, count: int) -> Any:
        name = tools[count % len(tools)]
        if not name:
            return Kind.ACT, {"outcome": "malformed", "code": "answer.not_json", "out": "let me think"}
        return Kind.PLAN, {"candidates": [{"tool": name, "args": {"text": 5}}]}

    return script


@pytest.mark.parametrize(
    ("tools", "code", "asked"),
    [
        (("write",), "run.rollbacks", 3),
        (("",), "run.rollbacks", 3),
        (("write", "look", ""), "budget.retries", 10),
        (("", "write", "look", "look", "look"), "run.rollbacks", 5),
        (("unknown", "unknown", "unknown"), "run.rollbacks", 3),
    ],
)
def test_rollbacks_are_counted_on_one_tool(tools: tuple[str, ...], code: str, asked: int) -> None:
    task = Task("t", tools=("write", "look"), steps=(Step("p", "plan"),), retries=9)
    run = World(rules(program(task)), misfits(*tools)).run()
    assert (codes(run), len(run.effects)) == ([code], asked)


def test_the_end_names_the_tool_that_was_rolled_back_and_offers_no_knob() -> None:
    task = Task("t", tools=("write", "look"), steps=(Step("p", "plan"),), retries=9)
    run = World(rules(program(task)), misfits("look", "write")).run()
    assert codes(run) == ["budget.retries"]
    run = World(rules(program(task)), misfits("look", "write", "write", "write")).run()
    end = run.bodies("end")[0]
    assert end["cause"] == {"name": "write", "times": 3} and "knob" not in end
    run = World(rules(program(task)), misfits("")).run()
    assert run.bodies("end")[0]["cause"] == {"name": "answer", "times": 3}


def test_a_name_without_end_is_counted_and_recorded_in_part() -> None:
    task = Task("t", tools=("write",), steps=(Step("p", "plan"),), retries=9)
    run = World(rules(program(task)), misfits("x" * 10_000)).run()
    assert codes(run) == ["run.rollbacks"] and len(run.bodies("end")[0]["cause"]["name"]) == 80
