"""Polled steps: done again until exit 0 or until the limit, with a due time that the runner waits for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kernel_kit import World, exited, fresh, program, rules, tool
from spak.kernel.state import Effect
from spak.program import Budgets, Poll, Step, Task
from spak.records import Kind


def polled(limit: int, every_ms: int = 5000, **more: Any) -> Step:
    return replace(tool("s", "write", **more), poll=Poll(every_ms, limit))


def exits(*codes: int) -> Any:
    """The exits of the polls in order, the last one for all that follow; nothing else changes."""
    return lambda effect, count: exited(codes[min(count, len(codes) - 1)], key="same", r3="root-0")


def run(step: Step, script: Any, edges: dict[str, str] | None = None, **budgets: int) -> World:
    tasks = [Task("t", steps=(step,), edges=edges or {}), Task("end", steps=(tool("e"),))]
    return World(rules(program(*tasks, budgets=Budgets(**budgets))), script).run()


def test_a_polled_step_is_done_again_until_exit_0() -> None:
    made = run(polled(9), exits(1, 1, 1, 1, 0))
    assert made.state.status == "succeeded" and len(made.effects) == 5
    assert [body.get("poll") for body in made.bodies("route")] == [1, 2, 3, 4, None]
    assert len({effect.id for effect in made.effects}) == 5, "each poll has a permit of its own"


def test_a_poll_is_due_an_interval_after_the_one_before() -> None:
    made = run(polled(9), exits(1, 1, 0))
    asked = [record.at for record in made.records if record.kind == Kind.ACT]
    assert [effect.due for effect in made.effects] == [0, asked[0] + 5000, asked[1] + 5000]


@pytest.mark.parametrize(
    ("on_fail", "edges", "codes", "status"),
    [
        ("stop", {}, ["run.poll_limit"], "failed"),
        ("continue", {}, [], "succeeded"),
        ("stop", {"fail": "end"}, [], "succeeded"),
    ],
)
def test_the_limit_fails_the_step_with_a_code_of_its_own(
    on_fail: str, edges: dict[str, str], codes: list[str], status: str
) -> None:
    step_ = replace(polled(3), on_fail=on_fail)  # type: ignore[arg-type]
    script = lambda effect, count: (exits(1) if effect.step == "s" else fresh)(effect, count)  # noqa: E731
    made = run(step_, script, edges)
    assert (made.state.status, list(made.state.r7.codes)) == (status, codes)
    assert len([effect for effect in made.effects if effect.step == "s"]) == 3
    if codes:
        assert made.state.r4 is not None and made.state.r4["code"] == "run.poll_limit"
        assert made.bodies("end")[0]["cause"] == {"times": 3}


def test_polls_are_no_loop_and_cost_steps() -> None:
    assert run(polled(40), exits(1), steps=20).state.r7.codes == ("budget.steps",)


def test_a_step_that_is_entered_again_has_all_its_polls_again() -> None:
    task = Task("t", steps=(polled(3),), edges={"success": "end", "fail": "t"}, retries=1)
    script = lambda effect, count: exited(1, key=f"{count}", r3=f"root-{count}")  # noqa: E731
    made = World(rules(program(task, Task("end", steps=(tool("e"),)))), script).run()
    assert made.state.r7.codes == ("budget.retries",)
    assert [body.get("poll") for body in made.bodies("route")] == [1, 2, None, 1, 2, None]


def test_a_poll_that_is_rolled_back_ends_the_polling() -> None:
    def script(effect: Effect, count: int) -> Any:
        return exited(1, r3="root-0") if count == 0 else (Kind.ACT, {"outcome": "timeout"})

    made = run(polled(9), script)
    assert made.state.r7.codes == ("tool.timeout",) and made.state.r7.polls == 0
