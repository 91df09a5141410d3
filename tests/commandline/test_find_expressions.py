"""Which files an action of find may be of: what find's own grammar says, and nothing narrower."""

from __future__ import annotations

from pathlib import Path

import pytest

from attacks_kit import plain
from fresh_attacks_kit import furnished
from gate_kit import CHECKED, constitution, world
from spak.policy.actions import Action
from spak.policy.judge import judge

READS_ALL = (
    "find . -name x -name y -o -exec cat {} +",
    "find . -exec cat {} + -name '*.py'",
    "find . -exec echo -name '*.py' ';' -exec cat {} ';'",
    r"find . \( -name '*.py' -o -true \) -exec cat {} +",
    "find . -name '*.py' , -exec cat {} +",
    "find . ! -name '*.py' -exec cat {} +",
    "find . -name '*.py' -prune -o -exec cat {} +",
    "find . -name '.[[:alpha:]]nv' -exec cat {} +",
    r"find . -name '\.env' -exec cat {} +",
    r"find . -name '*.py' -o \( -name '*.md' -o -size -9 \) -exec cat {} +",
    "find . -iname no -iname never -o -print | xargs cat",
)
READS_SOME = (
    "find src -name '*.py' -exec cat {} +",
    r"find src \( -name '*.py' -o -name '*.md' \) -exec cat {} +",
    r"find src -type f \( -iname '*.py' -o -iname '*.md' \) -exec grep -l x {} +",
    "find src -name '*.py' -o -name '*.md' -exec cat {} +",
    "find src -name '*.py' -not -path '*/deep/*' -print0 | xargs -0 cat",
)
DELETES_ALL = (
    r"find . \( -name '*.pyc' \) -o -delete",
    r"find . \( -name '*.pyc' -o -true \) -delete",
    "find . -delete -name '*.pyc'",
    "find . ! -name '*.pyc' -delete",
    "find . -name '*.pyc' -o -delete",
    "find . -name '*.pyc' , -delete",
)
DELETES_SOME = (
    "find . -name '*.pyc' -delete",
    r"find . \( -name '*.pyc' -o -name '*.pyo' \) -delete",
    "find . -name '*.pyc' -type f -exec rm -f {} +",
    "find . -type d -name __pycache__ -exec rm -rf {} +",
)
UNREADABLE = ("find . \\) -delete", "find . -name", "find . -exec", "find . " + "! " * 200 + "-true")


def allows(line: str, root: Path) -> bool:
    return judge(constitution(), Action("shell", {"command": line}), world(root), CHECKED).decision == "allow"


@pytest.mark.parametrize("line", READS_ALL)
def test_what_may_be_of_any_file_reads_secrets(line: str, tmp_path: Path) -> None:
    assert not allows(line, furnished(tmp_path))


@pytest.mark.parametrize("line", [*READS_SOME, *DELETES_SOME])
def test_what_names_its_files_is_allowed(line: str, tmp_path: Path) -> None:
    root = furnished(tmp_path)
    (root / "src/deep/link_up").unlink()
    assert allows(line, root)


@pytest.mark.parametrize("line", DELETES_ALL)
def test_what_may_delete_any_file_is_denied(line: str, tmp_path: Path) -> None:
    assert not allows(line, plain(tmp_path))


@pytest.mark.parametrize("line", UNREADABLE, ids=range(len(UNREADABLE)))
def test_an_expression_that_find_refuses_is_denied(line: str, tmp_path: Path) -> None:
    assert not allows(line, plain(tmp_path))
