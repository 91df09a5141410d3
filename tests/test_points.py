"""What users of other products ask of an editor and of a run's page, and the tests that show each point.

Each point names tests by file and function, below `tests`; one that is gone or renamed fails here. The points
are those of comparable products' issue trackers: eleven about editing a spec in the browser, eleven about
watching runs, and the hostile or odd input that an upload and an answer have to survive.
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


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text())
    return {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}


def test_there_are_eleven_of_each() -> None:
    assert len(EDITING) == len(WATCHING) == 11


@pytest.mark.parametrize("point", [*EDITING, *WATCHING, *BAD_INPUT])
def test_every_point_has_its_tests(point: str) -> None:
    named = {**EDITING, **WATCHING, **BAD_INPUT}[point]
    gone = [one for one in named if one.partition("::")[2] not in functions(one.partition("::")[0])]
    assert named and gone == []
