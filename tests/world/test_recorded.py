"""The rule `recorded`: which tests a changed line needs, and where the static rule is asked as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import recording_kit
from spak.world import rank
from spak.world.selection import coverage_file, recorded, recording
from spak.world.selection.recorded import NEVER, OUTSIDE, UNKNOWN, Selection
from spak.world.selection.recording import Recording
from world_kit import Code

CALC = """\
LIMIT = 3


def sign(n):
    if (n <
            0):
        return -1
    else:
        return 1


def unused(n):
    return n


class Box:
    size = 2

    def get(self):
        value = self.size
        return value


def late():
    return LIMIT
"""
TESTS = """\
from calc import Box, late, sign


def test_low():
    assert sign(-1) == -1


def test_high():
    assert sign(1) == 1


class TestBox:
    def test_get(self):
        assert Box().get() == 2


def test_late():
    assert late() == 3


def test_other():
    assert True
"""
RAN = {
    "": {"calc.py": [1, 4, 12, 16, 17, 19, 24]},
    "tests/test_calc.py::test_low|run": {"calc.py": [5, 6, 7], "tests/test_calc.py": [5]},
    "tests/test_calc.py::test_high[a|setup]|run": {"calc.py": [5, 6, 9], "tests/test_calc.py": [9]},
    "tests.test_calc.TestBox.test_get": {"calc.py": [20, 21]},
    "tests/test_calc.py::test_late": {"calc.py": [25]},
    "tests/test_calc.py::test_other|run": {"tests/test_calc.py": [22]},
    "nobody::knows": {"calc.py": [13]},
}
LOW, HIGH, GET, LATE, OTHER = (
    f"py:tests/test_calc.py#{name}"
    for name in ("test_low", "test_high", "TestBox.test_get", "test_late", "test_other")
)


@pytest.fixture
def calc(code: Code) -> Code:
    """A folder with a recording."""
    code.put({"calc.py": CALC, "tests/test_calc.py": TESTS})
    keep(code)
    return code


def keep(code: Code, ran: recording_kit.Ran = RAN) -> recording.Kept:
    path = recording_kit.write(code.root.parent / "data", code.root, ran)
    return recording.keep(code.model(), coverage_file.read(path))


def since(code: Code, path: str, old: str, new: str) -> Selection:
    text = (code.root / path).read_text()
    assert text.count(old) == 1
    code.put({path: text.replace(old, new)})
    model = code.model()
    return recorded.since(model, Recording(code.store, code.root))


def test_a_recording_is_kept_by_test_and_line(calc: Code) -> None:
    kept = Recording(calc.store, calc.root)
    assert kept.tests == {LOW, HIGH, GET, LATE, OTHER}
    file = kept.file("calc.py")
    assert file is not None
    assert (file.ran[7], file.ran[9], file.ran[5], 13 in file.ran) == ({LOW}, {HIGH}, {LOW, HIGH}, False)
    assert keep(calc).unknown == ("nobody::knows",)
    assert recorded.since(calc.model(), kept) == Selection({})


@pytest.mark.parametrize(
    ("old", "new", "tests", "why"),
    [
        ("return -1", "return -2", {LOW}, ""),
        ("    0):", "    1):", {LOW, HIGH}, ""),
        ("    else:", "    elif n:", {LOW, HIGH}, ""),
        ("return -1", "yield -1", {LOW, HIGH}, ""),
        ("        return -1", "    return -1", {LOW, HIGH}, ""),
        ("return -1\n", "n = 1\n        return -1\n", {LOW, HIGH}, ""),
        ("    else:\n", "    else:\n        # Not below.\n\n", set(), ""),
        ("    0):", "    0  # zero\n    ):", {LOW, HIGH}, ""),
        ("            0):", "\n            0):", {LOW, HIGH}, ""),
        ("value = self", "value = 1 or self", {GET}, ""),
        ("def get(self):", "def get(self, n=1):", {GET}, OUTSIDE),
        ("size = 2", "size = 3", {GET}, OUTSIDE),
        ("    size = 2\n", "    size = 2\n    more = 1\n", {GET}, OUTSIDE),
        ("LIMIT = 3", "LIMIT = 4", {LOW, HIGH, GET, LATE}, OUTSIDE),
        ("def late", "print()\n\n\ndef late", {LOW, HIGH, GET, LATE}, OUTSIDE),
        ("    return n\n", "    return n + 1\n", {LOW, HIGH, GET, LATE, OTHER}, NEVER),
    ],
)
def test_a_change_needs_the_tests_that_ran_it(
    calc: Code, old: str, new: str, tests: set[str], why: str
) -> None:
    found = since(calc, "calc.py", old, new)
    assert set(found.tests) == tests
    assert {part.why for part in found.without} == ({why} if why else set())


def test_new_tests_and_those_of_changed_files_run(calc: Code) -> None:
    calc.put({"tests/test_new.py": "def test_new():\n    pass\n"})
    found = since(calc, "tests/test_calc.py", "assert True", "assert 1")
    assert found.by == {
        "new": ("py:tests/test_new.py#test_new",),
        "changed": ("py:tests/test_calc.py",),
    }
    assert [rank.node(test) for test in found.tests] == [
        "tests/test_calc.py",
        "tests/test_new.py::test_new",
    ]
    assert found.without == ()


def test_a_changed_conftest_needs_all_tests_below_it(code: Code) -> None:
    code.put(
        {
            "calc.py": CALC,
            "tests/test_calc.py": TESTS,
            "tests/conftest.py": "",
            "test_top.py": "def test_t(): ...\n",
        }
    )
    keep(code, {**RAN, "test_top.py::test_t": {"test_top.py": [1]}})
    code.put({"tests/conftest.py": "def pytest_runtest_call(item): ...\n"})
    found = recorded.since(code.model(), Recording(code.store, code.root))
    assert found.by["changed"] == ("py:tests/test_calc.py",)


def test_a_file_of_tests_that_is_gone_needs_none(calc: Code) -> None:
    calc.put({"tests/test_calc.py": None})
    assert recorded.since(calc.model(), Recording(calc.store, calc.root)) == Selection({})


def test_a_comment_that_becomes_code_is_a_change(code: Code) -> None:
    code.put(
        {
            "calc.py": CALC.replace("value = self", "# value = 1\n        value = self"),
            "tests/test_calc.py": TESTS,
        }
    )
    keep(code, {**RAN, "tests.test_calc.TestBox.test_get": {"calc.py": [21, 22]}})
    assert since(code, "calc.py", "# value = 1", "# value = 2").tests == ()
    assert since(code, "calc.py", "# value = 2", "value = 2").tests == (GET,)


def test_moved_lines_keep_their_recording(calc: Code) -> None:
    moved = CALC.replace("LIMIT = 3\n", "# One.\n# Two.\nLIMIT = 3\n")
    calc.put({"calc.py": moved})
    assert recorded.since(calc.model(), Recording(calc.store, calc.root)).tests == ()
    assert set(since(calc, "calc.py", "return -1", "return -3").tests) == {LOW}


def test_a_file_that_is_new_or_gone_is_asked_of_the_static_rule(calc: Code) -> None:
    calc.put({"more.py": "def more(): ...\n", "calc.py": None})
    found = recorded.since(calc.model(), Recording(calc.store, calc.root))
    assert {(part.path, part.why) for part in found.without} == {("calc.py", UNKNOWN), ("more.py", UNKNOWN)}
    assert set(found.tests) == {LOW, HIGH, GET, LATE, OTHER}


def test_a_symbol_needs_the_tests_that_ran_its_body(calc: Code) -> None:
    model = calc.model()
    kept = Recording(calc.store, calc.root)
    assert recorded.tests(model, kept, model.target("calc.py#sign")) == Selection(
        {"recorded": tuple(sorted((LOW, HIGH)))}
    )
    found = recorded.tests(model, kept, model.target("calc.py#LIMIT"))
    assert [part.why for part in found.without] == [OUTSIDE] and LATE in found.tests
    assert recorded.tests(model, kept, model.target("calc.py#unused")).without[0].why == NEVER
    calc.put({"late.py": "def f(): ...\n"})
    model = calc.model()
    assert recorded.tests(model, kept, model.target("late.py#f")).without[0].why == UNKNOWN


def test_a_test_whose_recording_is_old_counts_by_the_static_rule(calc: Code) -> None:
    calc.put({"calc.py": CALC.replace("return LIMIT", "return unused(LIMIT)")})
    model = calc.model()
    found = recorded.tests(model, Recording(calc.store, calc.root), model.target("calc.py#unused"))
    assert LATE in found.tests


def test_what_a_fixture_ran_counts_for_all_tests_of_its_file(code: Code) -> None:
    code.put({"calc.py": CALC, "tests/test_calc.py": TESTS})
    keep(code, {**RAN, "tests/test_calc.py::test_low|setup": {"calc.py": [25]}})
    assert set(since(code, "calc.py", "return LIMIT", "return LIMIT * 1").tests) == {
        LOW,
        HIGH,
        GET,
        LATE,
        OTHER,
    }


def test_a_file_that_changed_after_the_recording_has_no_lines(calc: Code) -> None:
    path = recording_kit.write(calc.root.parent / "data", calc.root, RAN)
    late = path.stat().st_mtime + 10
    os.utime(calc.root / "calc.py", (late, late))
    kept = recording.keep(calc.model(), coverage_file.read(path))
    assert kept.changed == ("calc.py",)
    found = recorded.since(calc.model(), Recording(calc.store, calc.root))
    assert [(part.path, part.why) for part in found.without] == [("calc.py", UNKNOWN)]


def test_lines_that_the_text_has_not_are_of_another_one(code: Code) -> None:
    code.put({"calc.py": CALC, "tests/test_calc.py": TESTS})
    ran = {**RAN, "tests/test_calc.py::test_low|run": {"calc.py": [900], "tests/test_calc.py": [5]}}
    assert keep(code, ran).changed == ("calc.py",)


@pytest.mark.parametrize("way", ["test_function", "pytest-cov", "branches"])
def test_a_file_that_coverage_wrote_is_read(code: Code, way: str) -> None:
    code.put({"calc.py": CALC, "tests/test_calc.py": TESTS})
    line = ["-m", "coverage", "run", "--source=."]
    settings = "[run]\n" + ("branch = true\n" if way == "branches" else "")
    if way == "pytest-cov":  # what it names contexts
        code.put(
            {
                "conftest.py": "import coverage, pytest\n\n@pytest.hookimpl(wrapper=True)\n"
                "def pytest_runtest_call(item):\n"
                "    coverage.Coverage.current().switch_context(f'{item.nodeid}|run')\n    return (yield)\n"
            }
        )
    else:
        settings += "dynamic_context = test_function\n"
    (code.root / ".coveragerc").write_text(settings)
    done = subprocess.run(
        [
            sys.executable,
            "-B",
            *line,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--import-mode=prepend",
        ],
        cwd=code.root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(code.root), "COVERAGE_CORE": "ctrace"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    read = coverage_file.read(code.root / ".coverage")
    late = max(path.stat().st_mtime for path in code.root.rglob("*.py"))
    kept = recording.keep(
        code.model(), coverage_file.Recorded(max(read.begun, late), read.paths, read.contexts)
    )
    assert (kept.tests, kept.unknown, kept.changed) == (5, (), ())
    assert set(since(code, "calc.py", "return -1", "return -2").tests) == {LOW}


def test_another_folder_with_the_same_store_has_no_recording(calc: Code, tmp_path: Path) -> None:
    assert not Recording(calc.store, tmp_path)
    assert Recording(calc.store, calc.root)
