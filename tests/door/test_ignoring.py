"""New files that git ignores stay in the copy, by the rules that were there before the run."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from cli_kit import spak
from door_kit import tree
from spak.errors import RunError
from spak.repository import ignoring
from spak.repository.git import Git

BASE: Mapping[str, str] = {
    ".gitignore": "*.log\n__pycache__/\n/.env\n!keep.log\n", "src/.gitignore": "made-*\n", "src/a.py": "x\n",
    "kept.log": "tracked\n",
}  # fmt: skip
NEW: Mapping[str, str] = {
    "src/__pycache__/a.pyc": "x", "out.log": "x", "keep.log": "x", ".env": "x", "src/.env": "x",
    "src/made-1": "x",
    "made-1": "x", "src/b.py": "x", "kept.log": "changed", "src/x/:(glob)y.log": "x",
}  # fmt: skip


def found(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    kept: dict[str, bytes] = {}
    return set(ignoring.new_and_ignored(tree(before, kept), tree(after, kept), kept.__getitem__))


def test_new_files_are_ignored_by_the_rules_of_the_beginning() -> None:
    ignored = {"src/__pycache__/a.pyc", "out.log", ".env", "src/made-1", "src/x/:(glob)y.log"}
    assert found(BASE, {**BASE, **NEW}) == ignored
    assert found(BASE, {**BASE, **NEW, ".gitignore": ""}) == ignored, "a run takes no rule away"
    assert found({"a": "x"}, {"a": "x", ".gitignore": "*\n", "b.log": "x"}) == set(), "and adds none"


def test_without_git_nothing_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Git) -> None:
        raise RunError("git.missing", "no git")

    monkeypatch.setattr(Git, "begin", missing)
    assert found(BASE, {**BASE, **NEW}) == set()


MODE = """task Mode {
  step a: tool.run { cmd: "chmod +x src/a.py" }
  step b: tool.write_file { path: "src/b.py" content: "y = 1" }
  step c: tool.run { cmd: "bash -c 'echo z = 2 > src/c.py; chmod +x src/c.py'" }
}
"""


@pytest.mark.sandbox
@pytest.mark.parametrize("counts", [True, False])
def test_modes_count_where_the_repository_says_so(tmp_path: Path, counts: bool) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    for name in "ac":
        (project / f"src/{name}.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", project], check=True)
    words = ["git", "config", "core.fileMode", str(counts).lower()]
    subprocess.run(words, cwd=project, check=True)
    (tmp_path / "a.spak").write_text(MODE)
    _, seen = spak(tmp_path, "run", "a.spak", "--workspace", "project", "--json")
    code, done = spak(tmp_path, "apply", str(seen["run"]), "--json")
    assert (code, [row["path"] for row in done["held"]]) == (
        (4, ["src/a.py", "src/c.py"]) if counts else (0, [])
    )
    assert (project / "src/b.py").exists() is not counts
    assert not (project / "src/a.py").stat().st_mode & 0o100
    if not counts:  # nor does a file bring its mode whose text is changed too
        assert (project / "src/c.py").read_text() == "z = 2\n"
        assert not (project / "src/c.py").stat().st_mode & 0o100


SPEC = """task Write {
  step a: tool.write_file { path: "src/a.py" content: "y = 1" }
  step b: tool.write_file { path: ".cache/x" content: "made" }
}
"""


def test_what_is_ignored_does_not_come_home(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src/a.py").write_text("x = 1\n")
    (project / ".gitignore").write_text(".cache/\n")
    subprocess.run(["git", "init", "-q", project], check=True)
    (tmp_path / "a.spak").write_text(SPEC)
    _, seen = spak(tmp_path, "run", "a.spak", "--workspace", "project", "--json")
    code, done = spak(tmp_path, "apply", str(seen["run"]), "--json")
    assert (code, [row["path"] for row in done["applied"]]) == (0, ["src/a.py"]), (seen, done)
    assert not (project / ".cache").exists()
