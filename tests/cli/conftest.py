"""Fixtures of the command-line tests: the command as a function, and runs that are in some state already."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cli_calls import ASK, HELLO, Cli, Done, forked, held_to, nothing
from read_once import read_once
from spak.cli import run, session, show  # noqa: F401  imported once, here, not in every child
from spak.proposers import PROPOSERS
from spak.validators import VALIDATORS


@pytest.fixture(scope="session")
def warm() -> None:
    """What every child would otherwise find out for itself."""
    read_once()
    for make in (*PROPOSERS.values(), *VALIDATORS.values()):
        make()


@pytest.fixture
def cli(tmp_path: Path, warm: None) -> Cli:
    """`cli("run", FILE, "--json")` in the test's folder; `stdin`, `env`, `before` and `folder` by name."""

    def call(
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        before: Callable[[], None] = nothing,
        folder: Path = tmp_path,
    ) -> Done:
        return held_to(forked(folder, args, stdin, env, before), args)

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Path:
    """A runs folder with one ended run of hello.spak; copy it before you change it."""
    folder = tmp_path_factory.mktemp("finished")
    done = forked(folder, ("run", HELLO, "--json", "--seed", "7"))
    assert done.code == 0, done.err
    return folder / ".spak/runs"


@pytest.fixture(scope="session")
def asking(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Path:
    """A runs folder with one run that waits for an answer; copy it before you change it."""
    folder = tmp_path_factory.mktemp("asking")
    (folder / "ask.spak").write_text(ASK)
    done = forked(folder, ("run", "ask.spak", "--json", "--seed", "7"))
    assert done.code == 4, done.err
    return folder / ".spak/runs"


@pytest.fixture
def ended(tmp_path: Path, finished: Path) -> str:
    """The id of an ended run in the test's folder."""
    return taken(finished, tmp_path)


@pytest.fixture
def waiting(tmp_path: Path, asking: Path) -> str:
    """The id of a run in the test's folder that waits for an answer."""
    return taken(asking, tmp_path)


def taken(runs: Path, folder: Path) -> str:
    shutil.copytree(runs, folder / ".spak/runs", dirs_exist_ok=True)
    return next(runs.iterdir()).name


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / ".spak/runs"
