"""`tests: affected` of PyTest: which files of tests a run's changes need, and when it is all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import recording_kit
from cli_kit import spak
from spak.paths import CODE, OURS
from spak.ports import MeasureCall, Measurement
from spak.validators.pytest_ import PyTest
from spak.world.ask import Model
from spak.world.index import update
from spak.world.selection import coverage_file, recording
from spak.world.selection.affected import Affected, affected
from spak.world.store import Store
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


RAN = {
    "": {"calc/add.py": [1, 5, 9], "calc/late.py": [1, 4, 7]},
    "tests/test_add.py::test_add|run": {"calc/add.py": [2]},
    "tests/test_add.py::test_twice|run": {"calc/add.py": [2, 6]},
    "tests/test_late.py::TestLate::test_late|run": {"calc/add.py": [10], "calc/late.py": [8]},
}
TESTS = {
    "tests/test_add.py::test_add",
    "tests/test_add.py::test_twice",
    "tests/test_late.py::TestLate::test_late",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that the workspace is a copy of, with a recording; None of its files changed."""
    folder = tmp_path / "original"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    record(folder)
    return folder


def record(folder: Path) -> None:
    store = Store(folder / OURS / CODE)
    update(store, folder)
    data = recording_kit.write(folder.parent / "data", folder, RAN)
    recording.keep(Model(store, folder), coverage_file.read(data))
    store.close()


def by_recording(made: MeasureCall, project: Path) -> Affected:
    return affected(made.workspace, made.changed(), original=project)


@pytest.mark.parametrize(
    ("changes", "run", "rule"),
    [
        (
            edit("calc/add.py", "a + b", "b + a"),
            {"tests/test_add.py::test_add", "tests/test_add.py::test_twice"},
            "",
        ),
        (edit("calc/add.py", "add(a, a)", "add(a, 0)"), {"tests/test_add.py::test_twice"}, ""),
        (edit("calc/late.py", "far(a)", "far(a) + 0"), {"tests/test_late.py::TestLate::test_late"}, ""),
        (
            edit("calc/late.py", "LIMIT = 3", "LIMIT = 4"),
            {"tests/test_late.py::TestLate::test_late"},
            " and names",
        ),
        (edit("calc/add.py", "def far", "far = 1\n\n\ndef far"), TESTS, " and names"),
        (
            edit(ADD, "== 3", "== 4"),
            {"tests/test_add.py::test_add", "tests/test_add.py::test_twice"},
            " and names",
        ),
    ],
)
def test_with_a_recording_only_tests_that_ran_the_change_run(
    changed: Project, project: Path, changes: dict[str, str | None], run: set[str], rule: str
) -> None:
    found = by_recording(changed(changes), project)
    assert TESTS - set(found.left) == run
    assert found.selection["rule"] == f"recorded{rule}"
    assert bool(found.selection["by_names"]) == bool(rule)


def test_what_the_folder_changed_since_the_recording_counts_too(changed: Project, project: Path) -> None:
    made = changed(edit("calc/late.py", "far(a)", "far(a) + 0"))
    (made.workspace / "calc/add.py").write_text(FILES["calc/add.py"].replace("add(a, a)", "add(a, 0)"))
    assert TESTS - set(by_recording(made, project).left) == TESTS - {"tests/test_add.py::test_add"}
    (made.workspace / "calc/more.py").write_text("from calc import late\n")
    found = by_recording(made, project)
    assert found.selection["by_names"] == ["calc/more.py: is not in the recording"]


def test_a_line_that_the_run_brought_back_is_a_change(changed: Project, project: Path) -> None:
    made = changed(edit("calc/late.py", "far(a)", "far(a) + 0"))
    (made.workspace / "calc/late.py").write_text(FILES["calc/late.py"])
    before = FILES["calc/late.py"].replace("far(a)", "far(a) + 7").encode()
    found = affected(made.workspace, {"calc/late.py": before}, original=project)
    assert TESTS - set(found.left) == {"tests/test_late.py::TestLate::test_late"}


def test_a_folder_without_a_recording_or_with_a_damaged_one_is_judged_by_names(
    changed: Project, project: Path, tmp_path: Path
) -> None:
    made = changed(edit("calc/late.py", "far(a)", "far(a) + 0"))
    assert affected(made.workspace, made.changed(), original=tmp_path).selection["rule"] == "names"
    store = Store(project / OURS / CODE)
    store.db.execute("UPDATE recorded SET text = x'ffff' WHERE text IS NOT NULL")
    store.close()
    assert by_recording(made, project).selection["rule"] == "names"
    (project / OURS / CODE).write_text("no database at all")
    assert by_recording(made, project).selection["rule"] == "names"


@pytest.mark.sandbox
def test_pytest_leaves_out_tests_by_the_recording_and_runs_unknown_ones(
    changed: Project, project: Path
) -> None:
    made = replace(changed(edit("calc/add.py", "add(a, a)", "add(a, a) + 0")), original=project)
    seen = measured(made)
    assert (seen.metrics["passed"], seen.metrics["deselected"]) == (2, 2), (
        "test_twice, and test_none is unknown"
    )
    assert (seen.evidence["selection"]["rule"], seen.evidence["selection"]["left"]) == ("recorded", 2)


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


@pytest.mark.sandbox
def test_a_run_uses_the_recording_of_the_folder_that_it_copied(tmp_path: Path, project: Path) -> None:
    broken = FILES["calc/add.py"].replace("add(a, a)", "add(a, 0)")
    (tmp_path / "mend.spak").write_text(SPEC.replace("late.py", "add.py") % json.dumps(broken))
    _, seen = spak(tmp_path, "run", "mend.spak", "--workspace", "original", "--json")
    ledger = (tmp_path / ".spak/runs" / str(seen["run"]) / "trace.jsonl").read_text()
    bodies = [json.loads(line)["body"] for line in ledger.splitlines()]
    (seen,) = [body for body in bodies if "metrics" in body]
    assert [check["name"] for check in seen["checks"] if not check["ok"]] == [f"test:{ADD}::test_twice"]
    assert seen["metrics"]["deselected"] == 2
    assert seen["evidence"]["selection"] == {
        "rule": "recorded", "changed": ["calc/add.py"], "recorded": 1, "left": 2, "by_names": [],
    }  # fmt: skip
