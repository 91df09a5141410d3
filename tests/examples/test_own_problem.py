"""A run that measures a problem of its own: the file is in the first record and not in the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_kit import run_dir, spak
from spak import data
from spak.ledger.files import FileLedgers

SPEC = """AGENT Own LEVEL 5 {{
  CONFIG {{ SANDBOX RESTRICTED MODE full_auto BUDGET {{ steps: 20 }} }}
  START -> first
  TASK first {{
    step build: tool.cc {{ source: "naive.c", output: "naive.so", flags: ["-O2"] }}
    VALIDATOR CpuProfiler {{ problem: "{problem}", binary: "naive.so", role: "baseline", n: 3 }}
    RULE {{ metric: time_ns }}
  }}
}}
"""
SHIPPED = data.path("specs/problems")


def _laid(folder: Path, problem: str, text: str) -> None:
    (folder / "own").mkdir()
    (folder / "own/naive.c").write_bytes((SHIPPED / "rmsnorm.c").read_bytes())
    (folder / "problems").mkdir()
    (folder / "problems/own.py").write_text(text)
    (folder / "own.spak").write_text(SPEC.format(problem=problem))


@pytest.mark.sandbox
def test_the_run_keeps_the_problem_that_it_began_with(tmp_path: Path) -> None:
    text = (SHIPPED / "rmsnorm.py").read_text()
    _laid(tmp_path, "problems/own.py", text)
    code, seen = spak(tmp_path, "run", "own.spak", "--json")
    assert (code, seen["state"]) == (0, "succeeded"), seen["refusal"]
    folder = run_dir(tmp_path, seen)
    genesis = FileLedgers(folder.parent).genesis(seen["run"])
    assert genesis.body["rules"]["problems"] == {"problems/own.py": text}
    assert not list((folder / "workspace").rglob("*.py"))
    (tmp_path / "problems/own.py").unlink()
    code, replayed = spak(tmp_path, "replay", "latest", "--json")
    assert (code, replayed["equal"]) == (0, True)


@pytest.mark.sandbox
def test_a_problem_that_gives_nan_ends_the_run_with_its_code(tmp_path: Path) -> None:
    text = (SHIPPED / "rmsnorm.py").read_text().replace("    return x / ", "    return np.nan * x / ")
    _laid(tmp_path, "problems/own.py", text)
    code, _ = spak(tmp_path, "run", "own.spak", "--json")
    assert code == 1
    code, shown = spak(tmp_path, "show", "latest", "--json")
    assert shown["registers"]["R4"]["code"] == "problem.not_finite"


def test_a_problem_that_does_not_exist_is_found_by_check(tmp_path: Path) -> None:
    _laid(tmp_path, "problems/other.py", "")
    code, seen = spak(tmp_path, "check", "own.spak", "--json")
    assert code == 3
    assert [item["code"] for item in seen["files"][0]["diagnostics"]] == ["lang.import_missing"]
    (tmp_path / "own.spak").write_text(SPEC.format(problem="rmsnrom"))
    code, seen = spak(tmp_path, "check", "own.spak", "--json")
    assert code == 3 and "conv2d" in str(seen), seen
