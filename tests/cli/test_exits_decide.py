"""Exits of tools decide a task that nothing else judges: whole runs through the command.

Source: DESIGN.md section 15.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_kit import spak

ALONE = 'task X { step a: tool.run { cmd: "false" } }'
LINTED = """
AGENT Linted LEVEL 2 {
  CONFIG { BUDGET { steps: 20 } }
  START -> lint
  TASK lint { step l1: tool.run { cmd: "false" } NEXT { success -> test fail -> repair } }
  TASK test { step t1: tool.run { cmd: "touch tested" } }
  TASK repair { step r1: tool.run { cmd: "touch repaired" } }
}
"""
ALLOWED = 'task X { step a: tool.run { cmd: "false" on_fail: continue } step b: tool.run { cmd: "true" } }'
JUDGED = 'task X { step a: tool.run { cmd: "false" } success: exit_code(a) == 1 }'
UNMET = 'task X { step a: tool.run { cmd: "true" } success: exit_code(a) == 1 }'


@pytest.mark.parametrize(
    ("text", "code", "state", "codes"),
    [
        (ALONE, 1, "failed", ["tool.exit"]),
        (ALLOWED, 0, "succeeded", []),
        (JUDGED, 0, "succeeded", []),
        (UNMET, 1, "failed", ["run.success_unmet"]),
    ],
    ids=["alone", "allowed", "judged", "unmet"],
)
def test_what_decides_a_task(tmp_path: Path, text: str, code: int, state: str, codes: list[str]) -> None:
    (tmp_path / "x.spak").write_text(text)
    exit_code, document = spak(tmp_path, "run", "x.spak", "--json")
    assert (exit_code, document["state"]) == (code, state)
    assert ((document["refusal"] or {}).get("codes") or document.get("codes") or []) == codes


def test_a_linter_that_fails_takes_the_edge_for_fail(tmp_path: Path) -> None:
    (tmp_path / "x.spak").write_text(LINTED)
    exit_code, document = spak(tmp_path, "run", "x.spak", "--json", "--workspace", ".")
    assert (exit_code, document["state"], document["task"]) == (0, "succeeded", "repair")
    assert [item["name"] for item in document["artifacts"]] == ["repaired"]
