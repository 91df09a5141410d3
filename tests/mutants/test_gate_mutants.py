"""Each test of the gate must fail on a gate that breaks its invariant: permits, facts, approvals, history."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants_kit import Mutant, must_be_noticed, must_pass_unchanged

STEP = "tests/kernel/test_step.py"
POLLS = "tests/kernel/test_polls.py"
GATE = "tests/kernel/test_gate.py"
NARROW = "tests/policy/test_specs_only_narrow.py"
FOLDS = "tests/policy/test_fold_state.py"

MUTANTS = [
    Mutant(
        "a poll is due at once",
        "kernel/permit.py",
        "due = turn.at + wait if wait else 0",
        "due = 0",
        f"{POLLS}::test_a_poll_is_due_an_interval_after_the_one_before",
    ),
    Mutant(
        "attempt counts retries only",
        "kernel/permit.py",
        "state.r0.attempt + 1)",
        "1)",
        f"{STEP}::test_attempt_counts_permits_so_that_no_two_effects_are_alike",
    ),
    Mutant(
        "a heuristic fires again",
        "kernel/heuristics.py",
        "if index not in fired and",
        "if",
        f"{STEP}::test_each_consecutive_fail_injects_the_next_heuristic_in_order",
    ),
    Mutant(
        "WHEN is ignored",
        "kernel/heuristics.py",
        "heuristic.when in answers",
        "True",
        f"{STEP}::test_a_heuristic_with_when_waits_for_its_code",
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
        "a proof names the values of another action",
        "kernel/gate.py",
        "                held.become(judged.facts, judged.moving)\n",
        "",
        "tests/kernel/test_gate_shapes.py::test_a_decision_is_explained_when_others_have_come_since",
    ),
    Mutant(
        "a join reads nothing",
        "datalog/unread.py",
        "times[name] > 1",
        "times[name] > 99",
        "tests/datalog/test_unread.py::test_what_is_unread",
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
        "        held.spend(moving, bool(self.folds))\n",
        "",
        "tests/kernel/test_gate_facts.py::test_the_same_action_is_judged_by_what_is_spent_now",
    ),
    Mutant(
        "what follows from more than is spent is passed over",
        "policy/held.py",
        "if all(self._idle[place] or",
        "if True or all(self._idle[place] or",
        "tests/kernel/test_gate_facts.py::test_a_kept_session_says_the_same_of_any_amounts",
    ),
    Mutant(
        "a law that asks for less is taken for one that asks for more",
        "datalog/unread.py",
        'LARGER = {"<": 1, "<=": 1, ">": 0, ">=": 0}',
        'LARGER = {"<": 0, "<=": 0, ">": 0, ">=": 0}',
        "tests/datalog/test_unread.py::test_which_columns_are_only_asked_for_more",
    ),
    Mutant(
        "the session of the last decision serves any other",
        "kernel/gate.py",
        "self._newest is not None and self._newest[0] == key:",
        "self._newest is not None:",
        f"{GATE}::test_a_kept_session_decides_and_explains_as_a_fresh_one",
    ),
    Mutant(
        "a budget that was told once is told no more",
        "policy/held.py",
        "strict=True) if old != new]",
        "strict=True) if old[1][0] != new[1][0]]",
        "tests/kernel/test_gate_facts.py::test_the_same_action_is_judged_by_what_is_spent_now",
    ),
    Mutant(
        "what permitted grows with is open to specs",
        "policy/closed_predicates.py",
        'waiting += [(("permitted", 1), 1), ',
        "waiting += [",
        f"{NARROW}::test_nothing_is_permitted_that_is_not_permitted_without_the_policy",
    ),
    Mutant(
        "a negation counts as none",
        "policy/closed_predicates.py",
        "(-1,) if part.negated else (1,)",
        "(1,)",
        f"{NARROW}::test_nothing_is_permitted_that_is_not_permitted_without_the_policy",
    ),
    Mutant(
        "only the first step of a derivation is closed",
        "policy/closed_predicates.py",
        "waiting += [(below, sign * way) for below, way in _ways(clause)]",
        "signs.update((below, {sign * way}) for below, way in _ways(clause))",
        f"{NARROW}::test_nothing_is_permitted_that_is_not_permitted_without_the_policy",
    ),
    Mutant(
        "a table that is open to teams is open to specs",
        "policy/closed_predicates.py",
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
        "    proposed = _proposed(turn, act, name, args)\n",
        "    proposed = _proposed(turn, act, name, args)\n"
        '    if act != "tool":\n        return Judged(True)\n',
        f"{GATE}::test_every_act_is_judged",
    ),
    Mutant(
        "a validator's command is not judged",
        "kernel/gate.py",
        'if "cmd" in proposed.args:',
        "if False:",
        f"{GATE}::test_what_a_validator_starts_is_known_to_the_law",
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
        'rejected.code in ("policy.approval_denied", "policy.approval_later")',
        "False",
        "tests/kernel/test_gate_approvals.py::test_a_signed_no_is_a_denial",
    ),
    Mutant(
        "diagnostics outlive the workspace they are about",
        "kernel/answer.py",
        "turn.executive(diagnostics=(), checks=())",
        "",
        "tests/kernel/test_gate_facts.py::test_diagnostics_and_checks_are_of_the_present_workspace",
    ),
    Mutant(
        "requests are not counted",
        "kernel/turn.py",
        "if requests or sent:",
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
        "a check is kept by its name alone",
        "kernel/outcomes.py",
        "kind + canon.content_hash(options)",
        "kind",
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
        "policy/closed_predicates.py",
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
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_the_mutant_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    must_be_noticed(mutant, tmp_path)


def test_the_copy_itself_passes(tmp_path: Path) -> None:
    must_pass_unchanged(MUTANTS, tmp_path)
