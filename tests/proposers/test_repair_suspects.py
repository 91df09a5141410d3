"""The proposer `suspects`: the function that a failing test points at, or why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from repair_kit import RIGHT, TESTS, project, suspects
from spak.errors import UsageError

pytestmark = pytest.mark.sandbox


def test_the_suspected_function_is_read(tmp_path: Path) -> None:
    found = suspects(project(tmp_path / "work"))
    (first,) = found.candidates
    assert (first.tool, first.args) == ("read_file", {"path": "numbers_.py", "start_line": 4, "end_line": 10})
    assert (first.score, found.record["suspects"], found.refusal) == (1000, ["numbers_.py:8"], None)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"numbers_.py": RIGHT, "test_numbers.py": TESTS}, "repair.not_reproduced"),
        ({"test_a.py": "def test_a():\n    assert 1 == 2\n"}, "repair.exhausted"),
        ({"test_a.py": "import nowhere\n"}, "repair.uncollected"),
    ],
)
def test_where_nothing_is_suspected_it_says_why(tmp_path: Path, files: dict[str, str], code: str) -> None:
    found = suspects(project(tmp_path / "work", files))
    assert not found.candidates and found.refusal is not None and found.refusal["code"] == code


@pytest.mark.parametrize(("option", "value"), [("test", "test_none.py::test_x"), ("visible", 90)])
def test_options_that_do_not_fit(tmp_path: Path, option: str, value: str | int) -> None:
    with pytest.raises(UsageError) as caught:
        suspects(project(tmp_path / "work"), **{option: value})
    assert caught.value.code == ("repair.test" if option == "test" else "repair.options")
