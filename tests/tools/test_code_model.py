"""find_symbol, references, impact, code_map and search_code as tools of a run: what they give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spak.ports import Call, ToolResult
from spak.tools import TOOLS

FILES = {
    "src/cart.py": "class Cart:\n    def total(self) -> int:\n        return 1\n\n"
    "    def pay(self):\n        return self.total()\n",
    "src/guess.py": "def guess(x):\n    return x.total()\n",
    "tests/test_cart.py": "from src.cart import Cart\n\ndef test_total():\n    Cart().total()\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "run" / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "run" / "workspace"


def run(workspace: Path, tool: str, **args: Any) -> ToolResult:
    return TOOLS[tool].run(Call("id", tool, args, workspace, None))


def shown(workspace: Path, tool: str, **args: Any) -> dict[str, Any]:
    result = run(workspace, tool, **args)
    assert (result.status, result.exit) == ("exited", 0), result.output
    document: dict[str, Any] = json.loads(result.output)
    return document


def test_a_symbol_is_found_by_name_and_by_file(workspace: Path) -> None:
    by_name = shown(workspace, "find_symbol", symbol="total")
    assert [(row["symbol"], row["line"], row["signature"]) for row in by_name["symbols"]] == [
        ("py:src/cart.py#Cart.total", 2, "(self) -> int")
    ]
    assert by_name["covers"]["indexed"] == 3
    assert len(shown(workspace, "find_symbol", symbol="src/cart.py")["symbols"]) == 3
    assert sorted(path.name for path in workspace.iterdir()) == ["src", "tests"]  # nothing is written there


def test_references_and_impact_say_how_and_what_is_not_known(workspace: Path) -> None:
    direct = shown(workspace, "references", symbol="src/cart.py#Cart.total")
    assert [(row["symbol"], row["how"], row["lines"]) for row in direct["references"]] == [
        ("py:src/cart.py#Cart.pay", "self", [6]),
        ("py:tests/test_cart.py#test_total", "type", [4]),
    ]
    reach = shown(workspace, "impact", symbol="src/cart.py#Cart.total")
    assert reach["tests"] == ["py:tests/test_cart.py#test_total"]
    assert reach["may"] == [{"symbol": "py:src/guess.py#guess", "name": "total", "line": 2}]
    assert reach["covers"]["unresolved"] == 1


def test_impact_lists_places_that_only_a_run_can_follow(workspace: Path) -> None:
    (workspace / "src/names.py").write_text(
        "from src.cart import Cart\n\ndef call(name):\n    return getattr(Cart(), name)()\n"
    )
    reach = shown(workspace, "impact", symbol="src/cart.py#Cart.total")
    assert reach["dynamic"] == [{"symbol": "py:src/names.py#call", "by": "getattr", "line": 4}]
    assert reach["covers"]["unresolved"] == 2


def test_a_path_narrows_the_answer(workspace: Path) -> None:
    reach = shown(workspace, "impact", symbol="src/cart.py#Cart.total", path="src/")
    assert [row["symbol"] for row in reach["impacted"]] == ["py:src/cart.py#Cart.pay"]
    assert reach["tests"] == []


def test_code_is_found_by_its_form(workspace: Path) -> None:
    found = shown(workspace, "search_code", pattern="$A.total()", path="tests")
    assert [(row["path"], row["line"], row["names"]) for row in found["matches"]] == [
        ("tests/test_cart.py", 4, {"A": "Cart()"})
    ]


@pytest.mark.parametrize(
    ("tool", "args", "code"),
    [
        ("find_symbol", {"symbol": "nothing"}, "world.no_symbol"),
        ("references", {"symbol": "src/cart.py#nothing"}, "world.no_symbol"),
        ("impact", {"symbol": "no.py"}, "world.no_symbol"),
        ("search_code", {"pattern": "f($A"}, "world.pattern"),
    ],
    ids=["find", "references", "impact", "search"],
)
def test_what_is_wrong_is_a_result_with_a_code(
    workspace: Path, tool: str, args: dict[str, Any], code: str
) -> None:
    result = run(workspace, tool, **args)
    assert (result.status, result.exit, result.diagnostics[0]["code"]) == ("exited", 1, code)


def test_a_map_has_what_others_rest_on_and_says_what_it_covers(workspace: Path) -> None:
    whole = run(workspace, "code_map", tokens=500)
    lines = whole.output.decode().splitlines()
    assert (whole.status, whole.exit, lines[0]) == ("exited", 0, "src/cart.py:")
    assert any("total(self) -> int" in line for line in lines)
    assert lines[-1].startswith("covers: 3 indexed, 0 stale")
    assert "src/cart.py:" not in run(workspace, "code_map", path="src/guess.py").output.decode()
