"""The kernel's decisions, one rule each, on programs made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_kit import TEXT, World, exited, fresh, looping, planned, program, rules, tool, tuning
from spak.kernel.state import Effect, State
from spak.kernel.step import expects, step
from spak.program import All, Atom, Budgets, Compare, Heuristic, Ref, Step, Task, Template
from spak.records import AUTHORITIES, KINDS, Kind, Record


def world(*tasks: Task, script: Any = fresh, **more: Any) -> World:
    return World(rules(program(*tasks, **more)), script)


def failing(effect: Effect, count: int) -> Any:
    """Plans and tools succeed with new results; the validator never does."""
    if effect.act == "validate":
        return Kind.ACT, {
            "status": "checked",
            "checks": [{"ok": False, "code": "tests.failed"}],
            "key": f"{count}",
        }
    return fresh(effect, count)


def test_two_steps_are_permitted_done_and_routed_in_order() -> None:
    run = world(Task("t", steps=(tool("a", "write"), tool("b")))).run()
    assert run.kinds() == ["genesis", "permit", "act", "route", "permit", "act", "route", "end"]
    assert run.state.status == "succeeded"
    assert run.bodies("route")[0] == {
        "signal": "success",
        "r3": "root-1",
        "to": "b",
    }


def test_a_plan_turn_is_plan_select_permit_act_observe_route() -> None:
    run = World(rules(looping()), fresh).run()
    assert run.kinds()[:9] == [
        "genesis",
        "permit",
        "plan",
        "select",
        "permit",
        "act",
        "route",
        "permit",
        "act",
    ]
    assert run.state.status == "succeeded"


def test_attempt_counts_permits_so_that_no_two_effects_are_alike() -> None:
    task = Task("t", steps=(tool("a", "write"),), edges={"success": "t"})
    run = world(task, budgets=Budgets(steps=50)).run()
    ids = [effect.id for effect in run.effects]
    assert len(ids) == len(set(ids)) == 50
    assert [effect.attempt for effect in run.effects] == list(range(1, 51))


def test_a_later_result_with_the_id_of_an_earlier_effect_changes_nothing() -> None:
    task = Task("t", steps=(tool("a", "write"),), edges={"success": "t"})
    run = world(task, script=lambda effect, count: fresh(effect, count) if count < 5 else None).run()
    before, first = run.state, run.effects[0]
    run.feed(Kind.ACT, {"of": first.id, "outcome": "exited", "exit": 0, "r3": "forged"})
    assert run.state == before


def test_each_consecutive_fail_injects_the_next_heuristic_in_order() -> None:
    heuristics = (Heuristic("first"), Heuristic("second"))
    run = World(rules(looping(retries=3, heuristics=heuristics)), failing).run()
    assert [body["heuristic"] for body in run.bodies("inject")] == [1, 2]
    kinds = run.kinds()
    assert all(kinds[i + 1] == "permit" for i, kind in enumerate(kinds) if kind == "inject")


def test_a_heuristic_with_when_waits_for_its_code() -> None:
    heuristics = (Heuristic("for compilers", "compile_error"), Heuristic("for tests", "tests.failed"))
    run = World(rules(looping(retries=2, heuristics=heuristics)), failing).run()
    assert [body["heuristic"] for body in run.bodies("inject")] == [2]


def test_injected_heuristics_stand_in_the_next_prompt_and_go_after_success() -> None:
    def script(effect: Effect, count: int) -> Any:
        return failing(effect, count) if count < 3 else fresh(effect, count)

    run = World(rules(looping(heuristics=(Heuristic("use a hyphen"),))), script).run()
    plans = [effect for effect in run.effects if effect.act == "plan"]
    assert not any(item["text"] == "use a hyphen" for item in plans[0].items)
    assert any(item["text"] == "use a hyphen" for item in plans[1].items)
    assert run.state.status == "succeeded"
    assert run.state.r7.fired == ()


def test_retries_used_up_is_a_refusal_that_names_the_knob() -> None:
    run = World(rules(looping(retries=2)), failing).run()
    assert run.state.status == "refused"
    assert run.bodies("end")[0]["codes"] == ["budget.retries"]
    assert "RETRIES" in run.state.r7.knob
    assert len([signal for signal in run.signals() if signal == "fail"]) == 3


@pytest.mark.parametrize(
    ("edges", "signal", "status", "code"),
    [
        ({}, "success", "succeeded", None),
        ({}, "fail", "failed", "tests.failed"),
        ({"success": "end"}, "fail", "failed", "tests.failed"),
        ({"fail": "end"}, "success", "refused", "run.unhandled_trigger"),
        ({"success": "end"}, "timeout", "refused", "run.unhandled_trigger"),
        ({"timeout": "end"}, "timeout", "succeeded", None),
    ],
)
def test_signal_and_edges_decide_how_a_run_ends(
    edges: Any, signal: str, status: str, code: str | None
) -> None:
    def script(effect: Effect, count: int) -> Any:
        if effect.act != "validate":
            return fresh(effect, count)
        if signal == "timeout":
            return Kind.ACT, {"status": "timeout"}
        return failing(effect, count) if signal == "fail" else fresh(effect, count)

    task = Task("t", steps=(tool("a"), Step("v", "validate", "Tests")), edges=edges)
    run = world(task, Task("end", steps=(tool("s"),)), script=script).run()
    assert run.state.status == status
    assert run.bodies("end")[0].get("codes") == (None if code is None else [code])
    if status == "refused":
        assert signal in run.state.r7.knob
        assert len(run.bodies("end")[0]["evidence"]) > 0


@pytest.mark.parametrize(
    ("on_fail", "status"), [("continue", "succeeded"), ("stop", "failed"), ("retry", "failed")]
)
def test_a_non_zero_exit_is_committed_and_handled_as_the_step_says(on_fail: str, status: str) -> None:
    def script(effect: Effect, count: int) -> Any:
        return exited(2, r3="root-after", key="k") if effect.step == "a" else fresh(effect, count)

    run = world(Task("t", steps=(tool("a", "write", on_fail), tool("b"))), script=script).run()
    assert run.state.status == status
    assert "txn" not in run.bodies("route")[0]
    assert run.state.r3 == "root-after"


def test_a_failing_tool_with_retry_goes_back_to_the_question() -> None:
    task = Task(
        "t",
        steps=(
            Step("q", "ask", "coder", {"prompt": "mend it"}, output_var="patch"),
            Step("m", "tool", "mend", {"text": Ref("patch")}, on_fail="retry"),
        ),
    )

    def script(effect: Effect, count: int) -> Any:
        return (
            exited(1, r3="root-0", key=f"k{count}")
            if effect.step == "m" and count < 2
            else fresh(effect, count)
        )

    run = world(task, script=script).run()
    assert [effect.step for effect in run.effects] == ["q", "m", "q", "m"]
    again = run.effects[2].items
    assert any(item["name"] == "error" and "tool.exit" in item["text"] for item in again)
    assert run.state.status == "succeeded"


def test_cancel_ends_a_run_and_an_ended_run_stays_as_it_is() -> None:
    run = world(Task("t", steps=(tool("a"),)), script=lambda *_: None).run()
    run.feed(Kind.CONTROL, {"cancel": True})
    assert run.state.status == "cancelled"
    before = run.state
    run.feed(Kind.CONTROL, {"cancel": True})
    assert run.state == before


@pytest.mark.parametrize("steps", [1, 3])
def test_a_budget_of_n_steps_allows_exactly_n(steps: int) -> None:
    task = Task("t", steps=(tool("a", "write"),), edges={"success": "t"})
    run = world(task, budgets=Budgets(steps=steps)).run()
    assert len(run.effects) == steps
    assert run.bodies("end")[0]["codes"] == ["budget.steps"]


def test_recorded_milliseconds_are_the_deadline() -> None:
    task = Task("t", steps=(tool("a", "write"),), edges={"success": "t"})
    run = world(task, budgets=Budgets(elapsed_ms=100))
    run.ms = 30
    run.run()
    assert len(run.effects) == 4
    assert run.bodies("end")[0]["codes"] == ["budget.elapsed"]


def repeating(effect: Effect, count: int) -> Any:
    return exited(0, key="same", r3="root-0")


def test_the_same_result_three_times_ends_the_run() -> None:
    task = Task("t", steps=(tool("a", "write"),), edges={"success": "t"})
    run = world(task, script=repeating).run()
    assert run.state.status == "failed"
    assert run.bodies("end")[0]["codes"] == ["run.watchdog_loop"]
    assert len(run.effects) == 3


def test_a_changed_result_or_workspace_is_progress() -> None:
    task = Task("t", steps=(tool("a", "write"),), edges={"success": "t"})
    for change in ("key", "r3"):

        def script(effect: Effect, count: int, change: str = change) -> Any:
            return exited(0, **{"key": "same", "r3": "same", change: f"{count}"})

        run = world(task, script=script, budgets=Budgets(steps=20)).run()
        assert run.bodies("end")[0]["codes"] == ["budget.steps"], change


def test_write_and_undo_in_turns_is_a_loop() -> None:
    tasks = (
        Task("a", steps=(tool("w", "write", text="x"),), edges={"success": "b"}),
        Task("b", steps=(tool("u", "write", text="y"),), edges={"success": "a"}),
    )
    roots = {"a": "root-1", "b": "root-0"}
    run = world(*tasks, script=lambda effect, count: exited(0, key="k", r3=roots[effect.task])).run()
    assert run.bodies("end")[0]["codes"] == ["run.watchdog_loop"]


def test_idempotent_tools_may_repeat_but_still_cost_steps() -> None:
    task = Task("t", steps=(tool("a", "poll"),), edges={"success": "t"})
    run = world(task, script=repeating, budgets=Budgets(steps=10)).run()
    assert run.bodies("end")[0]["codes"] == ["budget.steps"]
    assert len(run.effects) == 10


def test_what_does_not_fit_never_reaches_the_tool() -> None:
    def script(effect: Effect, count: int) -> Any:
        return (
            planned({"tool": "write", "args": {"text": 5}}) if effect.act == "plan" else fresh(effect, count)
        )

    run = World(rules(looping(retries=9)), script).run()
    assert not [effect for effect in run.effects if effect.act == "tool"]
    assert run.state.status == "failed"
    assert run.bodies("end")[0]["codes"] == ["run.rollbacks"]
    assert len(run.bodies("plan")) == 3
    assert run.state.r4 is not None
    assert set(run.state.r4) == {"code", "expected", "received", "hint", "schema", "payload"}
    assert run.state.r4["schema"] == TEXT and run.state.r4["payload"] == {"text": 5}


def test_r4_goes_back_to_the_proposer_who_can_mend_it() -> None:
    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan" and count == 0:
            return planned({"tool": "write", "args": {"wrong": 1}})
        return fresh(effect, count)

    run = World(rules(looping()), script).run()
    plans = [effect for effect in run.effects if effect.act == "plan"]
    assert any(item["name"] == "error" for item in plans[1].items)
    assert run.state.status == "succeeded"


@pytest.mark.parametrize(
    "outcome", ["timeout", "oom", "limit", "launcher", "unknown", "crash", "nonsense", None]
)
def test_an_effect_that_was_undone_is_rolled_back_and_r3_stays(outcome: Any) -> None:
    run = world(
        Task("t", steps=(tool("a", "write"),)), script=lambda *_: (Kind.ACT, {"outcome": outcome, "r3": "x"})
    ).run()
    assert run.bodies("route")[0]["txn"] == "rollback"
    assert run.state.r3 == "root-0"
    assert run.state.status == "failed"


def test_three_rollbacks_in_a_row_on_one_tool_end_the_run() -> None:
    def script(effect: Effect, count: int) -> Any:
        return (Kind.ACT, {"outcome": "timeout"}) if effect.act == "tool" else fresh(effect, count)

    run = World(rules(looping(retries=9)), script).run()
    assert run.bodies("end")[0]["codes"] == ["run.rollbacks"]
    assert len([effect for effect in run.effects if effect.act == "tool"]) == 3


def test_a_success_in_between_starts_the_count_of_rollbacks_again() -> None:
    def script(effect: Effect, count: int) -> Any:
        if effect.act == "tool" and effect.task == "t" and len(seen) % 3 != 2:
            seen.append(count)
            return Kind.ACT, {"outcome": "timeout"}
        if effect.act == "tool":
            seen.append(count)
        return failing(effect, count)

    seen: list[int] = []
    run = World(rules(looping(retries=9)), script).run()
    assert run.bodies("end")[0]["codes"] == ["budget.retries"]


def test_tasks_that_fail_in_turns_without_any_effect_end_the_run() -> None:
    """Two tools whose arguments never fit, each with the other as its way out: nobody is asked in between."""
    tasks = [
        Task(name, steps=(Step("s", "tool", other, {"text": 5}),), edges={"fail": to}, retries=3)
        for name, other, to in (("a", "look", "b"), ("b", "write", "a"))
    ]
    run = world(*tasks).run()
    assert not run.effects
    assert run.bodies("end")[0]["codes"] == ["run.rollbacks"]
    assert len(run.bodies("route")) < 20


@pytest.mark.parametrize("said", ["1e999", "9" * 5000, "-1e999"])
def test_a_number_too_big_for_a_record_stays_text(said: str) -> None:
    first = Step("a", "tool", "look", {"text": "x"}, output_var="metric.m")
    second = Step("b", "tool", "look", {"text": Template(("m = ", Ref("metric.m")))})
    run = world(Task("t", steps=(first, second)), script=lambda e, n: exited(0, out=said, key=str(n))).run()
    assert run.state.status == "succeeded"
    assert run.effects[1].args == {"text": f"m = {said}"}


def test_success_conditions_are_evaluated_and_unmet_ones_fail() -> None:
    condition = All((Atom("file_exists", ("x",)), Compare("==", Ref("exit_code.a"), 0)))
    for facts, status in (([True], "succeeded"), ([False], "failed"), ([], "failed")):

        def script(effect: Effect, count: int, facts: Any = facts) -> Any:
            return (Kind.ACT, {"facts": facts}) if effect.act == "check" else fresh(effect, count)

        task = Task("t", steps=(tool("a"), Step("check", "check")), success=condition)
        run = world(task, script=script).run()
        assert run.state.status == status, facts


def test_a_broken_invariant_rolls_the_step_back_and_fails() -> None:
    def script(effect: Effect, count: int) -> Any:
        assert effect.watch == ({"function": "file_exists", "args": ["keep.txt"]},)
        return exited(0, r3="root-1", facts=[False])

    task = Task("t", steps=(tool("a", "write"),), invariant=Atom("file_exists", ("keep.txt",)))
    run = world(task, script=script).run()
    assert run.state.status == "failed"
    assert run.bodies("route")[0]["txn"] == "rollback"
    assert run.state.r3 == "root-0"


def test_variables_are_filled_in_and_an_unbound_one_is_a_refusal() -> None:
    steps = (
        Step("a", "tool", "look", {"text": "x"}, output_var="seen"),
        Step("b", "tool", "look", {"text": Template(("saw ", Ref("seen"), " in ", Ref("a.nothing")))}),
    )
    run = world(Task("t", steps=steps)).run()
    assert run.bodies("end")[0]["codes"] == ["run.unbound_variable"]
    assert "a.nothing" in run.state.r7.knob


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text(max_size=6)
    | st.sampled_from(["exited", "measured"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "of",
                    "outcome",
                    "exit",
                    "r3",
                    "key",
                    "out",
                    "facts",
                    "status",
                    "checks",
                    "metrics",
                    "pairs",
                    "candidates",
                    "tool",
                    "args",
                    "text",
                    "score",
                    "ok",
                    "code",
                    "subject",
                    "cancel",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(sorted(AUTHORITIES)),
    JSON,
    st.integers(0, 12),
    st.booleans(),
)
def test_step_raises_on_no_proposal(kind: str, authority: str, body: Any, depth: int, named: bool) -> None:
    made = World(rules(tuning()), lambda effect, count: fresh(effect, count) if count < depth else None).run()
    if named and isinstance(body, dict) and made.state.r6 is not None:
        body = {**body, "of": made.state.r6.id}
    proposal = Record(kind, authority, body, side={"ms": body})
    stepped = step(made.rules, made.state, proposal)
    if not expects(made.state, proposal) and kind != Kind.CONTROL:
        assert stepped == (made.state, (), (), (), ())
    assert isinstance(stepped.state, State)


def test_state_does_not_grow_with_the_run() -> None:
    import pickle

    task = Task("t", steps=(tool("a", "write"), tool("b")), edges={"success": "t"})
    sizes = [
        len(pickle.dumps(world(task, budgets=Budgets(steps=steps)).run(9999).state)) for steps in (50, 2000)
    ]
    assert sizes[1] < sizes[0] + 200
