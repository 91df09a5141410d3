"""A run started by an ordinary user, where the tests are root: its folder, and what a child does first."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from spak import config
from spak.cli import main

ORDINARY_UID = 64999
SPEC = 'AGENT P LEVEL 2 { START -> t TASK t { step s: tool.python_repl { code: "pass" } } }'


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach and use, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o777)
        yield Path(made)


def given_to_ordinary(folder: Path) -> None:
    """Give the folder and all in it to the ordinary user."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, ORDINARY_UID, ORDINARY_UID, follow_symlinks=False)


def ordinary() -> None:
    """For `forked`: run once as we are, which loads what an ordinary user may not read here; then be one,
    with a Python of the system for the tools."""
    if os.geteuid() == 0:
        there = Path.cwd()
        with tempfile.TemporaryDirectory() as folder, suppress(SystemExit):
            os.chdir(folder)
            Path("project").mkdir()
            Path("project/.env").write_text("\ufeffPASSWORD=h3xagon-lantern\n")
            Path("p.spak").write_text(SPEC)
            sys.argv = ["spak", "run", "p.spak", "--workspace", "project"]
            main()
        os.chdir(there)
        for number in (1, 2):
            os.ftruncate(number, os.lseek(number, 0, os.SEEK_SET))
        config.toolchain.cache_clear()
        sys.executable, sys.prefix, sys.base_prefix = "/usr/bin/python3", "/usr", "/usr"
        os.setgroups([])
        os.setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
        os.setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
