"""docs/seeds.md is true: each command, option and test in it exists, and a row without a test says why."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click

from cli_calls import warm
from spak import data
from spak.cli import spak as command

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "seeds.md").read_text()
ROWS = [
    [cell.strip() for cell in line[1:-1].split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| clause")
]


def test_every_row_is_whole() -> None:
    assert len(ROWS) > 80
    for row in ROWS:
        assert len(row) == 4, row
        clause, here, _, tests = row
        assert tests or "absent" in here or "absent" in clause, clause


def test_every_command_that_is_named_exists() -> None:
    named = sorted({name for row in ROWS for name in re.findall(r"`spak ([^`]*)`", row[2])})
    assert len(named) > 25
    for line in named:
        found: click.Command = command
        words = line.split()
        while isinstance(found, click.Group) and words and not words[0].startswith("-"):
            inner = found.get_command(click.Context(found), words.pop(0))
            assert inner is not None, line
            found = inner
        options = {option for each in found.params for option in each.opts} | {"--help"}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_every_test_that_is_named_exists() -> None:
    for row in ROWS:
        for place, names in re.findall(r"`([a-z_/]+\.py)`((?:(?:: |, )`test_\w+`)*)", row[3]):
            text = (ROOT / "tests" / place).read_text()
            assert "def test_" in text or "import" in text, place
            for name in re.findall(r"test_\w+", names):
                assert f"def {name}(" in text, (place, name)
        assert not re.sub(r"`[a-z_/]+\.py`(?:(?:: |, )`test_\w+`)*(?:; )?", "", row[3]), row


def test_the_version_names_each_law_by_its_hash() -> None:
    """By the reckoning of another program."""
    said = warm(Path.cwd(), ("--version",)).out.splitlines()
    assert said[0].startswith("spak ")
    assert said.pop() == f"kernel code     sha256:{data.kernel_code()}"
    by_name = {line.split()[0]: line.split()[1] for line in said[1:]}
    assert set(by_name) == {"specs/policy", "specs/laws", "specs/examples"}
    for folder, digest in by_name.items():
        shell = "sha256sum *.mg *.spak 2>/dev/null | sha256sum"
        done = subprocess.run(
            ["sh", "-c", shell], cwd=ROOT / folder, capture_output=True, text=True, check=True,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        )  # fmt: skip
        assert digest == f"sha256:{done.stdout.split()[0]}", folder
