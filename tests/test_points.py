"""What users ask of an editor, of a run's page and of a review, and the tests that show each point.

Each point names tests by file and function, below `tests`; one that is gone or renamed fails here. The points
are those of comparable products' issue trackers: eleven about editing a spec in the browser, eleven about
watching runs, and the hostile or odd input that an upload and an answer have to survive. Of a review: what
people say and decide, the rules, what a merge leaves behind, the stories from end to end, and odd input.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

EDITING = {
    "text and graph are one document": (
        "e2e/editor/test_editor_stories.py::test_drag_an_edge_and_undo_it",
        "web/editor/test_editor_services.py::test_an_operation_is_a_small_change_and_keeps_the_rest",
    ),
    "undo and redo over graph edits": (
        "e2e/editor/test_editor_stories.py::test_one_undo_stack_for_typing_and_drawing",
        "e2e/editor/test_task_form.py::test_everything_of_a_task_is_edited_in_its_form",
    ),
    "versions, names, restore": (
        "web/ground/test_specs_actions.py::test_a_restored_version_says_from_where",
        "web/ground/test_specs_actions.py::test_a_tag_moves",
        "web/ground/test_specs_actions.py::test_the_same_text_makes_no_version",
        "e2e/editor/test_editor_saving.py::test_saving_unchanged_text_makes_no_version",
        "web/api/test_api.py::test_a_run_starts_from_version_tag_and_inputs",
    ),
    "a run shows the spec that it ran": (
        "web/runs/test_run_versions.py::test_a_run_keeps_its_version_and_a_rerun_asks_which",
    ),
    "two people at once": (
        "e2e/editor/test_editor_saving.py::test_two_people_save_the_same_base_and_both_changes_stay",
        "e2e/editor/test_editor_saving.py::test_a_conflict_is_shown_and_never_the_last_write_wins",
        "web/ground/test_specs_actions.py::test_of_many_savers_at_once_one_wins",
    ),
    "diagnostics in place": (
        "e2e/editor/test_editor_stories.py::test_see_the_missing_task_mend_it_and_save",
        "e2e/editor/test_editor_stories.py::test_node_line_and_outline_find_each_other",
    ),
    "expanded view": (
        "e2e/editor/test_editor_stories.py::test_compiled_and_a_step_by_hand",
        "web/editor/test_editor_services.py::test_the_prompt_is_the_kernels_and_unknown_variables_stay",
    ),
    "dry run, and the last input and output": (
        "e2e/editor/test_editor_stories.py::test_compiled_and_a_step_by_hand",
        "e2e/runs/test_run_stories.py::test_the_editor_has_the_last_input_and_output_beside_a_task",
    ),
    "completion, hover, go to, rename, format": (
        "e2e/editor/test_editor_stories.py::test_completion_hover_definition_rename_format_fold_search",
    ),
    "keyboard and canvas": (
        "e2e/editor/test_editor_stories.py::test_everything_by_keyboard",
        "e2e/editor/test_task_form.py::test_a_step_is_moved_by_the_keyboard",
    ),
    "import, export, templates": (
        "web/ground/test_pages.py::test_importing_and_exporting_a_version_is_exact",
        "e2e/shell/test_shell_pages.py::test_a_copy_of_an_example_and_a_file_become_a_spec_and_a_version",
    ),
}
WATCHING = {
    "attempts kept apart": (
        "web/runs/test_attempts_and_cost.py::test_a_record_offers_the_other_attempts_of_its_step",
        "web/runs/test_run_dashboards.py::test_attempts_stand_apart",
        "web/runs/test_run_dashboards.py::test_idle_time_is_folded",
    ),
    "timeline, graph, grid together": (
        "e2e/runs/test_run_stories.py::test_the_width_of_the_graph_is_remembered",
        "e2e/runs/test_run_stories.py::test_by_keyboard",
    ),
    "long histories": (
        "e2e/runs/test_run_stories.py::test_older_records_come_as_one_scrolls",
        "web/runs/test_run_pages.py::test_records_are_paged_and_filtered",
    ),
    "filters survive": (
        "e2e/runs/test_run_list.py::test_filters_survive",
        "web/runs/test_kept_views.py::test_a_view_is_kept_used_changed_and_dropped",
    ),
    "compare runs": (
        "web/runs/test_compare_tasks.py::test_tasks_side_by_side",
        "web/runs/test_run_dashboards.py::test_two_runs_are_compared",
        "e2e/runs/test_run_stories.py::test_a_fork_beside_its_parent",
    ),
    "tokens and cost": (
        "web/runs/test_attempts_and_cost.py::test_the_table_of_steps_shows_where_tokens_and_money_went",
        "web/runs/test_attempts_and_cost.py::test_the_table_of_tasks_shows_tokens_and_cost_of_each",
        "web/runs/test_run_pages.py::test_cost_stands_beside_its_budget",
    ),
    "replay and fork": (
        "web/runs/test_run_actions.py::test_a_fork_says_what_it_takes_over_and_does_so",
        "e2e/runs/test_run_stories.py::test_a_fork_beside_its_parent",
    ),
    "cancel, retry a piece": (
        "web/runs/test_run_endings.py::test_a_failed_run_is_tried_again_from_its_question_and_from_its_task",
        "web/runs/test_attempts_and_cost.py::test_a_waiting_step_is_skipped_with_an_empty_answer",
        "e2e/runs/test_run_list.py::test_the_chosen_are_counted_and_asked_about",
    ),
    "place in the queue, and why it waits": (
        "web/fleet/test_fleet.py::test_why_a_run_waits",
        "web/fleet/test_fleet.py::test_the_page",
    ),
    "live logs": (
        "e2e/runs/test_run_stories.py::test_the_log_grows",
        "e2e/runs/test_run_stories.py::test_what_a_tool_puts_out_while_it_runs",
        "web/runs/test_run_log.py::test_the_file_has_all_of_it",
    ),
    "share": (
        "e2e/runs/test_run_stories.py::test_from_the_form_to_the_end",
        "web/hooks/test_webhooks.py::test_a_state_change_is_one_delivery_to_each_webhook_that_wants_it",
    ),
}
BAD_INPUT = {
    "2 GB": ("web/runs/test_brought_files.py::test_a_request_that_is_too_long_is_not_read",),
    "100,000 files": ("workspace/test_unpack.py::test_many_files_are_refused_before_their_list_is_read",),
    "names in any script, a zip in a zip": (
        "workspace/test_unpack.py::test_the_root_is_that_of_the_workspace",
        "e2e/runs/test_first_hour.py::test_the_first_hour",
    ),
    "links, devices": ("workspace/test_unpack.py::test_links_and_devices_are_refused",),
    "a bomb": ("workspace/test_unpack.py::test_sizes_are_counted_and_not_believed",),
    "a file that changes while it is read": (
        "e2e/runs/test_first_hour.py::test_too_much_and_what_cannot_be_read_is_told_before_it_is_sent",
    ),
    "a patch that fits twice": ("web/runs/test_answer_patch.py::test_a_patch_that_fits_twice_says_so",),
    "two people who answer at once": (
        "web/runs/test_answer_patch.py::test_two_who_answer_at_once",
        "e2e/runs/test_run_stories.py::test_who_is_late_is_told",
    ),
}

REVIEWING = {
    "a patch is proposed from the editor, a text, a diff, a campaign, another patch": (
        "web/reviews/test_inbox.py::test_the_editor_proposes_and_the_draft_goes_with_it",
        "web/reviews/test_inbox.py::test_a_draft_of_another_text_stays",
        "web/reviews/test_reviews.py::test_a_unified_diff_is_applied_to_its_base",
        "web/reviews/test_campaigns.py::test_a_fit_candidate_arrives_with_its_evidence_once",
        "web/reviews/test_conflicts.py::test_a_fork_begins_with_the_newest_revision",
    ),
    "a semantic list: renames and moves as such, formatting apart, what widens first": (
        "web/reviews/test_patch_page.py::test_changes_are_told_by_part_what_widens_first",
        "web/reviews/test_patch_page.py::test_steps_that_change_places_moved_and_layout_is_apart",
    ),
    "which base, and a warning when it has moved on": (
        "web/reviews/test_patch_page.py::test_it_says_which_base_and_warns_when_that_is_no_longer_the_newest",
        "e2e/reviews/test_review_stories.py::test_two_patches_conflict_and_the_choice_is_by_task",
    ),
    "the text side by side, unified, and since a revision": (
        "web/reviews/test_patch_page.py::test_the_text_side_by_side_unified_and_since_a_revision",
    ),
    "recorded actions newly permitted or denied, each with its proof": (
        "web/runs/test_patch_evidence.py::test_a_patch_that_forbids_what_runs_did",
        "web/runs/test_patch_evidence.py::test_a_patch_that_permits_what_was_denied_needs_an_admin",
    ),
    "the pairs of a campaign and its curve of evidence": (
        "web/reviews/test_campaigns.py::test_a_fit_candidate_arrives_with_its_evidence_once",
        "e2e/reviews/test_review_stories.py::test_a_campaign_arrives_and_is_merged_run_and_reverted",
    ),
    "a large patch within its size": (
        "web/reviews/test_patch_page.py::test_a_large_patch_is_within_its_size",
    ),
    "everything done to a patch is an event of the team": (
        "web/reviews/test_reviews.py::test_what_is_done_to_a_patch_is_an_event_of_the_team",
    ),
    "tokens, cost and time of base and patch, or that nothing is known": (
        "web/reviews/test_spending.py::test_a_campaign_shows_its_pairs_and_its_front",
        "web/reviews/test_spending.py::test_runs_that_the_replay_knows_to_their_end_are_paired",
        "web/reviews/test_spending.py::test_recorded_runs_tell_of_the_base_alone",
        "web/reviews/test_spending.py::test_nothing_known_is_said",
        "evolve/test_front.py::test_spending_is_paired_by_case_as_spak_eval_reports_it",
    ),
    "replay coverage and flips by task, with the runs": (
        "evolve/test_task_outcomes.py::test_flips_are_counted_by_task_and_unknown_apart",
        "web/reviews/test_flips.py::test_the_page_has_flips_by_task_with_links_to_the_runs",
        "e2e/reviews/test_review_stories.py::test_flips_by_task_of_a_recorded_run",
    ),
    "the Pareto front of a campaign": (
        "evolve/test_front.py::test_the_front_are_those_that_no_other_one_beats",
        "web/reviews/test_spending.py::test_the_drawing_marks_the_front_and_ones_own",
        "web/campaigns/test_campaign_pages.py::test_a_campaign_from_the_form_to_its_patch",
    ),
    "the graph of both, with a list that puts a task in the middle": (
        "web/reviews/test_patch_page.py::test_the_graph_of_both_draws_what_was_added_changed_and_removed_apart",
        "e2e/reviews/test_review_stories.py::test_who_may_not_save_proposes_and_another_approves",
    ),
    "comments on parts, steps, lines and edits, through revisions, resolved or not": (
        "web/reviews/test_comments.py::test_a_comment_on_a_line_stays_and_is_outdated_when_the_line_goes",
        "web/reviews/test_comments.py::test_a_comment_on_a_step_stays_with_its_task_until_the_step_is_as_it_was",
        "web/reviews/test_comments.py::test_a_suggestion_is_applied_by_its_button",
        "web/reviews/test_reviews.py::test_the_page_shows_it_and_its_forms_act",
    ),
    "a suggestion becomes an edit with one click": (
        "web/reviews/test_comments.py::test_a_suggestion_becomes_an_edit",
        "web/reviews/test_comments.py::test_a_suggestion_is_applied_by_its_button",
    ),
    "an edit that is dropped: a revision, its checks, and the proposer is told why": (
        "web/reviews/test_reviews.py::test_what_was_reviewed_is_merged_once",
        "web/reviews/test_inbox.py::test_who_changes_anothers_patch_tells_the_proposer_why",
    ),
    "viewed, until that part changes": (
        "web/reviews/test_comments.py::test_viewed_falls_when_that_part_changes_and_no_other",
    ),
    "what a protected spec imports is protected too, or named": (
        "web/reviews/test_protected_imports.py::test_what_is_imported_and_not_protected_is_named",
        "web/reviews/test_protected_imports.py::test_one_click_gives_what_is_imported_the_same_rules",
    ),
    "a protected spec takes patches alone, with so many approvals": (
        "web/reviews/test_reviews.py::test_a_protected_spec_takes_patches_alone",
        "web/reviews/test_inbox.py::test_the_editor_of_a_protected_spec_offers_only_to_propose",
    ),
    "who approves which kind of edit: an admin or a named role": (
        "web/reviews/test_reviews.py::test_what_widens_needs_an_admin",
        "web/reviews/test_conflicts.py::test_privileged_changes_can_ask_for_an_admin",
        "web/reviews/test_named_roles.py::test_what_kinds_an_edit_has",
        "web/reviews/test_named_roles.py::test_somebody_of_the_role_has_to_approve_and_no_author_does",
        "web/reviews/test_named_roles.py::test_the_forms",
    ),
    "rules of a team, which a spec may override": (
        "web/reviews/test_team_rules.py::test_it_holds_for_specs_without_rules_of_their_own",
        "web/reviews/test_team_rules.py::test_a_spec_may_override_it_either_way_and_come_back",
        "web/reviews/test_team_rules.py::test_the_pages",
    ),
    "required checks": (
        "web/reviews/test_evidence.py::test_a_text_with_errors_fails_and_holds_the_merge",
        "web/reviews/test_evidence.py::test_a_law_that_changed_makes_evidence_stale",
    ),
    "programs propose, discuss and merge what people approved, and approve nothing": (
        "web/api/test_api_reviews.py::test_it_is_merged_with_the_approvals_of_people_alone",
        "web/api/test_api_reviews.py::test_it_is_queued_and_taken_out",
    ),
    "no author approves": (
        "web/reviews/test_reviews.py::test_authors_do_not_approve",
        "web/reviews/test_merge_queue.py::test_who_queues_does_not_write_what_the_queue_makes",
    ),
    "approvals fall with a new revision unless only formatting changed": (
        "web/reviews/test_reviews.py::test_a_comment_is_what_was_approved",
        "web/reviews/test_reviews.py::test_a_text_that_can_no_longer_be_read_is_no_formatting",
        "web/reviews/test_reviews.py::test_approvals_fall_with_a_new_meaning_and_stay_with_new_formatting",
    ),
    "two patches that pass alone and not together are found": (
        "web/reviews/test_merge_queue.py::test_two_patches_that_pass_alone_and_not_together_are_found",
    ),
    "conflicts of three texts, by task, on a page": (
        "web/reviews/test_conflicts.py::test_conflicts_are_decided_by_task",
        "web/reviews/test_by_task.py::test_a_task_that_both_changed_is_a_conflict_of_that_task_alone",
    ),
    "a merge: exactly what was reviewed, with where it came from, signed": (
        "web/reviews/test_reviews.py::test_what_was_reviewed_is_merged_once",
        "web/reviews/test_history.py::test_a_merge_is_signed_in_the_history_of_the_spec",
    ),
    "a revert is a patch, also where others changed the same since": (
        "web/reviews/test_reviews.py::test_a_merged_patch_is_reverted_by_a_patch",
        "web/reviews/test_reviews.py::test_a_revert_of_what_others_changed_since_is_a_patch_with_conflicts",
    ),
    "blame of each field: who, when, why, on which evidence": (
        "cli/test_blame_verb.py::test_a_history_of_the_platform_with_approvals_and_evidence",
        "cli/test_blame_verb.py::test_a_forged_history_does_not_hold",
        "web/reviews/test_history.py::test_blame_names_patch_and_person_of_each_line",
    ),
    "tags move by the rules, and runs name them": (
        "web/reviews/test_tags.py::test_staging_comes_before_production",
        "web/reviews/test_tags.py::test_what_nobody_reviewed_is_not_promoted",
        "web/reviews/test_tags.py::test_only_an_admin_removes_them",
        "web/reviews/test_tags.py::test_a_run_names_a_tag",
        "web/api/test_api.py::test_a_run_starts_from_version_tag_and_inputs",
    ),
    "an inbox, a count, notices and mail for those who must act": (
        "web/reviews/test_inbox.py::test_reviewers_are_asked_and_then_the_author",
        "web/reviews/test_inbox.py::test_home_the_inbox_and_the_navigation_show_it",
        "web/reviews/test_review_mail.py::test_mail_goes_to_those_who_must_act",
        "web/reviews/test_review_mail.py::test_mail_asks_those_again_whose_verdict_no_longer_counts",
    ),
    "by the keyboard alone, in a minute": (
        "e2e/reviews/test_review_stories.py::test_a_review_by_the_keyboard_alone",
    ),
    "two people see each other's verdicts live": (
        "e2e/reviews/test_review_stories.py::test_a_campaign_arrives_and_is_merged_run_and_reverted",
    ),
}
REVIEW_STORIES = {
    "a campaign's patch: an edit dropped, a comment answered, approved, merged, run, reverted": (
        "e2e/reviews/test_review_stories.py::test_a_campaign_arrives_and_is_merged_run_and_reverted",
        "e2e/reviews/test_campaign_story.py::test_start_a_campaign_follow_it_and_find_its_patch",
    ),
    "an editor without rights proposes to a protected spec": (
        "e2e/reviews/test_review_stories.py::test_who_may_not_save_proposes_and_another_approves",
    ),
    "two patches conflict": (
        "e2e/reviews/test_review_stories.py::test_two_patches_conflict_and_the_choice_is_by_task",
    ),
    "a hostile name in every field": (
        "web/reviews/test_hostile_words.py::test_a_hostile_name_in_every_field",
        "web/reviews/test_hostile_words.py::test_hostile_words_on_the_page_of_conflicts",
        "web/reviews/test_hostile_words.py::test_marks_of_direction_in_a_text_are_seen_where_it_is_reviewed",
        "web/reviews/test_hostile_words.py::test_marks_of_direction_in_words_about_a_patch_are_seen",
        "e2e/reviews/test_hostile_story.py::test_a_hostile_name_in_every_field",
    ),
    "a patch whose evidence went stale": (
        "e2e/reviews/test_review_stories.py::test_two_patches_conflict_and_the_choice_is_by_task",
        "web/reviews/test_evidence.py::test_a_law_that_changed_makes_evidence_stale",
        "web/reviews/test_evidence.py::test_a_file_that_is_imported_and_changed_makes_evidence_stale",
        "web/reviews/test_evidence.py::test_the_first_runs_after_the_check_are_judged_before_the_merge",
    ),
}
BAD_REVIEW_INPUT = {
    "a stale base": (
        "web/reviews/test_reviews.py::test_a_base_that_moved_on",
        "web/reviews/test_reviews.py::test_what_cannot_be_proposed",
    ),
    "a double merge from two tabs": (
        "web/reviews/test_reviews.py::test_the_page_shows_it_and_its_forms_act",
        "web/reviews/test_merges_at_once.py::test_one_patch_is_merged_once_by_many",
    ),
    "a vanished proposer": (
        "web/reviews/test_bad_input.py::test_a_proposer_who_left_leaves_the_patch_to_others",
    ),
    "a spec that was archived meanwhile": (
        "web/reviews/test_conflicts.py::test_a_spec_that_was_archived_meanwhile_takes_no_merge",
        "web/reviews/test_merge_queue.py::test_an_archived_spec_and_a_change_that_is_there_already",
    ),
    "a patch of 256 KB": (
        "web/reviews/test_bad_input.py::test_a_text_as_large_as_a_spec_may_be_and_one_byte_more",
    ),
    "a comment of 1 MB, and thousands of comments": (
        "web/reviews/test_bad_input.py::test_a_comment_of_a_megabyte_is_refused_in_words",
        "web/reviews/test_bad_input.py::test_very_many_comments_come_in_pages",
    ),
    "a forged revision": ("web/reviews/test_bad_input.py::test_a_forged_revision_does_nothing",),
}
POINTS = {**EDITING, **WATCHING, **BAD_INPUT, **REVIEWING, **REVIEW_STORIES, **BAD_REVIEW_INPUT}


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text())
    return {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}


def test_there_are_eleven_of_each() -> None:
    assert len(EDITING) == len(WATCHING) == 11


@pytest.mark.parametrize("point", POINTS)
def test_every_point_has_its_tests(point: str) -> None:
    named = POINTS[point]
    gone = [one for one in named if one.partition("::")[2] not in functions(one.partition("::")[0])]
    assert named and gone == []
