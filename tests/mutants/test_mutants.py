"""Each invariant's test must fail on a kernel that breaks the invariant.

A mutant is one exact replacement in one source file, and the test that has to notice. The package is copied,
the line replaced, the test run in a process that imports the copy. A mutant whose text is gone is an error:
the table follows the code.
"""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from process_kit import WAIT_S

ROOT = Path(__file__).resolve().parents[2]
STEP = "tests/kernel/test_step.py"
WATCH = "tests/kernel/test_watchdog.py"
POLLS = "tests/kernel/test_polls.py"
GATE = "tests/kernel/test_gate.py"
NARROW = "tests/policy/test_specs_only_narrow.py"
BARRIER = "tests/runner/test_commit_barrier.py"
FOLDS = "tests/policy/test_fold_state.py"
SNAPSHOT = "tests/kernel/test_snapshot.py"
TAKING = "tests/runner/test_taking_up.py"


FEW_PLUGINS = (
    *("-q", "-x", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "-p", "pytest_timeout"),
    *("-o", "addopts=--import-mode=importlib", "-W", "ignore::pytest.PytestConfigWarning"),
)
PLAIN = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""What pytest starts with: loading Django and the rest would take four times as long as the tests."""


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
        "kernel/route.py",
        "found = watch.loop(window, size, limit) if limit else None",
        "found = None",
        f"{STEP}::test_the_same_result_three_times_ends_the_run",
    ),
    Mutant(
        "watchdog looks at turns of one step",
        "kernel/watch.py",
        "min(size, len(marks) // times)",
        "1",
        f"{STEP}::test_write_and_undo_in_turns_is_a_loop",
    ),
    Mutant(
        "watchdog counts one step of a turn",
        "kernel/watch.py",
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
        "a poll is due at once",
        "kernel/permit.py",
        "due = turn.at + wait if wait else 0",
        "due = 0",
        f"{POLLS}::test_a_poll_is_due_an_interval_after_the_one_before",
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
        "kernel/watch.py",
        "(task, action, key, root)",
        '(task, action, key, "")',
        f"{STEP}::test_a_changed_result_or_workspace_is_progress",
    ),
    Mutant(
        "idempotent tools are watched like others",
        "kernel/route.py",
        "quiet = entry is not None and entry.idempotent",
        "quiet = False",
        f"{STEP}::test_idempotent_tools_may_repeat_but_still_cost_steps",
    ),
    Mutant(
        "budget of n allows n+1",
        "kernel/turn.py",
        "state.r1.steps >= budgets.steps",
        "state.r1.steps > budgets.steps",
        f"{STEP}::test_a_budget_of_n_steps_allows_exactly_n",
    ),
    Mutant(
        "no deadline",
        "kernel/turn.py",
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
        "kernel/permit.py",
        "state.r0.attempt + 1)",
        "1)",
        f"{STEP}::test_attempt_counts_permits_so_that_no_two_effects_are_alike",
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
        "a heuristic fires again",
        "kernel/permit.py",
        "if index not in r7.fired and",
        "if",
        f"{STEP}::test_each_consecutive_fail_injects_the_next_heuristic_in_order",
    ),
    Mutant(
        "WHEN is ignored",
        "kernel/permit.py",
        "(not heuristic.when or heuristic.when in r7.due)",
        "True",
        f"{STEP}::test_a_heuristic_with_when_waits_for_its_code",
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
        "if numbers and texts and",
        "if False and",
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
        "kernel/metric_signal.py",
        'if verdict.outcome != "improved":',
        "if value >= r7.best.value:",
        "tests/kernel/test_step_metrics.py::test_a_lower_median_without_the_pairs_to_show_it_is_no_improvement",
    ),
    Mutant(
        "samples past the verdict are taken",
        "kernel/metric_decision.py",
        "if index < len(pairs):",
        "if False:",
        "tests/kernel/test_step_metrics.py::test_samples_taken_past_the_verdict_are_refused",
    ),
    Mutant(
        "static evidence counts as measured",
        "kernel/metric_signal.py",
        'if status != "measured":',
        "if False:",
        "tests/kernel/test_step_metrics.py::test_static_evidence_never_improves_and_ends_as_a_plateau",
    ),
    Mutant(
        "failed checks are let through",
        "kernel/metric_signal.py",
        'check.get("ok") is not True',
        "False",
        "tests/kernel/test_step_metrics.py::test_an_incorrect_candidate_fails_with_the_code_of_its_check",
    ),
    Mutant(
        "the runner-up is forgotten",
        "kernel/metric_signal.py",
        "runner_up = r7.best if",
        "runner_up = None if",
        "tests/kernel/test_step_metrics.py::test_best_baseline_and_runner_up_are_kept",
    ),
    Mutant(
        "patience is endless",
        "kernel/metric_signal.py",
        "r7.stale >= rule.patience",
        "False",
        "tests/kernel/test_step_metrics.py::test_static_evidence_never_improves_and_ends_as_a_plateau",
    ),
    Mutant(
        "void counts as a fail",
        "kernel/metric_signal.py",
        '"validator.void", void=True)',
        '"validator.void")',
        "tests/kernel/test_step_metrics.py::test_a_void_measurement_is_taken_again_and_three_end_the_run",
    ),
    Mutant(
        "the state keeps a history",
        "kernel/watch.py",
        "[-size:]",
        "",
        f"{STEP}::test_state_does_not_grow_with_the_run",
    ),
    Mutant(
        "forbidden is not asked",
        "kernel/gate.py",
        'if session.holds("forbidden", ACTION):\n            code',
        "if False:\n            code",
        f"{GATE}::test_forbidden_beats_permitted",
    ),
    Mutant(
        "a proof under folds is of whatever past the session knows",
        "kernel/gate.py",
        "(not self.folds or held.past is judged.history)",
        "held.known is not None",
        f"{GATE}::test_a_kept_session_explains_by_the_past_of_its_own_decision",
    ),
    Mutant(
        "what is not derived is permitted",
        "kernel/gate.py",
        'elif session.holds("permitted", ACTION):',
        "elif True:",
        f"{GATE}::test_a_tool_that_no_rule_names_is_denied_and_nothing_happens",
    ),
    Mutant(
        "a fault of ours permits",
        "kernel/gate.py",
        'return Judged(False, "policy.bug"',
        'return Judged(True, "policy.bug"',
        f"{GATE}::test_a_fault_of_ours_denies",
    ),
    Mutant(
        "an engine's error permits",
        "kernel/gate.py",
        'makes no sense")\n        except UserError as error:\n            return Judged(False,',
        'makes no sense")\n        except UserError as error:\n            return Judged(True,',
        f"{GATE}::test_a_limit_denies",
    ),
    Mutant(
        "questions may go on for ever",
        "kernel/gate.py",
        "if rounds >= ROUNDS:",
        "if rounds >= 10**6:",
        "tests/kernel/test_gate_facts.py::test_an_observation_that_answers_nothing_is_asked_again_and_then_denied",
    ),
    Mutant(
        "an observation may say anything",
        "kernel/observed.py",
        "if place not in _PLACES or kind not in _FILES or type(links) is not int:",
        "if False:",
        "tests/kernel/test_gate_facts.py::test_an_observation_that_makes_no_sense_is_a_denial",
    ),
    Mutant(
        "trouble with the world is passed over",
        "kernel/gate.py",
        "if seen.trouble:",
        "if False:",
        "tests/kernel/test_gate_facts.py::test_a_world_that_can_not_be_looked_at_is_a_denial_at_once",
    ),
    Mutant(
        "a kept session is not told what was spent",
        "kernel/gate.py",
        "        if held.moving != moving:",
        "        if False:",
        "tests/kernel/test_gate_facts.py::test_the_same_action_is_judged_by_what_is_spent_now",
    ),
    Mutant(
        "the session of the last decision serves any other",
        "kernel/gate.py",
        "self._newest is not None and self._newest[0] == key:",
        "self._newest is not None:",
        f"{GATE}::test_a_kept_session_decides_and_explains_as_a_fresh_one",
    ),
    Mutant(
        "commits are replayed and not compared",
        "kernel/replay.py",
        "self._contents.popleft() != record.content",
        "not self._contents.popleft()",
        "tests/kernel/test_replay.py::test_a_forged_commit_is_a_difference",
    ),
    Mutant(
        "a budget that was told once is told no more",
        "kernel/gate.py",
        "if old is not new and old != new]",
        "if old[1][0] != new[1][0]]",
        "tests/kernel/test_gate_facts.py::test_the_same_action_is_judged_by_what_is_spent_now",
    ),
    Mutant(
        "what permitted grows with is open to specs",
        "policy/closed.py",
        'waiting.append((("permitted", 1), 1))',
        "pass",
        f"{NARROW}::test_nothing_is_permitted_that_is_not_permitted_without_the_policy",
    ),
    Mutant(
        "a negation counts as none",
        "policy/closed.py",
        "(-1,) if part.negated else (1,)",
        "(1,)",
        f"{NARROW}::test_nothing_is_permitted_that_is_not_permitted_without_the_policy",
    ),
    Mutant(
        "only the first step of a derivation is closed",
        "policy/closed.py",
        "waiting += [(below, sign * way) for below, way in _ways(clause)]",
        "signs.update((below, {sign * way}) for below, way in _ways(clause))",
        f"{NARROW}::test_nothing_is_permitted_that_is_not_permitted_without_the_policy",
    ),
    Mutant(
        "a table that is open to teams is open to specs",
        "policy/closed.py",
        '"spec": ("spec",)}',
        '"spec": ("team", "spec")}',
        f"{NARROW}::test_nothing_is_permitted_that_is_not_permitted_without_the_policy",
    ),
    Mutant(
        "a team's rules are judged as the operator's",
        "policy/law.py",
        "if law.team:",
        "if False:",
        f"{NARROW}::test_no_rules_of_a_team_lift_a_prohibition",
    ),
    Mutant(
        "a spec may state facts",
        "policy/law.py",
        "if clause.place.file in own and pred in RESERVED",
        "if False",
        f"{GATE}::test_a_spec_states_no_fact_that_the_kernel_states",
    ),
    Mutant(
        "only tools are judged",
        "kernel/permit.py",
        "    if gate is None:\n        return None",
        '    if gate is None or act != "tool":\n        return None',
        f"{GATE}::test_every_act_is_judged",
    ),
    Mutant(
        "a validator's command is not judged",
        "kernel/gate.py",
        'if "cmd" in proposed.args:',
        "if False:",
        f"{GATE}::test_what_a_validator_starts_is_judged_like_a_command_line",
    ),
    Mutant(
        "any result answers a question about the world",
        "kernel/step.py",
        "return proposal.kind == Kind.OBSERVE",
        "return True",
        "tests/kernel/test_gate_facts.py::test_only_an_observation_answers_a_question_about_the_world",
    ),
    Mutant(
        "an approval is not verified",
        "kernel/permit.py",
        "if isinstance(found, approval.Approved):",
        "if True:",
        "tests/kernel/test_gate_approvals.py::test_an_approval_that_does_not_fit_asks_anew",
    ),
    Mutant(
        "a signed no is asked again",
        "kernel/permit.py",
        'rejected.code == "policy.approval_denied"',
        "False",
        "tests/kernel/test_gate_approvals.py::test_a_signed_no_is_a_denial",
    ),
    Mutant(
        "diagnostics outlive the workspace they are about",
        "kernel/answer.py",
        "if root != turn.state.r3 and not staged:",
        "if False:",
        "tests/kernel/test_gate_facts.py::test_diagnostics_and_checks_are_of_the_present_workspace",
    ),
    Mutant(
        "requests are not counted",
        "kernel/turn.py",
        "if self.rules.decides.requests_counted and (requests or sent):",
        "if False:",
        "tests/kernel/test_gate_facts.py::test_requests_and_their_bytes_are_counted_from_records",
    ),
    Mutant(
        "a denied candidate ends the run",
        "kernel/permit.py",
        'if act == "tool" and comes_of_an_answer(task, step):',
        "if False:",
        f"{GATE}::test_a_denied_candidate_goes_back_to_whoever_proposed_it",
    ),
    Mutant(
        "the runner does not look again",
        "runner/observe.py",
        "return all(now.get(kind) == facts[kind] for kind in questions)",
        "return True",
        "tests/runner/test_gated_runs.py::test_a_path_that_leads_elsewhere_since_its_permit_is_not_used",
    ),
    Mutant(
        "staging clears what a check found",
        "kernel/answer.py",
        'body.get("only_git") is True',
        "False",
        f"{BARRIER}::test_staging_and_committing_keep_a_check_and_make_none",
    ),
    Mutant(
        "a check is kept by its name alone",
        "kernel/outcomes.py",
        "subject = canon.content_hash(options)",
        'subject = ""',
        "tests/kernel/test_gate_facts.py::test_a_check_with_other_options_is_another_check",
    ),
    Mutant(
        "a plateau hides a failed check",
        "kernel/outcomes.py",
        'if signal == "plateau":',
        "if False:",
        "tests/kernel/test_gate_facts.py::test_a_plateau_after_a_failed_check_is_a_failed_check",
    ),
    Mutant(
        "a closed repository is not looked at",
        "tools/git/repository.py",
        'return f"{changed[0]} was changed by something else than git"',
        'return ""',
        f"{BARRIER}::test_no_door_lets_an_unchecked_commit_through[script_commit-no_check]",
    ),
    Mutant(
        "files of the repository are not told apart",
        "tools/git/repository.py",
        "if not allowed:",
        "if False:",
        f"{BARRIER}::test_what_says_how_git_works_is_not_changed_by_git",
    ),
    Mutant(
        "a commit is not compared with the files",
        "tools/git/repository.py",
        'if set(found["trees"]) - (trees - {""}):',
        "if False:",
        f"{BARRIER}::test_what_is_staged_but_not_in_the_files_is_not_committed",
    ),
    Mutant(
        "hooks run where the repository is open",
        "tools/run.py",
        "**(repository.QUIET if call.repository else {})",
        "",
        f"{BARRIER}::test_hooks_of_the_workspace_do_not_run_on_a_line_that_opens_the_repository",
    ),
    Mutant(
        "a script shares a line with git",
        "policy/repository.py",
        "not kinds <= _ALONE or strangers",
        "False",
        f"{BARRIER}::test_a_line_on_which_anything_else_runs_opens_nothing",
    ),
    Mutant(
        "git_commit leaves changes out",
        "tools/git/guest.py",
        "    if left:",
        "    if False:",
        "tests/tools/test_git_commit.py::test_a_change_that_the_paths_leave_out_is_refused",
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
        "a window is open at its end",
        "policy/history/state.py",
        "return ago <= fold.window.amount",
        "return ago < fold.window.amount",
        f"{FOLDS}::test_both_ends_belong_to_a_window",
    ),
    Mutant(
        "a clock that is set back frees what a window holds",
        "policy/history/state.py",
        "step=history.step + 1, now=max(history.now, at))",
        "step=history.step + 1, now=at)",
        f"{FOLDS}::test_a_clock_that_is_set_back_frees_nothing",
    ),
    Mutant(
        "what an answer feeds is dropped where there is no room",
        "policy/history/state.py",
        "            full[name] = mark",
        "            pass",
        f"{FOLDS}::test_what_happened_already_and_finds_no_room_blocks_all_that_follows",
    ),
    Mutant(
        "a spec feeds a fold of the law",
        "policy/closed.py",
        "for below in (fold.feed, fold.close) for way in (1, -1)",
        "for below in () for way in ()",
        "tests/policy/test_history_cases.py::test_a_spec_feeds_no_fold_of_the_law",
    ),
    Mutant(
        "a request for which a fold has no room is permitted",
        "kernel/permit.py",
        'return judged._replace(allow=False, code="policy.limit", reason=trouble) if trouble else judged',
        "return judged",
        "tests/runner/test_history_runs.py::test_a_full_fold_denies_and_says_which",
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
    copy_package(tmp_path)
    path = tmp_path / "spak" / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, (
        f"the text of this mutant stands {text.count(mutant.old)} times in {mutant.file}"
    )
    path.unlink()
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    done = outcome_of(tmp_path, mutant.test)
    assert done.returncode == 1, f"survived:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def test_the_copy_itself_passes(tmp_path: Path) -> None:
    """Else every mutant would be noticed for the wrong reason."""
    copy_package(tmp_path)
    tests = dict.fromkeys(mutant.test for mutant in MUTANTS)
    done = outcome_of(tmp_path, *tests)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Bytecode that the copies share: it is valid for a copy whose sources have the same times and sizes."""
    assert compileall.compile_dir(ROOT / "agents/spak", quiet=1)


def copy_package(folder: Path) -> None:
    """The package as hard links where the file system can; what is changed has to be unlinked first."""
    shutil.copytree(ROOT / "agents/spak", folder / "spak", copy_function=link)
    for shipped in ("specs/policy", "sandbox"):
        shutil.copytree(ROOT / shipped, folder / "spak/_data" / shipped, copy_function=link)


def link(source: str, to: str) -> None:
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)


def outcome_of(copy: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *FEW_PLUGINS, *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(copy), **PLAIN},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
