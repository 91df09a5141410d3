"""`tests: affected` of PyTest: which tests a run's changes need, by which rule, and when it is all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli_kit import spak
from spak.paths import CODE
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
    return affected(made.workspace, made.changed(), made.workspace.parent / CODE)


def edit(path: str, old: str, new: str) -> dict[str, str | None]:
    assert old in FILES[path]
    return {path: FILES[path].replace(old, new)}


ADD, TWICE = "tests/test_add.py::test_add", "tests/test_add.py::test_twice"
TWICE_CHECK = f"test:{TWICE}"
LATE, NONE = "tests/test_late.py::TestLate::test_late", "tests/test_late.py::test_none"


@pytest.mark.parametrize(
    ("changes", "ids", "rules"),
    [
        (edit("calc/add.py", "a + b", "b + a"), [ADD, TWICE], {"py:calc/add.py#add": "static"}),
        (edit("calc/add.py", "return a\n", "return 1 * a\n"), [LATE], {"py:calc/add.py#far": "static"}),
        (edit("calc/late.py", "LIMIT = 3", "LIMIT = 4"), [LATE, NONE], {"calc/late.py": "importers"}),
        (
            edit("tests/test_late.py", "assert True", "assert 1"),
            [NONE],
            {"py:tests/test_late.py#test_none": "static"},
        ),
    ],
)
def test_the_tests_of_what_changed_with_the_rule_of_each(
    changed: Project, changes: dict[str, str | None], ids: list[str], rules: dict[str, str]
) -> None:
    found = chosen(changed(changes))
    assert sorted({ADD, TWICE, LATE, NONE} - set(found.left)) == sorted(ids)
    assert found.evidence == {"selection": {"rule": "symbols", "changed": rules, "tests": len(ids)}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "nothing changed"),
        ({"data.json": "{}"}, "data.json may concern any test"),
        ({"tests/conftest.py": ""}, "tests/conftest.py may concern any test"),
        ({"calc/new.py": "def new():\n    return 1\n"}, "calc/new.py is new, gone or does not parse"),
        ({"calc/lone.py": None}, "calc/lone.py is new, gone or does not parse"),
        (edit("calc/add.py", "a + b", "a +"), "calc/add.py is new, gone or does not parse"),
        (edit("calc/lone.py", "1", "2"), "nothing leads from py:calc/lone.py#lone to a test"),
    ],
)
def test_what_cannot_be_judged_leads_to_all_tests(
    changed: Project, changes: dict[str, str | None], reason: str
) -> None:
    found = chosen(changed(changes))
    assert found == ((), {"selection": {"rule": "all", "reason": reason}})


def measured(made: Any, **options: Any) -> Measurement:
    return PyTest().measure(replace(made, options={"tests": "affected", **options}))


@pytest.mark.sandbox
def test_only_these_run_and_the_record_says_why(changed: Project) -> None:
    made = changed(edit("calc/add.py", "return a\n", "return 1 * a\n"))
    seen = measured(made)
    assert (seen.metrics["passed"], seen.metrics["collected"]) == (1, 1)
    assert seen.evidence["selection"]["rule"] == "symbols"
    assert measured(made, paths=["tests/test_late.py"]).metrics["collected"] == 1
    assert measured(made, paths=["tests/test_add.py"]).metrics["collected"] == 2, (
        "none of its tests: all of it"
    )
    assert PyTest().measure(replace(made, options={})).metrics["collected"] == 4


ODD = """\
import functools

import pytest

from calc.add import add, far


def twice(function):
    @functools.wraps(function)
    def inner(**args):
        function(**args)
        function(**args)

    return inner


class Base:
    def test_of_base(self):
        assert add(1, 1) == 2


class TestSub(Base):
    def test_of_sub(self):
        assert far(1) == 1


@pytest.mark.parametrize("a", [1, 2])
@twice
def test_wrapped(a):
    assert add(a, a) == 2 * a


def test_again():
    assert False


def test_again():
    assert far(1) == 1


def _made(number):
    def test_one():
        assert number

    return test_one


test_made = _made(1)
"""


@pytest.mark.sandbox
def test_a_test_counts_by_where_it_is_written_and_an_unknown_one_runs(changed: Project) -> None:
    made = changed(edit("calc/add.py", "a + b", "b + a"))
    (made.workspace / "tests/test_odd.py").write_text(ODD)
    seen = measured(made, paths=["tests/test_odd.py"])
    assert seen.checks[-1]["ok"], seen.checks
    assert (seen.metrics["collected"], seen.metrics["deselected"]) == (4, 2), "base, wrapped twice, made"
    made = changed(edit("calc/add.py", "return a\n", "return 1 * a\n"))
    seen = measured(made, paths=["tests/test_odd.py"])
    assert (seen.metrics["collected"], seen.metrics["deselected"]) == (3, 3), "sub, again, made"


SPEC = """AGENT Mends LEVEL 2 {
    START -> mend
    TASK mend {
        GOAL "Change the sum."
        step write: tool.write_file { path: "calc/add.py" content: %s }
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
    broken = FILES["calc/add.py"].replace("add(a, a)", "add(a, 1)")
    (tmp_path / "mend.spak").write_text(SPEC % json.dumps(broken))
    _, seen = spak(tmp_path, "run", "mend.spak", "--workspace", "project", "--json")
    ledger = (tmp_path / ".spak/runs" / str(seen["run"]) / "trace.jsonl").read_text()
    bodies = [json.loads(line)["body"] for line in ledger.splitlines()]
    (measured,) = [body for body in bodies if "metrics" in body]
    assert [check["name"] for check in measured["checks"] if not check["ok"]] == [TWICE_CHECK]
    assert measured["evidence"]["selection"] == {
        "rule": "symbols", "changed": {"py:calc/add.py#twice": "static"}, "tests": 1,
    }  # fmt: skip
