"""Each invariant's test must fail on a kernel, runner, tool or ledger that breaks the invariant."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants_kit import Mutant, must_be_noticed, must_pass_unchanged

STEP = "tests/kernel/test_step.py"
WATCH = "tests/kernel/test_watchdog.py"
POLLS = "tests/kernel/test_polls.py"
SNAPSHOT = "tests/kernel/test_snapshot.py"
COLLISIONS = "tests/workspace/test_collisions.py"
LOCKS = "tests/workspace/test_space_locks.py"
REFUSALS = "tests/runner/test_refusals.py"
EXTENSIONS = "tests/kernel/test_extensions.py"
LOW = "tests/kernel/test_budget_low.py"
MEMORY = "tests/kernel/test_memory.py"
PROMPTS = "tests/runner/test_prompts.py"
TAKING = "tests/runner/test_taking_up.py"

MUTANTS = [
    Mutant(
        "pruning needs no prompt",
        "kernel/memory/settle.py",
        "memory = _settle(memory, memory.sent, policy)",
        "memory = _settle(memory, len(memory.fresh), policy)",
        f"{MEMORY}::test_a_confirmed_text_that_a_prompt_has_shown_is_pruned",
    ),
    Mutant(
        "low budgets are given at every turn",
        "kernel/budget/__init__.py",
        "if low == r7.low:",
        "if not low:",
        f"{LOW}::test_it_is_given_once_for_a_crossing",
    ),
    Mutant(
        "an edge does not use the signal up",
        "kernel/route.py",
        "turn.state = budget.taken(turn.state, budget.EDGE)",
        "pass",
        f"{LOW}::test_it_is_given_once_for_a_crossing",
    ),
    Mutant(
        "a budget that is used up is extended",
        "kernel/budget/extend.py",
        "budget.spent(state)[name] >= limit",
        "False",
        f"{EXTENSIONS}::test_at_zero_there_is_no_rescue",
    ),
    Mutant(
        "the cap is that of one extension",
        "kernel/budget/extend.py",
        "return max(cap - state.r7.extended.get(name, 0), 0)",
        "return cap",
        f"{EXTENSIONS}::test_the_cap_holds_over_the_whole_run",
    ),
    Mutant(
        "extensions of less than nothing",
        "kernel/budget/extend.py",
        "if by <= 0:",
        "if by == 0:",
        f"{EXTENSIONS}::test_what_makes_no_sense_is_refused_and_changes_nothing",
    ),
    Mutant(
        "the law does not narrow extensions",
        "kernel/budget/extend.py",
        "if found is None and name in _rows(_session(rules, state), REFUSES):",
        "if False:",
        f"{EXTENSIONS}::test_the_law_narrows_for_persons_and_for_itself",
    ),
    Mutant(
        "a spec extends by its own rule",
        "policy/closed_predicates.py",
        '(("permitted", 1), 1), (("extension", 2), 1)]',
        '(("permitted", 1), 1)]',
        f"{EXTENSIONS}::test_a_spec_extends_nothing_by_a_rule_of_its_own",
    ),
    Mutant(
        "an extension is not counted in R1",
        "kernel/budget/__init__.py",
        "return rules.program.budgets.extended(state.r7.extended)",
        "return rules.program.budgets",
        f"{EXTENSIONS}::test_a_run_goes_on_for_as_many_steps_as_were_added",
    ),
    Mutant(
        "contents of one name are taken for one",
        "workspace/store.py",
        "if known != data and self.digest(known) == digest:",
        "if False:",
        f"{COLLISIONS}::test_a_step_that_makes_one_is_neither_committed_nor_taken_for_no_change",
    ),
    Mutant(
        "large files of one name are taken for one",
        "workspace/store.py",
        "if not (same and not os.read(fd, 1)) and name(hashing) == digest:",
        "if False:",
        f"{COLLISIONS}::test_a_large_file_is_compared_piece_by_piece",
    ),
    Mutant(
        "a blob takes the place of another one",
        "ledger/blobs.py",
        "if self._digest(known) == digest:",
        "if False:",
        f"{COLLISIONS}::test_blobs_keep_the_first_and_refuse_the_second",
    ),
    Mutant(
        "nobody is named who holds a workspace",
        "workspace/lock.py",
        "found = holders(file, fd)",
        "found: list[str] = []",
        f"{LOCKS}::TestLock::test_a_tool_that_outlives_its_runner_keeps_it",
    ),
    Mutant(
        "a refusal does not name what its cause names",
        "runner/views/refusals.py",
        "wanted = {seq for seq in named if seq in seen} | {end.seq}",
        "wanted = {end.seq}",
        f"{REFUSALS}::test_a_loop_names_every_result_that_repeats",
    ),
    Mutant(
        "nothing is pruned",
        "kernel/memory/settle.py",
        "if policy == PRUNE:",
        "if False:",
        f"{MEMORY}::test_a_confirmed_text_that_a_prompt_has_shown_is_pruned",
    ),
    Mutant(
        "a prompt prunes before its answer is carried out",
        "kernel/recollect.py",
        "return memory.sent(held)",
        'return settle._settle(memory.sent(held), len(held.fresh), "PRUNE_ON_CONFIRM")',
        f"{PROMPTS}::test_pruning_waits_for_an_answer_that_was_carried_out",
    ),
    Mutant(
        "watchdog never counts",
        "kernel/route.py",
        "found = watchdog.loop(window, size, limit) if limit else None",
        "found = None",
        f"{STEP}::test_the_same_result_three_times_ends_the_run",
    ),
    Mutant(
        "watchdog looks at turns of one step",
        "kernel/watchdog.py",
        "min(size, len(marks) // times)",
        "1",
        f"{STEP}::test_write_and_undo_in_turns_is_a_loop",
    ),
    Mutant(
        "watchdog counts one step of a turn",
        "kernel/watchdog.py",
        "while end > length and marks[end - 1] == marks[end - 1 - length]:",
        "while end > length:",
        f"{WATCH}::test_a_try_that_begins_with_the_same_reading_step_is_no_loop",
    ),
    Mutant(
        "answers are no part of a turn",
        "kernel/answer.py",
        "canon.content_hash(value), quiet=True",
        '"", quiet=True',
        f"{WATCH}::test_a_new_answer_is_a_difference_in_the_turn",
    ),
    Mutant(
        "rollbacks are counted whatever the tool",
        "kernel/route.py",
        "count = count + 1 if name == tool else 1",
        "count += 1",
        f"{WATCH}::test_rollbacks_are_counted_on_one_tool",
    ),
    Mutant(
        "polls have no limit",
        "kernel/answer.py",
        "if polls >= poll.limit:",
        "if False:",
        f"{POLLS}::test_the_limit_fails_the_step_with_a_code_of_its_own",
    ),
    Mutant(
        "R4 has no payload",
        "kernel/fit.py",
        '{**error, **expected, "payload": bounded(payload)}',
        "error",
        f"{STEP}::test_what_does_not_fit_never_reaches_the_tool",
    ),
    Mutant(
        "watchdog forgets R3",
        "kernel/watchdog.py",
        "(task, action, key, root)",
        '(task, action, key, "")',
        f"{STEP}::test_a_changed_result_or_workspace_is_progress",
    ),
    Mutant(
        "idempotent tools are watched like others",
        "kernel/route.py",
        "entry is not None and entry.idempotent)",
        "False)",
        f"{STEP}::test_idempotent_tools_may_repeat_but_still_cost_steps",
    ),
    Mutant(
        "budget of n allows n+1",
        "kernel/budget/__init__.py",
        "state.r1.steps >= budgets.steps",
        "state.r1.steps > budgets.steps",
        f"{STEP}::test_a_budget_of_n_steps_allows_exactly_n",
    ),
    Mutant(
        "no deadline",
        "kernel/budget/__init__.py",
        "state.r1.elapsed_ms >= budgets.elapsed_ms",
        "False",
        f"{STEP}::test_recorded_milliseconds_are_the_deadline",
    ),
    Mutant(
        "any result is awaited",
        "kernel/step.py",
        "of != pending.id",
        "False",
        f"{STEP}::test_a_later_result_with_the_id_of_an_earlier_effect_changes_nothing",
    ),
    Mutant(
        "schema is not asked for candidates",
        "kernel/fit.py",
        "found = violations(entry.schema, args)",
        "found = violations({}, args)",
        "tests/kernel/test_step_metrics.py::test_select_takes_the_best_valid_candidate_and_the_lowest_index_among_equals",
    ),
    Mutant(
        "TOOLS is not asked",
        "kernel/fit.py",
        "if entry is None or not in_tools(rules, task, name):",
        "if entry is None:",
        "tests/kernel/test_step_metrics.py::test_select_takes_the_best_valid_candidate_and_the_lowest_index_among_equals",
    ),
    Mutant(
        "ties go to the last",
        "kernel/answer.py",
        "(fit.score(listed[i]), -i)",
        "(fit.score(listed[i]), i)",
        "tests/kernel/test_step_metrics.py::test_select_takes_the_best_valid_candidate_and_the_lowest_index_among_equals",
    ),
    Mutant(
        "a timeout is committed",
        "kernel/answer.py",
        'if body.get("outcome") != "exited" or',
        'if body.get("outcome") not in ("exited", "timeout") or',
        f"{STEP}::test_three_rollbacks_in_a_row_on_one_tool_end_the_run",
    ),
    Mutant(
        "rollback moves R3",
        "kernel/answer.py",
        "    return route.roll_back(turn, task, step, pending.name, error, result)",
        '    turn.set(r3="x")\n    return route.roll_back(turn, task, step, pending.name, error, result)',
        f"{STEP}::test_an_effect_that_was_undone_is_rolled_back_and_r3_stays",
    ),
    Mutant(
        "rollbacks are never counted",
        "kernel/route.py",
        "count = count + 1 if name == tool else 1",
        "count = 1",
        f"{STEP}::test_three_rollbacks_in_a_row_on_one_tool_end_the_run",
    ),
    Mutant(
        "R4 is empty",
        "kernel/fit.py",
        '{"code": code, "expected": expected, "received": received, "hint": hint}',
        "{}",
        f"{STEP}::test_r4_goes_back_to_the_proposer_who_can_mend_it",
    ),
    Mutant(
        "retries cost nothing",
        "kernel/route.py",
        "            turn.executive(retries=r7.retries - 1)",
        "            pass",
        f"{STEP}::test_retries_used_up_is_a_refusal_that_names_the_knob",
    ),
    Mutant(
        "success is never checked",
        "kernel/measure.py",
        "good = task.success is None or",
        "good = True or",
        f"{STEP}::test_success_conditions_are_evaluated_and_unmet_ones_fail",
    ),
    Mutant(
        "invariants are not checked",
        "kernel/answer.py",
        "if kept is not True:",
        "if False:",
        f"{STEP}::test_a_broken_invariant_rolls_the_step_back_and_fails",
    ),
    Mutant(
        "a text that is no number is another value",
        "kernel/render.py",
        "if numbers and texts:",
        "if False:",
        "tests/kernel/test_compare.py::test_a_text_that_is_no_number_is_reported",
    ),
    Mutant(
        "an unhandled trigger succeeds",
        "kernel/route.py",
        'turn.refuse("run.unhandled_trigger"',
        'turn.end("succeeded", ""',
        f"{STEP}::test_signal_and_edges_decide_how_a_run_ends",
    ),
    Mutant(
        "a lower median is an improvement",
        "kernel/metric/signal.py",
        'if verdict.outcome != "improved":',
        "if value >= r7.best.value:",
        "tests/kernel/test_step_metrics.py::test_a_lower_median_without_the_pairs_to_show_it_is_no_improvement",
    ),
    Mutant(
        "samples past the verdict are taken",
        "kernel/metric/decision.py",
        "if index < len(pairs):",
        "if False:",
        "tests/kernel/test_step_metrics.py::test_samples_taken_past_the_verdict_are_refused",
    ),
    Mutant(
        "static evidence counts as measured",
        "kernel/metric/signal.py",
        'if status != "measured":',
        "if False:",
        "tests/kernel/test_step_metrics.py::test_static_evidence_never_improves_and_ends_as_a_plateau",
    ),
    Mutant(
        "failed checks are let through",
        "kernel/metric/signal.py",
        'check.get("ok") is not True',
        "False",
        "tests/kernel/test_step_metrics.py::test_an_incorrect_candidate_fails_with_the_code_of_its_check",
    ),
    Mutant(
        "the runner-up is forgotten",
        "kernel/metric/signal.py",
        "runner_up = r7.best if",
        "runner_up = None if",
        "tests/kernel/test_step_metrics.py::test_best_baseline_and_runner_up_are_kept",
    ),
    Mutant(
        "patience is endless",
        "kernel/metric/signal.py",
        "r7.stale >= rule.patience",
        "False",
        "tests/kernel/test_step_metrics.py::test_static_evidence_never_improves_and_ends_as_a_plateau",
    ),
    Mutant(
        "void counts as a fail",
        "kernel/metric/signal.py",
        '"validator.void", void=True)',
        '"validator.void")',
        "tests/kernel/test_step_metrics.py::test_a_void_measurement_is_taken_again_and_three_end_the_run",
    ),
    Mutant(
        "the state keeps a history",
        "kernel/watchdog.py",
        "[-size:]",
        "",
        f"{STEP}::test_state_does_not_grow_with_the_run",
    ),
    Mutant(
        "commits are replayed and not compared",
        "kernel/replay.py",
        "not (_alike(expected, record) or content == record.content)",
        "not content",
        "tests/kernel/test_replay.py::test_a_forged_commit_is_a_difference",
    ),
    Mutant(
        "commits of another body are alike",
        "kernel/replay.py",
        "                if value != other:",
        "                if False:",
        "tests/kernel/test_replay.py::test_a_forged_commit_is_a_difference",
    ),
    Mutant(
        "git_commit leaves changes out",
        "repository/commits.py",
        "if left := [row for row in rows if not _below(row.path, order.paths)]:",
        "if left := [row for row in rows[:0]]:",
        "tests/tools/test_git_commit.py::test_a_change_that_the_paths_leave_out_is_refused",
    ),
    Mutant(
        "git_commit takes files of secrets",
        "repository/commits.py",
        "        if secret:",
        "        if False:",
        "tests/tools/test_git_commit.py::test_a_file_of_secrets_is_refused_by_name",
    ),
    Mutant(
        "git_push sends any commit of the user",
        "repository/commits.py",
        "or not self._is_above(head, wanted)",
        "",
        "tests/tools/test_git_push.py::test_a_commit_of_the_run_goes_out_and_no_other_branch_of_the_user",
    ),
    Mutant(
        "a snapshot leaves a field out",
        "kernel/snapshot.py",
        "*(encode(getattr(value, name)) for name in _fields()[kind])",
        '*(encode(getattr(value, name) if name != "stale" else 0) for name in _fields()[kind])',
        f"{SNAPSHOT}::test_no_field_of_a_state_is_left_out",
    ),
    Mutant(
        "a snapshot sorts what it holds",
        "kernel/snapshot.py",
        "and names == sorted(names):",
        ":",
        f"{SNAPSHOT}::test_a_value_keeps_its_type_and_the_order_of_its_members",
    ),
    Mutant(
        "a snapshot of other rules is used",
        "kernel/snapshot.py",
        'found["rules"] != rules.opening',
        "False",
        f"{SNAPSHOT}::test_a_snapshot_of_something_else_is_refused",
    ),
    Mutant(
        "a snapshot is kept between a decision and its records",
        "runner/run.py",
        "if count != self.ledger.count or state is not self.state:",
        "if False:",
        f"{TAKING}::test_what_was_decided_and_not_yet_written_is_in_no_snapshot",
    ),
    Mutant(
        "records after a snapshot need not follow from it",
        "runner/resume.py",
        """    if found.difference is not None:
        raise discarded(""",
        """    if False:
        raise discarded(""",
        f"{TAKING}::test_a_snapshot_in_doubt_is_thrown_away_and_all_is_replayed",
    ),
    Mutant(
        "an action that was rolled back uses up what it closed",
        "kernel/answer.py",
        'done = pending.act != "tool" or proposal.body.get("outcome") == "exited"',
        "done = True",
        "tests/runner/test_history_runs.py::test_a_tool_that_was_rolled_back_gives_its_permission_back",
    ),
    Mutant(
        "records before a snapshot are not looked at",
        "ledger/snapshots.py",
        "hashing.hexdigest() != prefix",
        "False",
        "tests/ledger/test_snapshots.py::test_a_changed_record_is_found_wherever_it_is",
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_the_mutant_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    must_be_noticed(mutant, tmp_path)


def test_the_copy_itself_passes(tmp_path: Path) -> None:
    must_pass_unchanged(MUTANTS, tmp_path)
