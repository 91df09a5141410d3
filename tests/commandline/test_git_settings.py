"""Settings of git that hold a password or a token are not read by what walks over a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate_kit import CHECKED, constitution, workspace, world
from spak.policy.actions import Action
from spak.policy.judge import judge

PLAIN = '[remote "origin"]\n\turl = https://github.com/a/b\n'
HELD = {
    "password": '[remote "origin"]\n\turl = https://me:hunter22@github.com/a/b\n',
    "header": "[http]\n\textraHeader = Authorization: Basic eDp5\n",
}
WALKS = ("grep -rn url .", "find . -name config -exec cat {} +", "rg --hidden url", "cp -r . build/x")


def allows(line: str, root: Path) -> bool:
    return judge(constitution(), Action("shell", {"command": line}), world(root), CHECKED).decision == "allow"


def made(base: Path, settings: str) -> Path:
    root = workspace(base)
    for link in ("link_abs", "src/deep/link_up", "hardlink"):
        (root / link).unlink()
    (root / ".git").mkdir()
    (root / ".git/config").write_text(settings)
    return root


@pytest.mark.parametrize("settings", HELD.values(), ids=HELD)
@pytest.mark.parametrize("line", WALKS)
def test_a_walk_reads_no_credentials_of_git(line: str, settings: str, tmp_path: Path) -> None:
    assert not allows(line, made(tmp_path, settings))


@pytest.mark.parametrize("line", ["grep -rn url .", "find . -name '*.md' -exec cat {} +", "rg --hidden url"])
def test_a_walk_over_plain_settings_is_allowed(line: str, tmp_path: Path) -> None:
    assert allows(line, made(tmp_path, PLAIN))


def test_a_walk_that_chooses_other_names_is_allowed(tmp_path: Path) -> None:
    assert allows("find . -name '*.md' -exec cat {} +", made(tmp_path, HELD["password"]))


@pytest.mark.parametrize("name", ["config", "config.worktree", "config.bak", "config~", "credentials"])
def test_settings_and_copies_of_them_are_secret(name: str, tmp_path: Path) -> None:
    assert not allows(f"cat .git/{name}", made(tmp_path, PLAIN))
    assert allows("cat .git/HEAD", tmp_path / "ws")
