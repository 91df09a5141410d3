"""The strategy tdd_repair: each move is derived by the shipped law, and a proof says why it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli_kit import ROOT, run_dir, spak
from repair_kit import AREA, CLAMP, RIGHT, TESTS, WRONG, project
from spak import canon

pytestmark = pytest.mark.sandbox

SPEC = str(ROOT / "specs/strategies/tdd_repair.spak")


def moves(folder: Path, document: Any) -> list[tuple[int, str]]:
    """The moves that the law derived, each with the number of its record."""
    lines = (run_dir(folder, document) / "trace.jsonl").read_bytes().splitlines()
    routes = [record for record in map(canon.loads, lines) if record["kind"] == "route"]
    return [(record["seq"], record["body"]["by"]) for record in routes if "by" in record["body"]]


def test_a_planted_bug_is_mended_and_each_move_has_its_proof(tmp_path: Path) -> None:
    folder = project(tmp_path / "work")
    code, seen = spak(tmp_path, "run", SPEC, "--workspace", "work", "--json")
    assert (code, seen["state"], seen["task"]) == (0, "succeeded", "done")
    made = moves(tmp_path, seen)
    tour = ["/read_error_log", "/analyze_root_cause", "/generate_patch", "/run_tests", "/finish"]
    assert [name for _, name in made] == tour
    assert (folder / "numbers_.py").read_text() == CLAMP, "it works in a copy"
    for seq, name in made:
        code, shown = spak(tmp_path, "show", "latest", "--proof", str(seq))
        assert code == 0 and shown.startswith(f"next_action({name})  (rule guard_tdd.mg:")
        assert "test_state(" in shown and "ended(" in shown
    assert spak(tmp_path, "replay", "latest", "--json")[1]["summary_hash"] == seen["summary_hash"]
    assert spak(tmp_path, "apply", "latest")[0] == 0
    assert (folder / "numbers_.py").read_text().replace("  # the mistake", "") == RIGHT


def test_a_refused_patch_leads_to_a_person_and_changes_nothing(tmp_path: Path) -> None:
    project(tmp_path / "work", {"mod.py": WRONG, "test_mod.py": AREA})
    code, seen = spak(tmp_path, "run", SPEC, "--workspace", "work", "--seed", "1", "--json")
    assert (code, seen["state"], seen["task"]) == (5, "refused", "give_up")
    assert seen["refusal"]["codes"] == ["repair.exhausted"]
    assert "single edits passes the failing tests: record" in seen["refusal"]["cause"]
    made = moves(tmp_path, seen)
    assert [name for _, name in made][-2:] == ["/generate_patch", "/escalate_to_user"]
    _, shown = spak(tmp_path, "show", "latest", "--proof", str(made[-1][0]))
    assert "tdd_stuck()" in shown and 'ended("patch", /fail)' in shown
    assert (run_dir(tmp_path, seen) / "workspace/mod.py").read_text() == WRONG


def test_green_tests_are_left_alone(tmp_path: Path) -> None:
    project(tmp_path / "work", {"numbers_.py": RIGHT, "test_numbers.py": TESTS})
    code, seen = spak(tmp_path, "run", SPEC, "--workspace", "work", "--json")
    assert (code, [name for _, name in moves(tmp_path, seen)]) == (0, ["/finish"])
