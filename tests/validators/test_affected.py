"""`tests: affected` of PyTest: which files of tests a run's changes need, and when it is all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli_kit import spak
from spak.ports import MeasureCall, Measurement
from spak.validators.pytest_ import PyTest
from spak.world.affected import Affected, affected
from validator_calls import call

FILES = {
    "calc/__init__.py": "",
    "calc/add.py": """\
def add(a, b):
    return a + b


def twice(a):
    return add(a, a)


def far(a):
    return a
""",
    "calc/late.py": """\
from calc.add import far


LIMIT = 3


def late(a):
    return far(a)
""",
    "calc/lone.py": "def lone():\n    return 1\n",
    "tests/test_add.py": """\
from calc.add import add, twice


def test_add():
    assert add(1, 2) == 3


def test_twice():
    assert twice(2) == 4
""",
    "tests/test_late.py": """\
from calc.late import late


class TestLate:
    def test_late(self):
        assert late(1) == 1


def test_none():
    assert True
""",
}
Project = Callable[[dict[str, str | None]], Any]


@pytest.fixture
def changed(tmp_path: Path) -> Project:
    """A project with changes since its beginning: the call that a validator gets."""

    def make(changes: dict[str, str | None]) -> Any:
        folder = tmp_path / "ws"
        before: dict[str, bytes | None] = {}
        for path, text in {**FILES, **changes}.items():
            there = folder / path
            there.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                there.write_text(text)
        for path in changes:
            before[path] = FILES[path].encode() if path in FILES else None
        return replace(call(folder, {"tests": "affected"}), changed=lambda: before)

    return make


def chosen(made: MeasureCall) -> Affected:
    return affected(made.workspace, made.changed())


def edit(path: str, old: str, new: str) -> dict[str, str | None]:
    assert old in FILES[path]
    return {path: FILES[path].replace(old, new)}


ADD, LATE = "tests/test_add.py", "tests/test_late.py"


@pytest.mark.parametrize(
    ("changes", "run"),
    [
        (edit("calc/add.py", "a + b", "b + a"), {ADD, LATE}),
        (edit("calc/late.py", "LIMIT = 3", "LIMIT = 4"), {LATE}),
        (edit(LATE, "assert True", "assert 1"), {LATE}),
        (edit("calc/lone.py", "1", "2"), set()),
        (edit("calc/add.py", "a + b", "a +"), {ADD, LATE}),
    ],
)
def test_files_that_hold_the_name_of_what_changed_run(
    changed: Project, changes: dict[str, str | None], run: set[str]
) -> None:
    found = chosen(changed(changes))
    assert {ADD, LATE} - set(found.left) == run
    assert (found.selection["rule"], found.selection["changed"]) == ("names", list(changes))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "nothing changed"),
        ({"data.json": "{}"}, "'data.json' may concern any test"),
        ({"calc/new.py": "def new():\n    return 1\n"}, "'calc/new.py' is new or gone"),
        ({"calc/lone.py": None}, "'calc/lone.py' is new or gone"),
    ],
)
def test_what_cannot_be_judged_leads_to_all_tests(
    changed: Project, changes: dict[str, str | None], reason: str
) -> None:
    assert chosen(changed(changes)) == ((), {"rule": "all", "reason": reason})


WAYS = {
    "a fixture of a conftest": {
        "tests/sub/conftest.py": "from calc.late import late",
        "tests/sub/test_x.py": "",
    },
    "a module of plug-ins": {"conftest.py": "pytest_plugins = ['plug']", "plug.py": "import calc.late"},
    "a string": {"tests/test_x.py": "import importlib\nimportlib.import_module('calc.late')"},
    "a command": {"tests/test_x.py": "ARGV = ['python', '-m', 'calc.late']"},
    "a path": {"tests/test_x.py": "TEXT = open('calc/late.py').read()"},
    "getattr": {
        "calc/any.py": "import calc\ngetattr(calc, 'late')",
        "tests/test_x.py": "from calc import any",
    },
    "a package": {"calc/__init__.py": "from .late import *", "tests/test_x.py": "import calc"},
    "inside of a package": {
        "calc/__init__.py": "from .late import *",
        "calc/test_x.py": "from . import lone",
    },
    "a base class": {"tests/base.py": "import calc.late", "tests/test_x.py": "from base import Base"},
    "a file that cannot be read": {"tests/test_x.py": "#" * (3 << 20)},
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_a_module_counts(tmp_path: Path, changed: Project, way: str) -> None:
    made = changed(edit("calc/late.py", "far(a)", "far(a) + 0"))
    for path, text in WAYS[way].items():
        (made.workspace / path).parent.mkdir(exist_ok=True)
        (made.workspace / path).write_text(text)
    left = chosen(made).left
    assert not [path for path in left if path.endswith("test_x.py")]
    assert way == "a module of plug-ins" or ADD in left or "calc/__init__.py" in WAYS[way]


def test_a_module_that_the_settings_name_leads_to_all_tests(changed: Project) -> None:
    made = changed(edit("calc/late.py", "far(a)", "far(a) + 0"))
    (made.workspace / "pytest.ini").write_text("[pytest]\naddopts = -p calc.late\n")
    assert chosen(made) == ((), {"rule": "all", "reason": "the settings of pytest name 'calc/late.py'"})


def measured(made: Any, **options: Any) -> Measurement:
    return PyTest().measure(replace(made, options={"tests": "affected", **options}))


@pytest.mark.sandbox
def test_only_these_run_and_the_record_says_why(changed: Project) -> None:
    made = changed(edit("calc/late.py", "far(a)", "far(a) + 0"))
    seen = measured(made)
    assert (seen.metrics["passed"], seen.metrics["collected"], seen.metrics["deselected"]) == (2, 2, 2)
    assert seen.evidence["selection"]["rule"] == "names"
    assert measured(made, paths=[LATE]).metrics["collected"] == 2
    assert measured(made, paths=[ADD]).metrics["collected"] == 2, "none of these is affected: all of them"
    assert PyTest().measure(replace(made, options={})).metrics["collected"] == 4


SPEC = """AGENT Mends LEVEL 2 {
    START -> mend
    TASK mend {
        GOAL "Change what is late."
        step write: tool.write_file { path: "calc/late.py" content: %s }
        VALIDATOR PyTest { tests: affected }
        NEXT { success -> seen fail -> seen }
    }
    TASK seen { GOAL "Look at it." }
}
"""


@pytest.mark.sandbox
def test_a_run_that_breaks_a_function_runs_its_tests_and_records_the_rule(tmp_path: Path) -> None:
    for path, text in FILES.items():
        (tmp_path / "project" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / path).write_text(text)
    broken = FILES["calc/late.py"].replace("far(a)", "far(a) + 1")
    (tmp_path / "mend.spak").write_text(SPEC % json.dumps(broken))
    _, seen = spak(tmp_path, "run", "mend.spak", "--workspace", "project", "--json")
    ledger = (tmp_path / ".spak/runs" / str(seen["run"]) / "trace.jsonl").read_text()
    bodies = [json.loads(line)["body"] for line in ledger.splitlines()]
    (seen,) = [body for body in bodies if "metrics" in body]
    failed = [check["name"] for check in seen["checks"] if not check["ok"]]
    assert failed == [f"test:{LATE}::TestLate::test_late"] and seen["metrics"]["deselected"] == 2
    assert seen["evidence"]["selection"] == {"rule": "names", "changed": ["calc/late.py"], "files": 2}
