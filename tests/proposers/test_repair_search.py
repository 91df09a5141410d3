"""Searches for a repair in the real sandbox: patches, and each refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from repair_kit import CLAMP, RIGHT, TESTS, bad, project, refused, searched
from spak.errors import RunError, UsageError
from spak.proposers.repair.search import Options, find
from validator_calls import call

pytestmark = pytest.mark.sandbox

UNIT = """import unittest
from shop.cart import Cart


class CartTest(unittest.TestCase):
    def check(self, prices, count, wanted):
        cart = Cart()
        for price in prices:
            cart.add(price)
        self.assertEqual(cart.total(count), wanted)

    def test_none(self): self.check([], 2, 0)
    def test_one(self): self.check([5], 1, 5)
    def test_two(self): self.check([5, 6], 2, 11)
    def test_first(self): self.check([5, 6, 7], 1, 5)
    def test_most(self): self.check([1, 1, 1, 1], 9, 4)
    def test_three(self): self.check([2, 3, 4, 5], 3, 9)
    def test_zero(self): self.check([2, 3], 0, 0)
    def test_pair(self): self.check([1, 2, 3], 2, 3)
"""
CART = """class Cart:
    def __init__(self):
        self.prices = []

    def add(self, price):
        self.prices.append(price)

    def total(self, count):
        return sum(self.prices[:count + 1])
"""
LOOP = """def total(n):
    found = 0
    while n > 0:
        found += n
        n -= 1
    return found + 1
"""
LOOP_TEST = """import pytest
from loop import total


@pytest.mark.parametrize("n,wanted", {cases})
def test_total(n, wanted):
    assert total(n) == wanted
"""


def test_a_planted_mistake_is_mended_and_the_same_seed_gives_the_same(tmp_path: Path) -> None:
    folder = project(tmp_path / "a")
    found = searched(folder)
    assert found.candidate is not None, found.refusal
    assert bad(found.verdicts) == []
    assert found.candidate.function.in_file(found.candidate.edit.text).replace("  # the mistake", "") == RIGHT
    again = searched(project(tmp_path / "b"))
    assert again.candidate is not None
    assert again.candidate.patch == found.candidate.patch
    assert (again.verdicts, again.record) == (found.verdicts, found.record)
    assert (folder / "numbers_.py").read_text() == CLAMP, "nothing is written"


def test_a_method_in_a_package_with_tests_of_unittest(tmp_path: Path) -> None:
    files = {"shop/__init__.py": "", "shop/cart.py": CART, "tests/test_cart.py": UNIT}
    found = searched(project(tmp_path, files))
    assert found.candidate is not None, found.refusal
    assert "self.prices[:count])" in found.candidate.edit.text


def test_tests_that_pass_are_left_alone(tmp_path: Path) -> None:
    found = searched(project(tmp_path, {"numbers_.py": RIGHT, "test_numbers.py": TESTS}))
    assert refused(found) == "repair.not_reproduced"


def test_a_named_test_that_passes_or_does_not_exist(tmp_path: Path) -> None:
    project(tmp_path, {"numbers_.py": RIGHT, "test_numbers.py": TESTS})
    assert refused(searched(tmp_path, test="test_numbers.py::test_clamp")) == "repair.not_reproduced"
    with pytest.raises(UsageError, match=r"repair\.test"):
        searched(tmp_path, test="test_numbers.py::test_other")


def test_a_path_of_tests_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"repair\.test"):
        find(call(tmp_path, {}), Options(tests=("nowhere",)))


def test_a_test_that_fails_now_and_then_is_not_searched(tmp_path: Path) -> None:
    test = "import random\n\n\ndef test_odd():\n    assert random.SystemRandom().random() < 0.5\n"
    files = {"test_odd.py": test + "".join(test[15:].replace("odd", f"odd{n}") for n in range(20))}
    assert refused(searched(project(tmp_path, files))) == "repair.flaky"


def test_tests_that_cannot_be_imported(tmp_path: Path) -> None:
    found = searched(project(tmp_path, {"test_a.py": "import gone\n\ndef test_a():\n    pass\n"}))
    assert refused(found) == "repair.uncollected"
    assert found.refusal is not None
    assert "gone" in found.refusal.message


def test_a_wrong_test_exhausts_the_search_and_names_lines(tmp_path: Path) -> None:
    wrong = TESTS + "\n\ndef test_wrong():\n    assert clamp(2, 0, 5) == 'two'\n"
    found = searched(project(tmp_path, {"numbers_.py": RIGHT, "test_numbers.py": wrong}))
    assert refused(found) == "repair.exhausted"
    assert found.refusal is not None
    assert any(one.startswith("numbers_.py:") for one in found.refusal.evidence["suspects"])


def test_a_failing_test_that_runs_no_code_of_the_project(tmp_path: Path) -> None:
    found = searched(project(tmp_path, {"test_a.py": "def test_a():\n    assert 1 == 2\n"}))
    assert refused(found) == "repair.exhausted"


def test_few_tests_check_nothing(tmp_path: Path) -> None:
    few = "from numbers_ import clamp\n\n\ndef test_clamp():\n    assert clamp(5, 0, 10) == 5\n"
    found = searched(project(tmp_path, {"numbers_.py": CLAMP, "test_numbers.py": few}))
    assert refused(found) in ("repair.unchecked", "repair.ambiguous")
    assert found.candidate is None


def test_a_budget_of_few_edits_ends_the_search(tmp_path: Path) -> None:
    wrong = TESTS + "\n\ndef test_wrong():\n    assert clamp(2, 0, 5) == 'two'\n"
    found = searched(project(tmp_path, {"numbers_.py": RIGHT, "test_numbers.py": wrong}), candidates=3)
    assert refused(found) == "repair.budget"
    assert found.record["tried"] == 3


def test_an_edit_that_never_ends_is_only_a_failing_edit(tmp_path: Path) -> None:
    cases = [(n, n * (n + 1) // 2) for n in range(9)]
    found = searched(project(tmp_path, {"loop.py": LOOP, "test_loop.py": LOOP_TEST.format(cases=cases)}))
    assert found.candidate is not None, found.refusal
    assert found.record["late"] > 0


def test_code_that_ends_the_guest_is_an_error_and_no_refusal(tmp_path: Path) -> None:
    files = {"conftest.py": "import os\n\n\ndef pytest_collection_finish(session):\n    os._exit(0)\n"}
    with pytest.raises(RunError, match=r"repair\.incomplete"):
        searched(project(tmp_path, {**files, "test_a.py": "def test_a():\n    assert 0\n"}))


def test_a_stale_report_names_what_fails_instead(tmp_path: Path) -> None:
    """The named test passes by now, and others do not: that is not called mended."""
    found = searched(project(tmp_path), test="test_numbers.py::test_clamp[-1-0-10-0]")
    assert refused(found) == "repair.not_reproduced"
    assert found.refusal is not None
    failing = found.refusal.evidence["failed"]
    assert failing and f"{len(failing)} others fail" in found.refusal.message
    assert failing[0] in found.refusal.hint


def test_without_the_visible_tests_the_search_keeps_whatever_it_tries_first(tmp_path: Path) -> None:
    found = searched(project(tmp_path), off=frozenset({"visible"}), inputs=10)
    assert (found.record["tried"], found.record["passing"]) == (12, 12)


def test_progress_arrives_while_the_search_runs(tmp_path: Path) -> None:
    """The second test passes only once somebody heard of the first one."""
    loop = "    while not os.path.exists('heard'):\n        time.sleep(0.01)\n"
    wait = f"import os, time\n\n\ndef test_b():\n{loop}"
    folder = project(tmp_path, {"test_a.py": "def test_a():\n    pass\n", "test_b.py": wait})
    heard: list[bytes] = []

    def hear(number: int, chunk: bytes) -> None:
        heard.append(chunk)
        (folder / "heard").touch()

    found = find(call(folder, {}, heard=hear), Options(tests=(".",)))
    assert refused(found) == "repair.not_reproduced" and b"\rtests run: 2, failing: 0" in heard


def test_progress_names_suspicious_lines_edits_and_checks(tmp_path: Path) -> None:
    heard: list[bytes] = []
    watched = call(project(tmp_path), {}, heard=lambda number, chunk: heard.append(chunk))
    found = find(watched, Options(tests=(".",)))
    assert found.candidate is not None
    text = b"".join(heard).decode()
    assert "\nsuspected: numbers_.py:" in text
    tried, of = found.record["tried"], found.record["candidates"]
    assert f"\redit {tried} of {of}, passing: {found.record['passing']}" in text
    passed, looks = found.record["passing_hidden"], found.record["looks"]
    assert f"\rhidden tests pass with {passed} of {looks} patches" in text
