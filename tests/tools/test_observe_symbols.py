"""What the model of the code says to laws: the symbols that a change would touch, and which of them no test
reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spak import canon
from spak.datalog.externals import Request
from spak.datalog.values import Name
from spak.paths import CODE
from spak.ports import Look
from spak.runner.observe import observe
from spak.tools.observe import predicates
from world_kit import InProcess, in_process

FILES = {
    "core.py": "class Rate:\n    def at(self): ...\n\ndef base() -> Rate: ...\n\nLIMIT = 3\n",
    "shop.py": "from core import base\n\ndef price():\n    return base().at()\n\ndef idle():\n    base()\n",
    "far.py": "from shop import idle\n\ndef later():\n    idle()\n",
    "loose.py": "def rows(thing):\n    return thing.at()\n",
    "tests/test_shop.py": "from shop import price\n\ndef test_price():\n    assert price()\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_process(monkeypatch)
    return put(tmp_path / "ws", FILES)


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def rows(root: Path, pred: str, *args: Any) -> list[tuple[Any, ...]]:
    return predicates.answers([Request(pred, args)], Look(root))[0]


def impact(root: Path, changed: str) -> dict[str, str]:
    return {symbol: str(cover) for symbol, _, cover in rows(root, "symbol_impact", None, changed, None)}


def test_a_change_touches_what_depends_on_its_symbols(root: Path) -> None:
    assert impact(root, "core.py") == {
        "py:shop.py#price": "/tested",
        "py:shop.py#idle": "/untested",
        "py:far.py#later": "/untested",
        "py:loose.py#rows": "/unresolved",
    }
    assert impact(root, "py:core.py#Rate.at") == {
        "py:shop.py#price": "/tested",
        "py:loose.py#rows": "/unresolved",
    }
    assert impact(root, "far.py") == impact(root, "tests/test_shop.py") == impact(root, "README.md") == {}


def test_a_question_with_a_cover_gets_those_rows_alone(root: Path) -> None:
    found = rows(root, "symbol_impact", None, "core.py", Name("/unresolved"))
    assert found == [("py:loose.py#rows", "core.py", Name("/unresolved"))]


def test_a_file_without_its_facts_may_depend_on_anything(root: Path) -> None:
    put(root, {"broken.py": "def f(:\n", "kernel.go": "package k\0", "tests/test_broken.py": "def f(:\n"})
    assert impact(root, "far.py") == {"py:broken.py": "/unparsed"}
    assert impact(root, "kernel.go") == {"py:broken.py": "/unparsed", "go:kernel.go": "/unparsed"}


def test_symbols_and_links_are_answered_by_file_and_by_id(root: Path) -> None:
    shown = rows(root, "symbol_graph", None, None, None, "core.py", None)
    assert [(row[0], str(row[1]), str(row[2])) for row in shown] == [
        ("py:core.py#Rate", "/class", "/public"),
        ("py:core.py#Rate.at", "/function", "/public"),
        ("py:core.py#base", "/function", "/public"),
        ("py:core.py#LIMIT", "/constant", "/public"),
    ]
    assert rows(root, "symbol_graph", "py:core.py#base", *[None] * 4) == [shown[2]]
    into = rows(root, "symbol_link", None, "py:core.py#Rate.at", None)
    assert into == [("py:shop.py#price", "py:core.py#Rate.at", Name("/type"))]
    assert into[0] in rows(root, "symbol_link", "py:shop.py#price", None, None)
    assert rows(root, "symbol_link", "py:shop.py#price", "py:core.py#Rate.at", None) == into


def test_a_run_keeps_the_model_beside_its_workspace(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = ["symbol_link", [None, "py:shop.py#idle", None]]
    facts = canon.loads(canon.dumps(observe({"rows": [ask]}, root)))
    assert facts["rows"][0][1][0][:2] == ["py:far.py#later", "py:shop.py#idle"]
    assert (root.parent / CODE).exists()
    monkeypatch.setattr(InProcess, "parse", None)  # nothing is parsed again
    assert observe({"rows": [ask]}, root) == facts


def test_a_model_that_cannot_be_made_is_trouble_and_no_shorter_answer(root: Path) -> None:
    (root.parent / CODE).mkdir()
    found = observe({"rows": [["symbol_impact", [None, "core.py", None]]]}, root)
    assert found["trouble"][0] == "world.store"
