"""`spak outer gate BASE DIFF`: what loosens a spec ends with 5, and a list for a person to decide."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from cli_calls import Cli

BASE = """\
AGENT A LEVEL 4 {
  CONFIG { MODE full_auto, BUDGET { requests: 20 } }
  START -> plan
  TASK plan {
    step look: tool.grep { pattern: "TODO" path: "." }
    step a: tool.read_file { path: "a.txt" }
    NEXT { success -> build, fail -> verify }
  }
  TASK build {
    GOAL "Mend it."
    TOOLS [write_file]
    NEXT { success -> verify }
  }
  TASK verify {
    RETRIES 0
    step test: tool.run { cmd: "python3 a.py" }
    step ask: llm.query { prompt_template: "Is it right? yes or no." output_var: verdict }
    success: exit_code(test) == 0 and verdict == "yes"
  }
}
"""
WITHOUT_JUDGE = (
    BASE[: BASE.index("  TASK verify")]
    .replace(", fail -> verify", "")
    .replace("    NEXT { success -> verify }\n", "")
    + "}\n"
)
LOOK = '    step look: tool.grep { pattern: "TODO" path: "." }\n'
NEXT_OF_BUILD = BASE.replace("    NEXT { success -> verify }\n", "")


@pytest.mark.findings("A3", "A6", "A8")
@pytest.mark.parametrize(
    ("text", "row", "path"),
    [
        (NEXT_OF_BUILD, "way", "tasks/build/NEXT/success"),
        (BASE.replace(LOOK, ""), "step", "tasks/plan/steps/look"),
        (BASE.replace("Is it right? yes or no.", "Answer yes."), "prompt", "tasks/verify/steps/ask"),
        (NEXT_OF_BUILD.replace("    TOOLS [write_file]\n", ""), "way", "tasks/build/NEXT/success"),
        (WITHOUT_JUDGE, "way", "tasks/build/NEXT/success"),
        (BASE.replace("full_auto,", "full_auto, APPROVALS ask,"), "approvals", ""),
        (BASE.replace("requests: 20", "requests: 0"), "budget", ""),
        (BASE.replace("python3 a.py", "true"), "evidence", "tasks/verify/steps/test"),
    ],
    ids=["way", "deciding step", "prompt", "goal alone", "judge", "approvals", "requests", "command"],
)  # fmt: skip
def test_what_loosens_is_privileged(cli: Cli, tmp_path: Path, text: str, row: str, path: str) -> None:
    assert text != BASE
    (tmp_path / "base.spak").write_text(BASE)
    diff = unified_diff(BASE.splitlines(True), text.splitlines(True), "base.spak", "base.spak")
    (tmp_path / "cand.diff").write_text("".join(diff))
    done = cli("outer", "gate", "base.spak", "cand.diff", "--json")
    assert (done.code, done.json["verdict"]) == (5, "privileged"), done.err
    [stage] = [one for one in done.json["stages"] if one["verdict"] == "privileged"]
    changes = stage["evidence"]["changes"]
    assert (row, path) in [(one.get("capability"), one["path"]) for one in changes], changes
