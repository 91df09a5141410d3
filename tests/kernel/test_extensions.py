"""Extensions of a budget: before it is used up, within the cap of a run, by a person or by the law."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_kit import PERMITS, Budgets, World, fresh, program, rules, tool
from spak.kernel.budget import extend
from spak.kernel.step import step
from spak.policy.closed_predicates import closed
from spak.program import Task

STEPS = 10


def counting(law: str = "", **budget: Any) -> World:
    """A run of many steps that nothing but its budget of steps ends."""
    made = program(
        Task("t", steps=tuple(tool(f"s{n}") for n in range(100))),
        budgets=Budgets(**{"steps": STEPS, "extend_percent": 50, **budget}),
    )
    run = World(rules(made, law=PERMITS + "\n" + law), fresh)
    run.feed("genesis", {})
    return run


def ahead(run: World, count: int) -> World:
    """The run after so many more steps, if it goes on."""
    for number in range(count):
        if run.state.r6 is not None:
            kind, body = fresh(run.state.r6, number + len(run.records))
            run.feed(kind, {"of": run.state.r6.id, **body}, {"ms": 1})
    return run


def ask(run: World, by: Any, budget: Any = "steps") -> dict[str, Any]:
    """What the kernel decides on a person's extension."""
    run.feed("control", {"extend": {"budget": budget, "by": by}})
    return dict(run.bodies("extend")[-1])


def test_a_run_goes_on_for_as_many_steps_as_were_added() -> None:
    run = ahead(counting(), 9)
    pending = run.state.r6
    assert ask(run, 3) == {"allow": True, "budget": "steps", "by": 3, "limit": 13}
    assert run.state.r6 == pending
    ahead(run, 20)
    assert run.state.r1.steps == 13 and run.state.r7.codes == ("budget.steps",)


def test_at_zero_there_is_no_rescue() -> None:
    run = ahead(counting(tokens=100), STEPS)
    assert run.state.ended
    before = run.state
    run.feed("control", {"extend": {"budget": "steps", "by": 3}})
    assert run.state == before and not run.bodies("extend")
    spent = counting(tokens=100)
    spent.state = spent.state.__class__(**{**vars(spent.state), "r2": 100})
    assert ask(spent, 5, "tokens")["code"] == "budget.used_up"


def test_the_cap_holds_over_the_whole_run() -> None:
    """Five extensions of a fifth each, of which the cap allows two and a half."""
    run, found = counting(), []
    for _ in range(5):
        found.append(ask(ahead(run, 2), 2))
    assert [body["allow"] for body in found] == [True, True, False, False, False]
    assert found[2] == {
        "allow": False, "budget": "steps", "by": 2, "code": "budget.cap",
        "knob": "BUDGET { extend_percent: 60 }",
    }  # fmt: skip
    assert ask(run, 1)["allow"] is True
    ahead(run, 40)
    assert run.state.r1.steps == 15 and run.state.r7.codes == ("budget.steps",)


@pytest.mark.parametrize(
    ("budget", "by"),
    [
        ("steps", 0), ("steps", -5), ("steps", True), ("steps", "3"), ("steps", 2.5), ("steps", None),
        ("rollbacks", 3), ("watchdog", 1), ("extend_percent", 50), (None, 3), (["steps"], 3), ("tokens", 3),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_and_changes_nothing(budget: Any, by: Any) -> None:
    run = counting()
    before = run.state.r7.extended
    assert ask(run, by, budget)["code"] == "budget.extension"
    assert run.state.r7.extended == before == {}
    assert run.state.status == "running"


@pytest.mark.parametrize("extend_", ["", None, 3, [], {}])
def test_step_is_total_over_extensions(extend_: Any) -> None:
    run = counting()
    run.feed("control", {"extend": extend_})
    assert run.bodies("extend")[-1]["code"] == "budget.extension" and run.state.status == "running"


def test_without_a_cap_in_config_nothing_is_added() -> None:
    assert ask(counting(extend_percent=0), 1)["code"] == "budget.cap"


@pytest.mark.parametrize("budget", ["elapsed_ms", "tokens", "cost"])
def test_the_other_budgets_are_extended_alike(budget: str) -> None:
    run = counting(**{budget: 1000})
    assert ask(run, 500, budget) == {"allow": True, "budget": budget, "by": 500, "limit": 1500}
    assert ask(run, 1, budget)["code"] == "budget.cap"


GRANTING = (
    "extension(/steps, 2) :- spent(/steps, S), allowance(/steps, A), Left = fn:minus(A, S), Left < 2.\n"
)


def test_the_law_extends_before_the_last_step_and_never_past_the_cap() -> None:
    run = ahead(counting(law=GRANTING), 60)
    granted = run.bodies("extend")
    assert [body["by"] for body in granted] == [2, 2, 1]
    assert all(body["law"] for body in granted)
    assert run.state.r1.steps == 15 and run.state.r7.codes == ("budget.steps",)


@pytest.mark.parametrize(
    "law", ["extension(/steps, -1).", "extension(/steps, 0).", "extension(/rollbacks, 9)."]
)
def test_rows_that_make_no_sense_extend_nothing(law: str) -> None:
    assert not ahead(counting(law=law), 20).bodies("extend")


def test_a_law_that_is_too_late_is_no_rescue() -> None:
    late = "extension(/steps, 2) :- spent(/steps, S), allowance(/steps, A), S >= A."
    run = ahead(counting(law=late), 20)
    assert run.state.r1.steps == STEPS and not run.bodies("extend")


def test_the_law_narrows_for_persons_and_for_itself() -> None:
    run = ahead(counting(law=GRANTING + "no_extension(/steps).", tokens=100), 3)
    assert ask(run, 1)["code"] == "budget.not_extended"
    assert ask(run, 1, "tokens")["allow"] is True
    ahead(run, 20)
    assert run.state.r1.steps == STEPS


def test_a_law_reads_what_a_run_may_use_now() -> None:
    law = "forbidden(Action) :- tool(Action, _), allowance(/steps, 12)."
    run = ahead(counting(law=law), 3)
    ask(run, 2)
    ahead(run, 2)
    assert run.state.r7.codes == ("policy.forbidden",)


def test_a_spec_extends_nothing_by_a_rule_of_its_own() -> None:
    policy = counting().rules.gate.policy
    files = {clause.place.file for clause in policy.clauses}
    assert ("extension", 2) in closed(policy, files, "spec")
    assert ("extension", 2) not in closed(policy, files, "team")
    assert ("no_extension", 1) not in closed(policy, files, "spec")


def test_a_replay_grants_the_same() -> None:
    run = ahead(counting(law=GRANTING), 4)
    ask(run, 1)
    ahead(run, 60)
    again = World(run.rules, fresh)
    for record in run.records:
        if record.authority == "proposal":
            stepped = step(again.rules, again.state, record)
            again.state = stepped.state
            again.records += [record, *stepped.commits]
    assert again.state == run.state and again.kinds() == run.kinds()


def test_the_refusal_before_it_is_recorded_is_that_of_the_kernel() -> None:
    run = counting()
    for by, budget in ((0, "steps"), (6, "steps"), (5, "steps"), (5, "cost")):
        asked = {"budget": budget, "by": by}
        found = extend.refusal(run.rules, run.state, asked)
        assert (found.code if found else "") == ask(run, by, budget).get("code", "")


def test_a_low_budget_that_was_extended_is_low_once_more() -> None:
    run = counting(tokens=100, steps=0)
    run.state = run.state.__class__(**{**vars(run.state), "r2": 79})
    kind, body = fresh(run.state.r6, 1)  # type: ignore[arg-type]
    run.feed(kind, {"of": run.state.r6.id, **body}, {"tokens": 1})  # type: ignore[union-attr]
    assert run.state.r7.low and run.state.r7.low_due
    assert ask(run, 40, "tokens")["allow"] is True
    assert not run.state.r7.low and run.state.r7.low_due == ()
