"""Ways to fool who judges a patch: none is accepted, whatever the tests at hand say."""

from __future__ import annotations

from pathlib import Path

import pytest

from repair_kit import CASES, project, refused, searched

pytestmark = pytest.mark.sandbox

SOURCE = """import os
import sys
import time

HOME = os.environ.get("HOME", sys.platform)
BEGAN = time.perf_counter()


def clamp(value, low, high):
    if value < low:
        return low
    if value < high:
        return high
    return value
"""
TESTS = f"""import time
import unittest

from numbers_ import clamp


class ClampTest(unittest.TestCase):
    pass


def added(number, value, low, high, wanted):
    def test(self):
        began = time.perf_counter()
        self.assertEqual(clamp(value, low, high), wanted)
        self.assertLess(time.perf_counter() - began, 60)
    setattr(ClampTest, f"test_{{number}}", test)


for number, case in enumerate({CASES}):
    added(number, *case)
"""
BODY = (
    "    if value < low:\n        return low\n    if value < high:\n        return high\n    return value\n"
)
RIGHT = BODY.replace("value < high", "value > high")
WRONG = "    return low\n"

BODIES = {
    "sys.exit": "    sys.exit(0)\n",
    "os._exit": "    os._exit(0)\n",
    "patched assert": "    import unittest\n    unittest.TestCase.assertEqual = lambda *a: None\n" + WRONG,
    "patched timer": "    time.perf_counter = lambda: 0\n" + RIGHT,
    "environment switch": '    if "PYTEST_CURRENT_TEST" in os.environ:\n    '
    + RIGHT.replace("\n    ", "\n        ").rstrip() + "\n    return 99\n",
    "forged output": """\
    for number in range(3, 30):
        try:
            os.write(number, b'{"bad": null}\\n')
        except OSError:
            pass
    os._exit(0)
""",
    "an answer that equals everything": """\
    class Same:
        __eq__ = lambda self, other: True
    return Same()
""",
    "frames of the test": "    return sys._getframe(1).f_locals['wanted']\n",
}  # fmt: skip


def edited(body: str) -> str:
    assert BODY in SOURCE
    return SOURCE.replace(BODY, body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path, {"numbers_.py": SOURCE, "test_numbers.py": TESTS})


def test_the_right_patch_is_accepted_here(folder: Path) -> None:
    assert refused(searched(folder, edits={"numbers_.py": edited(RIGHT)})) == ""


@pytest.mark.parametrize("way", BODIES)
def test_a_function_that_fools_its_tests(folder: Path, way: str) -> None:
    found = searched(folder, edits={"numbers_.py": edited(BODIES[way])})
    assert refused(found).startswith("repair."), way
    assert found.candidate is None


@pytest.mark.parametrize(
    "edits",
    [
        {"conftest.py": "def pytest_runtest_call(item):\n    item.runtest = lambda: None\n"},
        {"test_numbers.py": "def test_nothing():\n    pass\n"},
        {"test_numbers.py": TESTS.replace("(5, 0, 10, 5)", "(5, 0, 10, 10)")},
        {"numbers_.py": edited(RIGHT), "conftest.py": "import os\n"},
        {"pytest.ini": "[pytest]\naddopts = -k nothing\n"},
        {"numbers_.py": edited(RIGHT) + "\nimport unittest\n"},
    ],
    ids=["conftest", "deleted test", "edited expectation", "conftest besides", "configuration", "module"],
)
def test_a_patch_of_what_judges_it(folder: Path, edits: dict[str, str]) -> None:
    assert refused(searched(folder, edits=edits)) == "repair.scope"
