"""The proposer `first_tests`: what is called, what is pinned, and what is left out or refused."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

from cli_kit import ROOT
from repair_kit import project
from spak.errors import RunError, UsageError
from spak.ports import PlanRequest, Search
from spak.proposers.first_tests import FirstTests, _tests
from validator_calls import call

CORE = "def rate():\n    return 2\n"
SHOP = """\
import random
from core import rate


def prices(names: list[str], many: int = 1) -> dict[str, int]:
    if many < 0:
        raise ValueError(many)
    return {name: rate() * many for name in names}


def words(text):
    return {part + "!" * rate() for part in text.split()}


def lucky():
    return rate() * random.random()


def thing():
    return rate() and object()


def slow():
    while rate():
        pass


class Cart:
    def __init__(self, count: int) -> None:
        self.count = count

    @property
    def total(self) -> int:
        return self.count * rate()

    @staticmethod
    def of(count: int) -> int:
        return Cart(count).total

    def plus(self, *, more: int | None = None) -> int:
        return self.total + (more or 0)


def outer():
    def inner():
        return rate()

    return inner()
"""
F = "from core import rate\n\n\ndef f():\n    return rate()\n"
USES = "from shop import words\n\nSEEN = words('b a b')\n"


def searched(folder: Path, path: str = "core.py", file: str = "test_pinned.py", **more: str) -> Search:
    folder.chmod(0o755)
    options = {"path": path, "file": file, **more}
    return FirstTests().search(PlanRequest("p", "t", "s", 0, 0, options, {}, {}), call(folder, {}))


@pytest.mark.sandbox
def test_answers_that_come_again_are_pinned_and_others_listed(tmp_path: Path) -> None:
    odd = dict.fromkeys(("class.py", "1st.py"), F)
    folder = project(tmp_path / "work", {"core.py": CORE, "shop.py": SHOP, "uses.py": USES, **odd})
    found = searched(folder)
    assert found.refusal is None
    (one,) = found.candidates
    assert [(check["name"], check["ok"]) for check in one.checks] == [("repeated", True), ("reached", True)]
    lines = [line[1:] for line in one.args["patch"].splitlines() if line.startswith("+") and line[1:2] != "+"]
    text = "\n".join(lines)
    assert "assert shop.words('b a b') == {'a!!', 'b!!'}" in text, "a literal that other code passes"
    assert "with pytest.raises(ValueError):" in text and "assert shop.Cart(0).total == 0" in text
    assert "shop.Cart.of(" in text and "plus(more=" in text and "shop.outer() == 2" in text
    assert not any(name in text for name in ("lucky", "thing", "slow"))
    assert ast.parse(text) and {"py:class.py#f", "py:1st.py#f"} <= found.record["left"].keys()
    assert {"py:shop.py#lucky", "py:shop.py#thing", "py:shop.py#slow"} <= found.record["left"].keys()
    (folder / "test_pinned.py").write_text(text)
    assert searched(folder).refusal == {
        "code": "pins.exists", "message": "test_pinned.py exists",
        "hint": "name another file, or extend this one by hand",
    }  # fmt: skip


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("files", "code", "said"),
    [
        ({"core.py": CORE}, "pins.nothing", "a test reaches each"),
        ({"other.py": CORE}, "pins.nothing", "there is no file core.py"),
        ({"core.c": "int f;", "core.py": "x = 1\n"}, "pins.nothing", "a test reaches each"),
        ({"core.py": CORE, "shop.py": F.replace("rate()", "id, rate")}, "pins.unanswered", "answer of 1"),
        ({"core.py": CORE, "shop.py": "import nowhere\n" + F}, "pins.unanswered", "answer of 1"),
        ({"core.py": CORE, "shop.py": "import os\nos._exit(0)\n" + F}, "pins.unanswered", "answer of 1"),
    ],
)  # fmt: skip
def test_where_nothing_can_be_pinned_it_says_why(
    tmp_path: Path, files: dict[str, str], code: str, said: str
) -> None:
    found = searched(project(tmp_path / "work", files))
    assert found.refusal is not None and found.refusal["code"] == code and said in found.refusal["message"]
    if "nowhere" in files.get("shop.py", ""):
        assert "No module named 'nowhere'" in found.refusal["left"]["py:shop.py#f"]


def test_the_name_of_the_file_to_change_is_no_code() -> None:
    text = _tests('x""" + print(1) + """\n.py', [])
    assert ast.get_docstring(ast.parse(text)) and len(ast.parse(text).body) == 1


def test_answers_are_literals_that_are_the_same_in_every_process() -> None:
    guest = runpy.run_path(str(ROOT / "sandbox/guest/pins_guest.py"))
    shown = [
        guest["text"](value)
        for value in ({3, 1}, frozenset({"b"}), {1: [2.5]}, object(), float("nan"), [set()])
    ]
    assert shown == ["{1, 3}", "frozenset({'b'})", "{1: [2.5]}", None, None, "[set()]"]


@pytest.mark.sandbox
def test_options_and_a_guest_that_ended_before_it_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError) as wrong:
        searched(tmp_path, other="x")
    assert wrong.value.code == "pins.options"
    monkeypatch.setattr("spak.proposers.first_tests.GUEST", "repair_guest.py")
    with pytest.raises(RunError) as caught:
        searched(project(tmp_path / "work", {"core.py": CORE, "shop.py": SHOP}))
    assert caught.value.code == "pins.incomplete"
