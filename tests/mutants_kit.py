"""Mutants of the package: one exact replacement in one source file, and the test that has to notice.

The package is copied, the line replaced, the test run in a fork of this process that imports the copy and the
tests again: pytest and all other packages are loaded already. A mutant whose text is gone is an error: the
tables follow the code.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from cli_calls import waited
from spak.compliance.mutants import copy_package, replace_line

ROOT = Path(__file__).resolve().parents[1]
FEW_PLUGINS = (
    *("-q", "-x", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "-p", "pytest_timeout"),
    *("-o", "addopts=--import-mode=importlib", "-W", "ignore::pytest.PytestConfigWarning"),
    *("--hypothesis-profile", "first"),
)
"""What pytest starts with: loading Django and the rest would take four times as long as the tests."""


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    test: str


def must_be_noticed(mutant: Mutant, folder: Path) -> None:
    """Run the mutant's test on a copy with the mutant: it has to fail."""
    copy_package(folder)
    replace_line(folder / "spak" / mutant.file, mutant.old, mutant.new)
    code, output = outcome_of(folder, mutant.test)
    assert code == 1, f"survived:\n{output[-2000:]}"


def must_pass_unchanged(mutants: Sequence[Mutant], folder: Path) -> None:
    """Run a test of each file on an unchanged copy: else every mutant would be noticed for the wrong reason.
    The suite itself runs all of them on the same sources."""
    copy_package(folder)
    tests = {mutant.test.partition("::")[0]: mutant.test for mutant in mutants}
    code, output = outcome_of(folder, *tests.values())
    assert code == 0, output[-2000:]


def outcome_of(copy: Path, *tests: str) -> tuple[int, str]:
    """The exit code and the output of a pytest that imports the copy."""
    with TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _become(copy, tests, output.fileno())
        code = os.waitstatus_to_exitcode(waited(child))
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")


def _become(copy: Path, tests: tuple[str, ...], output: int) -> None:
    """Be that pytest until the end of this process, as if no module of ours had been imported before."""
    code = 99
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        os.chdir(ROOT)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
            del os.environ[name]
        sys.dont_write_bytecode = True
        own = (str(ROOT / "agents"), str(ROOT / "tests"))
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").startswith(own):
                del sys.modules[name]
        sys.path.insert(0, str(copy))
        assert Path(importlib.import_module("spak").__file__ or "").is_relative_to(copy)
        code = int(pytest.main([*FEW_PLUGINS, *tests]))
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
