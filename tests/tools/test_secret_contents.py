"""A file that holds a secret is one of secrets, whatever its name: for the gate, for walks and for masks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gate_kit import CHECKED, constitution, world
from spak.files.walk import walk
from spak.policy.actions import Action
from spak.policy.judge import judge
from spak.runner.secret_guard import found_in
from spak.workspace import Workspace

VALUE = "hunter22x9"
HELD = {
    "conf/app.yml": f"db:\n  password: {VALUE}\n",
    "notes/staging": f"api_key={VALUE}\n",
    "list.lst": f"requirepass {VALUE}\n",
}
ORDINARY = {
    "conf/plain.yml": "db:\n  password: ${DB}\n",
    "docs/use.md": f"password: {VALUE}\n",
    "src/a.py": f"password = '{VALUE}'\n",
    "tests/data.yml": f"password: {VALUE}\n",
    "node_modules/x/config.json": f'{{"token": "{VALUE}"}}',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in {**HELD, **ORDINARY}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def allows(root: Path, tool: str = "shell", **args: str) -> bool:
    return judge(constitution(), Action(tool, args), world(root), CHECKED).decision == "allow"


@pytest.mark.parametrize("path", sorted(HELD))
def test_it_is_not_read(root: Path, path: str) -> None:
    assert not allows(root, command=f"cat {path}")
    assert not allows(root, command=f"cat {path[:-2]}*")
    assert not allows(root, "read_file", path=path)


@pytest.mark.parametrize("path", sorted(ORDINARY))
def test_code_pages_and_data_of_tests_are(root: Path, path: str) -> None:
    assert allows(root, command=f"cat {path}")


def test_a_name_that_promises_a_secret_makes_one_of_more_contents(root: Path) -> None:
    (root / "tokens.csv").write_text("word,count\n")
    assert allows(root, command="cat tokens.csv")
    (root / "tokens.csv").write_text("h8x2k9qw\n")
    assert not allows(root, command="cat tokens.csv")


def test_a_walk_over_it_is_one_over_a_secret(root: Path) -> None:
    assert not allows(root, command="grep -r x conf")
    assert allows(root, command="grep -r x docs")


def test_tools_that_walk_do_not_read_it(root: Path) -> None:
    files = [entry for entry in walk(root, ".") if entry.kind == "file"]
    assert len(files) == len(HELD) + len(ORDINARY)
    assert {entry.whole for entry in walk(root, ".") if entry.read(100) is not None} == set(ORDINARY)


def test_a_file_that_changes_is_read_again(root: Path) -> None:
    path = root / "conf/app.yml"
    os.utime(path, (1, 1))
    assert not allows(root, command="cat conf/app.yml")
    path.write_text("db: {}\n")
    assert allows(root, command="cat conf/app.yml")
    path.write_text(HELD["conf/app.yml"])
    assert not allows(root, command="cat conf/app.yml")


def test_masks_and_values_are_the_same_by_scan_and_by_walk(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hidden, values = found_in(root)
    assert set(hidden) == set(HELD)
    assert values == {VALUE}
    space = Workspace(root, tmp_path_factory.mktemp("store"))
    assert set(space.secrets.files()) == set(HELD)
    space.snapshot()
    assert set(space.secrets.files()) == set(HELD)
    (root / "conf/app.yml").write_text("db: {}\n")
    space.snapshot()
    assert set(space.secrets.files()) == set(HELD) - {"conf/app.yml"}
