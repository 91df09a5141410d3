"""specs/examples/build_feature.spak through the command line, with the real sandbox and the real pytest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_kit import EXAMPLES, run_dir, spak

SPEC = str(EXAMPLES / "build_feature.spak")
FIX = str(EXAMPLES / "fix.patch")


@pytest.mark.sandbox
def test_it_suspends_takes_a_patch_and_passes(tmp_path: Path) -> None:
    code, first = spak(tmp_path, "run", SPEC, "--mode", "stepwise", "--json")
    assert (code, first["state"]) == (4, "waiting")
    assert "Fix failing tests:" in first["waiting"]["prompt"]
    assert "2 failed, 2 passed" in first["waiting"]["prompt"]
    context = json.loads((run_dir(tmp_path, first) / "context.json").read_text())
    assert context["step_pointer"] == "s2" and context["pending"]["step"] == "s2"
    assert "2 failed" in context["last_tool_output"]
    code, last = spak(tmp_path, "step", "--resume", "--answer-file", FIX, "--json")
    assert (code, last["state"]) == (0, "succeeded")
    assert (run_dir(tmp_path, last) / "workspace/result.txt").read_text() == "PASS\n"
    code, again = spak(tmp_path, "step", "--resume", "--answer-file", FIX, "--json")
    assert code == 0 and again["records"] == last["records"]
    code, other = spak(tmp_path, "step", "--resume", "--answer", "another patch", "--json")
    assert (code, other["error"]["code"]) == (1, "run.not_waiting")


@pytest.mark.sandbox
def test_a_patch_that_does_not_mend_fails_the_run(tmp_path: Path) -> None:
    patch = (
        "--- a/slug.py\n+++ b/slug.py\n@@ -1 +1 @@\n-"
        + '"""Names for files and addresses, made from titles."""'
    )
    patch += "\n+" + '"""Still wrong."""' + "\n"
    spak(tmp_path, "run", SPEC, "--mode", "stepwise")
    code, last = spak(tmp_path, "step", "--resume", "--answer", patch, "--json")
    assert (code, last["refusal"]["codes"]) == (1, ["run.success_unmet"])
    assert (run_dir(tmp_path, last) / "workspace/result.txt").read_text().startswith("FAIL")


@pytest.mark.sandbox
@pytest.mark.parametrize("path", ["result.txt", "tests/test_slug.py"])
def test_a_patch_may_touch_neither_the_verdict_nor_the_tests(tmp_path: Path, path: str) -> None:
    patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+PASS\n"
    if path != "result.txt":
        patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-import sys\n+import os\n"
    spak(tmp_path, "run", SPEC, "--mode", "stepwise")
    code, last = spak(tmp_path, "step", "--resume", "--answer", patch, "--json")
    assert (code, last["state"]) == (4, "waiting")
    assert "patch.protected" in last["waiting"]["prompt"]
    assert not (run_dir(tmp_path, last) / "workspace/result.txt").exists()
    code, done = spak(tmp_path, "step", "--resume", "--answer-file", FIX, "--json")
    assert (code, done["state"]) == (0, "succeeded")


@pytest.mark.sandbox
@pytest.mark.parametrize("path", ["conftest.py", "pytest.ini"])
def test_a_patch_may_not_tell_pytest_how_to_run(tmp_path: Path, path: str) -> None:
    spak(tmp_path, "run", SPEC, "--mode", "stepwise")
    patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+# anything\n"
    if path == "pytest.ini":  # the example has one
        patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-[pytest]\n+# anything\n"
    code, last = spak(tmp_path, "step", "--resume", "--answer", patch, "--json")
    assert (code, last["state"]) == (4, "waiting")
    assert "patch.protected" in last["waiting"]["prompt"]


@pytest.mark.sandbox
@pytest.mark.parametrize("path", ["slug.py", "slug/__init__.py"])
def test_code_that_leaves_before_the_tests_have_run_does_not_pass(tmp_path: Path, path: str) -> None:
    """Exit code 0 without one test: the patched module, or one that hides it, ends the process."""
    first = '"""Names for files and addresses, made from titles."""'
    patch = f"--- a/slug.py\n+++ b/slug.py\n@@ -1 +1 @@\n-{first}\n+__import__('os')._exit(0)\n"
    if path != "slug.py":
        patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+__import__('os')._exit(0)\n"
    spak(tmp_path, "run", SPEC, "--mode", "stepwise")
    code, last = spak(tmp_path, "step", "--resume", "--answer", patch, "--json")
    assert (code, last["state"]) == (1, "failed")
    assert last["refusal"]["codes"] == ["incomplete"]
