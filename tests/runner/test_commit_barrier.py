"""The commit barrier: what can leave as a commit was checked, whichever way somebody commits (ADR 0095)."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barrier_kit import (
    ACTIONS,
    BROKEN,
    CHECK,
    GOOD,
    LATER,
    LOG,
    WALK,
    WAYS,
    WRITE,
    files,
    git,
    line,
    opened,
    tree_of,
)  # fmt: skip
from spak.ports import Launcher
from spak.sandbox.restricted import Restricted

STATES = {
    "no check": (GOOD,),
    "a check that failed": (BROKEN, CHECK),
    "written after a clean check": (CHECK, LATER),
}
COMMIT = WAYS["git_commit"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("way", WAYS)
def test_no_way_commits_what_was_not_checked(tmp_path: Path, state: str, way: str) -> None:
    barrier = opened(tmp_path / "run")
    for step in (WRITE, *STATES[state]):
        assert barrier.do(step) == "ok"
    barrier.do(WAYS[way])
    assert barrier.commits() == [] and barrier.unchecked() == []
    assert barrier.do(COMMIT) == "policy.forbidden"
    if state != "a check that failed":
        assert barrier.do(CHECK) == "ok" and barrier.do(COMMIT) == "ok"
        assert tree_of(barrier.workspace.git.repository, "refs/heads/spak") == files(barrier.place)


def test_a_commit_of_a_line_changes_nothing_and_stays(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    for step in (GOOD, CHECK, WAYS["add and commit"]):
        assert barrier.do(step) == "ok"
    assert "git_commit makes one that can leave it" in barrier.said
    assert barrier.commits() == []
    assert barrier.do(COMMIT) == "ok", "what was checked is as it was"
    assert barrier.unchecked() == [] and len(barrier.commits()) == 1


def test_ignored_files_stay_out_and_make_a_check_old(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    for step in (GOOD, CHECK, LOG):
        assert barrier.do(step) == "ok"
    assert barrier.state.r7.checks == (), "an ignored file is a file"
    assert barrier.do(COMMIT) == "policy.forbidden"
    assert barrier.do(CHECK) == "ok" and barrier.do(COMMIT) == "ok"
    assert "x.log" not in git(barrier.workspace.git.repository, "ls-tree", "--name-only", "refs/heads/spak")


def test_another_check_does_not_forget_one_that_failed(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    assert barrier.do(BROKEN) == "ok"
    assert barrier.do(CHECK) == "ok"
    (barrier.place / "a.py").write_text("good by stealth")  # the same validator passes with other options
    barrier.do(replace(CHECK, args={"options": "others"}))
    assert sorted(signal for _, _, signal in barrier.state.r7.checks) == ["fail", "success"]
    assert barrier.do(COMMIT) == "policy.forbidden"


NAMES = st.lists(st.sampled_from(WALK).flatmap(st.sampled_from), min_size=4, max_size=14)


def no_commit_is_unchecked(names: list[str], launcher: Launcher | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        barrier = opened(Path(folder) / "run", launcher)
        for name in names:
            barrier.do(ACTIONS[name])
            assert barrier.unchecked() == [], list(zip(names, barrier.codes, strict=False))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NAMES)
def test_no_sequence_commits_what_was_not_checked(names: list[str]) -> None:
    no_commit_is_unchecked(names)


@pytest.mark.sandbox
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(NAMES)
def test_no_sequence_in_the_sandbox_commits_what_was_not_checked(names: list[str]) -> None:
    no_commit_is_unchecked(names, Restricted())


@pytest.mark.sandbox
def test_git_works_in_the_sandbox_and_leaves_nothing(tmp_path: Path) -> None:
    """What a job does to the scratch repository is no change of the files, and is not undone with them."""
    barrier = opened(tmp_path / "run", Restricted())
    assert barrier.do(GOOD) == "ok"
    root = barrier.state.r3
    for words in ("status -s", "diff", "log --oneline", "config user.name", "blame a.py", "stash list"):
        assert barrier.do(line("git", *words.split())) == "ok", words
        assert barrier.said or words == "stash list", words
    assert barrier.do(line("git", "switch", "-qc", "topic")) == "ok"
    assert barrier.do(line("git", "config", "user.name", "B")) == "ok"
    assert barrier.state.r3 == root
    barrier.performer.repositories.put_aside(ended=False)
    assert not (barrier.place / ".git").exists()
    assert barrier.do(line("git", "branch")) == "ok" and "topic" in barrier.said
    barrier.performer.repositories.put_aside(ended=True)
    assert barrier.do(line("git", "branch")) == "ok" and "topic" not in barrier.said, "made anew"
