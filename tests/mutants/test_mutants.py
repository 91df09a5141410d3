"""Each invariant's test must fail on a kernel that breaks the invariant.

A mutant is one exact replacement in one source file, and the test that has to notice. The package is copied,
the line replaced, the test run in a process that imports the copy. A mutant whose text is gone is an error:
the table follows the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEP = "tests/kernel/test_step.py"


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    test: str


MUTANTS = [
    Mutant(
        "watchdog never counts",
        "kernel/step.py",
        "seen >= budgets.watchdog",
        "seen > 10**6",
        f"{STEP}::test_the_same_result_three_times_ends_the_run",
    ),
    Mutant(
        "watchdog looks at repeats in a row",
        "kernel/watch.py",
        "window.count(mark)",
        "(window.count(mark) if window[-2:] in ((mark,), (mark, mark)) else 1)",
        f"{STEP}::test_write_and_undo_in_turns_is_a_loop",
    ),
    Mutant(
        "watchdog forgets R3",
        "kernel/watch.py",
        "(task, action, key, root)",
        '(task, action, key, "")',
        f"{STEP}::test_a_changed_result_or_workspace_is_progress",
    ),
    Mutant(
        "idempotent tools are watched",
        "kernel/step.py",
        "if entry is not None and entry.idempotent:",
        "if False:",
        f"{STEP}::test_idempotent_tools_may_repeat_but_still_cost_steps",
    ),
    Mutant(
        "budget of n allows n+1",
        "kernel/step.py",
        "state.r1.steps >= budgets.steps",
        "state.r1.steps > budgets.steps",
        f"{STEP}::test_a_budget_of_n_steps_allows_exactly_n",
    ),
    Mutant(
        "no deadline",
        "kernel/step.py",
        "state.r1.elapsed_ms >= budgets.elapsed_ms",
        "False",
        f"{STEP}::test_recorded_milliseconds_are_the_deadline",
    ),
    Mutant(
        "any result is awaited",
        "kernel/step.py",
        'proposal.body.get("of") != pending.id',
        "False",
        f"{STEP}::test_a_later_result_with_the_id_of_an_earlier_effect_changes_nothing",
    ),
    Mutant(
        "attempt counts retries only",
        "kernel/step.py",
        "state.r0.attempt + 1)",
        "1)",
        f"{STEP}::test_attempt_counts_permits_so_that_no_two_effects_are_alike",
    ),
    Mutant(
        "schema is not asked for candidates",
        "kernel/step.py",
        "        found = violations(entry.schema, args)\n        return [",
        "        found = violations({}, args)\n        return [",
        f"{STEP}::test_select_takes_the_best_valid_candidate_and_the_lowest_index_among_equals",
    ),
    Mutant(
        "TOOLS is not asked",
        "kernel/step.py",
        "if entry is None or not _listed(self.rules, task, name):",
        "if entry is None:",
        f"{STEP}::test_select_takes_the_best_valid_candidate_and_the_lowest_index_among_equals",
    ),
    Mutant(
        "ties go to the last",
        "kernel/step.py",
        "(_score(listed[i]), -i)",
        "(_score(listed[i]), i)",
        f"{STEP}::test_select_takes_the_best_valid_candidate_and_the_lowest_index_among_equals",
    ),
    Mutant(
        "a timeout is committed",
        "kernel/step.py",
        'if outcome != "exited" or',
        'if outcome not in ("exited", "timeout") or',
        f"{STEP}::test_three_rollbacks_in_a_row_on_one_tool_end_the_run",
    ),
    Mutant(
        "rollback moves R3",
        "kernel/step.py",
        "        self.undo(task, step, pending.name, error, route)",
        '        self.state = change(self.state, r3="x")\n'
        "        self.undo(task, step, pending.name, error, route)",
        f"{STEP}::test_an_effect_that_was_undone_is_rolled_back_and_r3_stays",
    ),
    Mutant(
        "rollbacks are never counted",
        "kernel/step.py",
        "count = count + 1 if name == tool else 1",
        "count = 1",
        f"{STEP}::test_three_rollbacks_in_a_row_on_one_tool_end_the_run",
    ),
    Mutant(
        "R4 is empty",
        "kernel/step.py",
        '{"code": code, "expected": expected, "received": received, "hint": hint}',
        "{}",
        f"{STEP}::test_r4_goes_back_to_the_proposer_who_can_mend_it",
    ),
    Mutant(
        "a heuristic fires again",
        "kernel/step.py",
        "if index not in r7.fired and",
        "if",
        f"{STEP}::test_each_consecutive_fail_injects_the_next_heuristic_in_order",
    ),
    Mutant(
        "WHEN is ignored",
        "kernel/step.py",
        "(not heuristic.when or heuristic.when in r7.due)",
        "True",
        f"{STEP}::test_a_heuristic_with_when_waits_for_its_code",
    ),
    Mutant(
        "retries cost nothing",
        "kernel/step.py",
        "                self.executive(retries=r7.retries - 1)",
        "                pass",
        f"{STEP}::test_retries_used_up_is_a_refusal_that_names_the_knob",
    ),
    Mutant(
        "success is never checked",
        "kernel/step.py",
        "good = task.success is None or",
        "good = True or",
        f"{STEP}::test_success_conditions_are_evaluated_and_unmet_ones_fail",
    ),
    Mutant(
        "invariants are not checked",
        "kernel/step.py",
        "if invariant is not None and not",
        "if False and not",
        f"{STEP}::test_a_broken_invariant_rolls_the_step_back_and_fails",
    ),
    Mutant(
        "an unhandled trigger succeeds",
        "kernel/step.py",
        'self.refuse("run.unhandled_trigger"',
        'self.end("succeeded", ""',
        f"{STEP}::test_signal_and_edges_decide_how_a_run_ends",
    ),
    Mutant(
        "a lower median is an improvement",
        "kernel/derive.py",
        'if verdict.outcome != "improved":',
        "if value >= r7.best.value:",
        f"{STEP}::test_a_lower_median_without_the_pairs_to_show_it_is_no_improvement",
    ),
    Mutant(
        "samples past the verdict are taken",
        "kernel/decide.py",
        "if index < len(pairs):",
        "if False:",
        f"{STEP}::test_samples_taken_past_the_verdict_are_refused",
    ),
    Mutant(
        "static evidence counts as measured",
        "kernel/derive.py",
        'if status != "measured":',
        "if False:",
        f"{STEP}::test_static_evidence_never_improves_and_ends_as_a_plateau",
    ),
    Mutant(
        "failed checks are let through",
        "kernel/derive.py",
        'check.get("ok") is not True',
        "False",
        f"{STEP}::test_an_incorrect_candidate_fails_with_the_code_of_its_check",
    ),
    Mutant(
        "the runner-up is forgotten",
        "kernel/derive.py",
        "runner_up = r7.best if",
        "runner_up = None if",
        f"{STEP}::test_best_baseline_and_runner_up_are_kept",
    ),
    Mutant(
        "patience is endless",
        "kernel/derive.py",
        "r7.stale >= rule.patience",
        "False",
        f"{STEP}::test_static_evidence_never_improves_and_ends_as_a_plateau",
    ),
    Mutant(
        "void counts as a fail",
        "kernel/derive.py",
        '"validator.void", void=True)',
        '"validator.void")',
        f"{STEP}::test_a_void_measurement_is_taken_again_and_three_end_the_run",
    ),
    Mutant(
        "the state keeps a history",
        "kernel/watch.py",
        "[-size:]",
        "",
        f"{STEP}::test_state_does_not_grow_with_the_run",
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_the_mutant_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "agents/spak", tmp_path / "spak", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "spak" / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, (
        f"the text of this mutant stands {text.count(mutant.old)} times in {mutant.file}"
    )
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", mutant.test],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, f"survived:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
