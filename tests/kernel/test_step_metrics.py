"""Selection and metrics in `step`: the best candidate, samples, improvements, plateaus."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_kit import FAST, SAME, World, fresh, looping, measured, planned, rules, tuning
from spak.kernel.state import Effect
from spak.records import Kind

GOOD = {"tool": "write", "args": {"text": "ok"}}


@pytest.mark.parametrize(
    ("candidates", "index"),
    [
        ([GOOD], 0),
        ([GOOD, {**GOOD, "score": 3}], 1),
        ([{**GOOD, "score": 3}, {**GOOD, "score": 3}], 0),
        ([{"tool": "look", "args": {"text": "x"}, "score": 9}, GOOD], 1),
        ([{"tool": "rm", "args": {}}, {"tool": "write", "args": {}}, 7, GOOD], 3),
        ([{**GOOD, "score": "high"}, {**GOOD, "score": 1}], 1),
    ],
)
def test_select_takes_the_best_valid_candidate_and_the_lowest_index_among_equals(
    candidates: Any, index: int
) -> None:
    def script(effect: Effect, count: int) -> Any:
        return planned(*candidates) if effect.act == "plan" else fresh(effect, count)

    run = World(rules(looping()), script).run()
    select = run.bodies("select")[0]
    assert (select["i"], select["n"]) == (index, len(candidates))
    assert len(select.get("rejected", [])) == sum(
        1 for item in candidates if item not in (GOOD,) and not _fits(item)
    )


def _fits(item: Any) -> bool:
    return isinstance(item, dict) and item["tool"] == "write" and item["args"] == {"text": "ok"}


def test_no_candidates_is_a_refusal_outside_of_a_metric_loop() -> None:
    run = World(rules(looping()), lambda *_: planned()).run()
    assert run.bodies("end")[0]["codes"] == ["run.no_candidates"]
    assert run.state.status == "refused"


def tuned(values: list[tuple[int, Any]]) -> World:
    """Runs the tuning program; the n-th measurement is the n-th of `values`."""
    left = list(values)

    def script(effect: Effect, count: int) -> Any:
        if effect.act != "validate":
            return fresh(effect, count)
        if not left:
            return None
        value, pairs = left.pop(0)
        if pairs == "static":
            return Kind.ACT, {"status": "static", "checks": [], "key": f"{count}"}
        if pairs == "wrong":
            return Kind.ACT, {
                "status": "measured",
                "checks": [{"ok": False, "code": "incorrect"}],
                "key": f"{count}",
            }
        return measured(value, pairs, key=f"{count}")

    return World(rules(tuning()), script).run()


def test_best_baseline_and_runner_up_are_kept() -> None:
    run = tuned([(1000, []), (500, FAST), (400, SAME), (250, FAST), (240, SAME)])
    r7 = run.state.r7
    assert r7.best is not None and r7.baseline is not None and r7.runner_up is not None
    assert (r7.baseline.value, r7.best.value, r7.runner_up.value) == (1000, 250, 500)
    assert r7.best.files == {"binary": "blob-250"}
    assert run.signals().count("metric_improved") == 2
    assert r7.stale == 1


def test_a_lower_median_without_the_pairs_to_show_it_is_no_improvement() -> None:
    run = tuned([(1000, []), (1, SAME), (1, []), (1, SAME)])
    assert "metric_improved" not in run.signals()
    assert run.state.status == "succeeded"
    assert run.state.r7.stopped == "patience"


def test_samples_taken_past_the_verdict_are_refused() -> None:
    run = tuned([(1000, []), (500, FAST * 2), (500, FAST)])
    codes = [body.get("code") for body in run.bodies("route")]
    assert "measure.samples_past_verdict" in codes
    assert run.signals().count("metric_improved") == 1


def test_static_evidence_never_improves_and_ends_as_a_plateau() -> None:
    run = tuned([(1000, []), (0, "static"), (0, "static"), (0, "static")])
    assert "metric_improved" not in run.signals()
    assert run.signals().count("plateau") == 1


def test_an_incorrect_candidate_fails_with_the_code_of_its_check() -> None:
    run = tuned([(1000, []), (1, "wrong")])
    assert run.bodies("route")[-2]["code"] == "incorrect" or run.bodies("route")[-1]["code"] == "incorrect"
    assert run.state.r7.best is not None and run.state.r7.best.value == 1000


def test_evaluations_used_up_are_a_plateau_that_still_keeps_the_last_improvement() -> None:
    run = tuned([(1000, []), *[(1000 - n, FAST) for n in range(1, 30)]])
    assert run.state.r7.stopped == "evaluations"
    assert run.state.r7.evaluations == 20
    assert run.state.r7.best is not None and run.state.r7.best.value == 981
    assert run.state.status == "succeeded"


def test_a_void_measurement_is_taken_again_and_three_end_the_run() -> None:
    run = World(rules(tuning()), lambda effect, count: (Kind.ACT, {"status": "void"})).run()
    assert run.bodies("end")[0]["codes"] == ["validator.void"]
    assert len(run.effects) == 3


def test_a_space_that_is_used_up_is_a_plateau() -> None:
    def script(effect: Effect, count: int) -> Any:
        return planned() if effect.act == "plan" else fresh(effect, count)

    run = World(rules(tuning()), script).run()
    assert run.state.r7.stopped == "space"
    assert run.state.status == "succeeded"
