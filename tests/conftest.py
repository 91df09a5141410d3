"""Marks that follow from where a test is and what it uses, so that nobody has to remember them.

Tests below `tests/faults/` are `faults`, tests with a hypothesis strategy are `fuzz`. Files that take long
begin first: workers take whole files, and a long one that comes last keeps one busy while others are done.

Also: children of tests have default signal handlers, and those that a test leaves running are ended. Python
keeps what it compiles, whatever the environment says: tests start many processes with the same imports.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import Phase, settings

import database_kit
import fault_points
import process_kit

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("spak", deadline=None)
settings.load_profile("spak")  # a busy machine fails no example
settings.register_profile("first", deadline=None, phases=(Phase.explicit, Phase.generate))
"""Whether a test fails, without the search for its smallest example: for the mutants."""

TESTS = Path(__file__).parent
FAULTS = TESTS / "faults"
LONG = (
    "faults/test_web_volume.py", "faults/test_web_hosts.py", "faults/test_freezes_sqlite.py",
    "faults/test_freezes_postgresql.py", "faults/test_freeze.py",
    "web/ground/test_postgres.py", "bench/test_bench_modules.py", "examples", "e2e", "mutants", "faults",
    "sandbox",
    "cli/test_doctor_report.py", "llm", "lang/test_mutants.py", "web", "validators", "datalog", "policy",
    "runner", "cli",
)  # fmt: skip
"""What takes longest, first; folders and files below this one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", default="", help="write the pictures of the platform to this folder")
    parser.addoption(
        "--fresh-clone", action="store_true", help="the first hour begins on a fresh clone, with its packages"
    )
    parser.addoption("--import-only", action="store_true", help="import each test file, and run no test")


def pytest_pycollect_makeitem(collector: pytest.Collector) -> list[pytest.Item] | None:
    """With --import-only no file has tests: to make them takes longer than the imports."""
    return [] if collector.config.getoption("--import-only") else None


def pytest_configure(config: pytest.Config) -> None:
    for kit in (process_kit, database_kit, fault_points):
        if not config.pluginmanager.has_plugin(kit.__name__):
            config.pluginmanager.register(kit, kit.__name__)


@cache
def _of_faults(path: Path) -> bool:
    return path.is_relative_to(FAULTS)


@cache
def _turn(path: Path) -> int:
    """When that file begins: the place in LONG, or after all of it."""
    path = path.relative_to(TESTS)
    return next((turn for turn, long in enumerate(LONG) if path.is_relative_to(long)), len(LONG))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _of_faults(item.path):
            item.add_marker(pytest.mark.faults)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.fuzz)
    items.sort(key=lambda item: _turn(item.path))


def pytest_unconfigure() -> None:
    """The platform's folder of this process goes; processes of xdist end without what `atexit` holds."""
    web = sys.modules.get("web_settings")
    if web is not None:
        shutil.rmtree(web.DATA, ignore_errors=True)


def pytest_collection() -> None:
    """Nearly all that a collection makes stays: the garbage collector would look for rubbish in vain."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected lives to the end: the garbage collector need not walk through it again and again.
    It looks at what tests leave less often than by default, which takes 4 % of their time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()
