"""Patches of the files that steer git: control files like any other to the policy; git's own folder never."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate_calls import call
from gate_kit import constitution, workspace, world
from law_kit import under
from spak.datalog import Name
from spak.kernel.gate import Gate, Judged, ProposedAction, compiled
from spak.kernel.observed import seen_json
from spak.policy.actions import World
from spak.policy.facts import ACTION, facts
from spak.policy.judge import judge

CONTROL = (
    ".gitmodules",
    ".gitattributes",
    "src/.gitattributes",
    ".GitModules",
    ".gitconfig",
    ".husky/pre-commit",
    ".githooks/pre-commit",
)
OWN = (
    ".git/hooks/pre-commit",
    ".git/config",
    "src/.git/hooks/post-commit",
    ".GIT/info/attributes",
    "git~1/config",
)
SIGNED = "forbidden(A) :- uses_path(A, /edits, /control, _), !approved(A)."


def adding(path: str) -> str:
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"


def changing(path: str) -> str:
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-x\n+y\n"


def renaming(path: str) -> str:
    return f"diff --git a/README.md b/{path}\nrename from README.md\nrename to {path}\n"


@pytest.mark.parametrize("path", CONTROL)
@pytest.mark.parametrize("made", [adding, changing, renaming])
def test_a_patch_of_a_control_file_is_one_to_the_policy(tmp_path: Path, path: str, made: object) -> None:
    assert callable(made)
    eyes = world(workspace(tmp_path))
    blind = World(eyes.look, eyes.spread, None)
    action = call("apply_patch", patch=made(path))
    assert ("uses_path", (ACTION, Name("/edits"), Name("/control"), path)) in facts(action, blind)
    assert judge(constitution(), action, blind).decision == "allow"
    strict = compiled(under(), SIGNED, {})
    assert judge(strict, action, blind).decision == "deny"
    ordinary = call("apply_patch", patch=changing("src/a.py"))
    assert judge(strict, ordinary, blind).decision == "allow"


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize("made", [adding, changing, renaming])
def test_a_patch_of_gits_own_files_is_refused(tmp_path: Path, path: str, made: object) -> None:
    assert callable(made)
    eyes = world(workspace(tmp_path))
    for seen in (eyes, World(eyes.look, eyes.spread, None)):
        decision = judge(constitution(), call("apply_patch", patch=made(path)), seen)
        assert decision.decision == "deny" and "patch.path" in decision.reason


CUT = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-x\n+y\n"
LONG = f"--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+{'x' * 70_000}\n"


@pytest.mark.parametrize(
    ("patch", "allowed"),
    [(CUT, True), (LONG, False)],
)
def test_a_run_is_judged_by_what_the_tool_reads(tmp_path: Path, patch: str, allowed: bool) -> None:
    eyes = world(workspace(tmp_path))
    gate = Gate(compiled(under(), "", {}))
    proposed = ProposedAction("tool", "apply_patch", {"patch": patch})
    found = gate.judge(proposed, {"paths": [seen_json("x.py", eyes.look("x.py"))]}, 1)
    if not allowed:
        assert isinstance(found, Judged) and not found.allow and "patch." in found.reason
    else:
        assert isinstance(found, Judged) and found.allow is True, found
