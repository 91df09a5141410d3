"""Fixtures of the command-line tests: the command as a function, and runs that are in some state already."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cli_calls import ASK, HELLO, Cli, Done, forked, held_to, nothing, warm
from spak.cli import run, session, show  # noqa: F401  imported once, here, not in every fork


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli("run", FILE, "--json")` in the test's folder; `stdin`, `env`, `before` and `folder` by name.
    What a test has patched in this process holds in its calls too."""

    def call(
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        before: Callable[[], None] = nothing,
        folder: Path = tmp_path,
    ) -> Done:
        patched = monkeypatch._setattr  # every test has the fixture: pytest-django's own ask for it
        if patched or before is not nothing:
            return held_to(forked(folder, args, stdin, env, before), args)
        return held_to(warm(folder, args, stdin, env), args)

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with one ended run of hello.spak; copy it before you change it."""
    folder = tmp_path_factory.mktemp("finished")
    done = warm(folder, ("run", HELLO, "--json", "--seed", "7"))
    assert done.code == 0, done.err
    return folder / ".spak/runs"


@pytest.fixture(scope="session")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with one run that waits for an answer; copy it before you change it."""
    folder = tmp_path_factory.mktemp("asking")
    (folder / "ask.spak").write_text(ASK)
    done = warm(folder, ("run", "ask.spak", "--json", "--seed", "7"))
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
