"""`git_commit` upon a repository that makes git run programs: none of them runs."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from commits_kit import Do, RunOf, commit, hostile, names, refused
from git_http_kit import git


def test_a_hostile_repository_runs_nothing(do: Do, repo: Path, tmp_path: Path, begun: list[RunOf]) -> None:
    hostile(repo, tmp_path)
    begun.append(RunOf(repo, tmp_path / "store"))
    (repo / "a.txt").write_text("two\n")
    done = commit(do)
    assert done.exit == 0, done.output
    assert not (tmp_path / "ran").exists()
    assert git(begun[0].bare, "log", "-1", "--format=%an|%s|%G?") == "SPAK|second|N"
    assert git(begun[0].bare, "show", "refs/heads/spak:a.txt") == "two"


def test_the_hostile_repository_is_hostile(repo: Path, tmp_path: Path) -> None:
    """Plain git there does run what `git_commit` does not: the test above tests something."""
    hostile(repo, tmp_path)
    (repo / "a.txt").write_text("two\n")
    with suppress(subprocess.CalledProcessError):
        git(repo, f"--work-tree={repo}", "add", "-A")
    assert (tmp_path / "ran").exists()


def test_files_that_git_reads_are_no_way_to_the_host(do: Do, repo: Path, run: RunOf, tmp_path: Path) -> None:
    """A link in the place of `.gitignore` is not followed."""
    (tmp_path / "outside").write_text("x\n")
    (repo / "in").mkdir()
    (repo / "in/x").write_text("x")
    (repo / "in/.gitignore").symlink_to(tmp_path / "outside")
    assert refused(commit(do)) == "git_commit.link"
    (repo / ".gitignore").write_text("in/.gitignore\n")
    assert commit(do).exit == 0 and names(run) == [".gitignore", "a.txt", "in/x"]
