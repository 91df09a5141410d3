"""Mutants of the package: one exact replacement in one source file, and the test that has to notice.

The package is copied, the line replaced, the test run in a process that imports the copy. A mutant whose text
is gone is an error: the tables follow the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from process_kit import WAIT_S

ROOT = Path(__file__).resolve().parents[1]
FEW_PLUGINS = (
    *("-q", "-x", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "-p", "pytest_timeout"),
    *("-o", "addopts=--import-mode=importlib", "-W", "ignore::pytest.PytestConfigWarning"),
)
PLAIN = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
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
    path = folder / "spak" / mutant.file
    text = path.read_text(encoding="utf-8")
    count = text.count(mutant.old)
    assert count == 1, f"{mutant.file} has the text of this mutant {count} times"
    path.unlink()
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    done = outcome_of(folder, mutant.test)
    assert done.returncode == 1, f"survived:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def must_pass_unchanged(mutants: Sequence[Mutant], folder: Path) -> None:
    """Run all their tests on an unchanged copy: else every mutant would be noticed for the wrong reason."""
    copy_package(folder)
    done = outcome_of(folder, *dict.fromkeys(mutant.test for mutant in mutants))
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"


def copy_package(folder: Path) -> None:
    """The package as hard links where the file system can; what is changed has to be unlinked first."""
    shutil.copytree(ROOT / "agents/spak", folder / "spak", copy_function=link)
    for shipped in ("specs/policy", "sandbox"):
        shutil.copytree(ROOT / shipped, folder / "spak/_data" / shipped, copy_function=link)


def link(source: str, to: str) -> None:
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)


def outcome_of(copy: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *FEW_PLUGINS, *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(copy), **PLAIN},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
