"""A run that works in a person's folder changes neither what later runs may do nor the records of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from barrier_kit import Barrier, opened, tool
from cli_kit import spak

PROGRAM = """import os, pathlib
for folder, _, names in os.walk(".spak"):
    for name in names:
        pathlib.Path(folder, name).write_text("planted")
"""


@pytest.fixture
def barrier(tmp_path: Path) -> Barrier:
    made = opened(tmp_path / "run")
    (made.place / "sub").mkdir()
    return made


def test_settings_in_a_copy_are_a_file_like_any(barrier: Barrier) -> None:
    assert barrier.do(tool("write_file", path="spak.toml", content="x")) == "ok"


@pytest.mark.parametrize("path", [".spak/planted", ".SPAK/planted", "link/planted", "sub/../.spak/planted"])
@pytest.mark.parametrize("name", ["write_file", "read_file", "list_files"])
def test_no_tool_has_a_way_to_the_folder_of_runs(barrier: Barrier, name: str, path: str) -> None:
    (barrier.place / ".spak").mkdir()
    (barrier.place / "link").symlink_to(".spak")
    more = {"content": "x"} if name == "write_file" else {}
    assert barrier.do(tool(name, path=path, **more)) == "policy.forbidden"
    assert not list((barrier.place / ".spak").iterdir())


@pytest.mark.sandbox
def test_jobs_of_a_run_in_place_do_not_see_the_folder_of_runs(tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(PROGRAM)
    (tmp_path / "a.spak").write_text('task T { step s: tool.run { cmd: "python3 walk.py" } }\n')
    code, found = spak(tmp_path, "run", "a.spak", "--workspace", ".", "--in-place", "--json")
    folder = tmp_path / ".spak/runs" / found["run"]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert code == 0 and files and not any(path.read_bytes() == b"planted" for path in files)
