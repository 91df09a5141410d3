"""A workspace, and calls on it as the runner makes them, with the real launcher."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from commits_kit import RunOf
from git_http_kit import git
from spak.lang.schema import violations
from spak.ports import Call, Limits, Toolchain, ToolResult
from spak.sandbox.restricted import Restricted
from spak.tools import TOOLS

Do = Callable[..., ToolResult]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    folder = Path(sys.executable).parent
    programs = {name: str(folder / name) for name in ("python", "pytest")}
    programs |= {
        name: path
        for name in ("gcc", "g++", "clang", "clang++", "git", "nvcc")
        if (path := shutil.which(name))
    }
    return Toolchain(programs=programs, binds=(Path(sys.prefix), Path(sys.base_prefix).resolve()))


@pytest.fixture(scope="session")
def launcher() -> Restricted:
    return Restricted()


@pytest.fixture
def begun(workspace: Path, tmp_path: Path) -> list[RunOf]:
    """The run that calls belong to, once a test has begun one: `begun.append(RunOf(...))`."""
    return []


@pytest.fixture
def repo(workspace: Path) -> Path:
    git(workspace, "init", "-q", "-b", "main")
    (workspace / "a.txt").write_text("one\n")
    git(workspace, "add", "a.txt")
    git(workspace, "commit", "-q", "-m", "first")
    return workspace


@pytest.fixture
def run(repo: Path, tmp_path: Path, begun: list[RunOf]) -> RunOf:
    begun.append(RunOf(repo, tmp_path / "store"))
    return begun[0]


@pytest.fixture
def do(workspace: Path, toolchain: Toolchain, launcher: Restricted, begun: list[RunOf]) -> Do:
    """Call a tool by name with arguments that its schema accepts."""

    def run(
        name: str, /, *, limits: Limits | None = None, without: str = "",
        call_fields: Mapping[str, Any] | None = None, **args: Any
    ) -> ToolResult:  # fmt: skip
        tool = TOOLS[name]
        assert violations(tool.entry.schema, args) == []
        programs = {key: value for key, value in toolchain.programs.items() if key != without}
        run = begun[0] if begun else None
        made = tool.run(
            Call(
                f"c{run.calls}" if run else "c1",
                name,
                args,
                workspace,
                launcher,
                limits or Limits(wall_s=30),
                Toolchain(programs=programs, binds=toolchain.binds),
                repository=run.commits() if run else None,
                **(call_fields or {}),
            )
        )
        if run and name == "git_commit" and (made.status, made.exit) == ("exited", 0):
            run.last = f"c{run.calls}"
        if run:
            run.calls += 1
        return made

    return run
