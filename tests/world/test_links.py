"""What the Python linker follows, and what it leaves unresolved instead of guessing."""

from __future__ import annotations

import pytest

from world_kit import Code

BASES = {
    "pkg/__init__.py": "from .shapes import *\nfrom .tools import helper as assist\n",
    "pkg/shapes.py": "__all__ = ['Shape', 'Square']\n\n\nclass Shape:\n    def area(self):\n"
    "        return self.side()\n\n"
    "    def side(self) -> int:\n        return 1\n\n\nclass Square(Shape):\n    def side(self) -> int:\n"
    "        return super().side()\n",
    "pkg/tools.py": "from . import shapes\n\n\ndef helper():\n    return shapes.Square()\n\n\n"
    "def _hidden():\n    return helper()\n",
}


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("import pkg\n\ndef f():\n    pkg.assist()\n", {"call pkg/tools.py#helper import"}),
        ("from pkg import Square\n\ndef f():\n    Square().area()\n",
         {"call pkg/shapes.py#Square import", "call pkg/shapes.py#Shape.area type"}),
        ("import pkg.tools as t\n\ndef f():\n    t.helper().area()\n",
         {"call pkg/tools.py#helper import", "call pkg/shapes.py#Shape.area type"}),
        ("from pkg.shapes import Shape\n\ndef f(s: 'Shape | None'):\n    s.side()\n",
         {"ref pkg/shapes.py#Shape import", "call pkg/shapes.py#Shape.side type"}),
        ("from pkg import Square\n\ndef f(all: dict[str, list[Square]]):\n    for one in all.values():\n"
         "        one[0].side()\n",
         {"ref pkg/shapes.py#Square import", "call pkg/shapes.py#Square.side type"}),
        ("from pkg import Square\n\ndef f():\n    x = Square()\n    g = x.area\n    return g\n",
         {"call pkg/shapes.py#Square import", "ref pkg/shapes.py#Shape.area type"}),
        ("from pkg import *\n\ndef f():\n    Square()\n", {"call pkg/shapes.py#Square import"}),
        ("def f():\n    return g()\n\ndef g():\n    pass\n", {"call x.py#g scope"}),
        ("class C:\n    def __init__(self):\n        self.n = D()\n\n    def f(self):\n        self.n.m()\n\n"
         "class D:\n    def m(self):\n        pass\n", {"call x.py#D.m type"}),
        ("class C:\n    @property\n    def d(self) -> 'D':\n        ...\n\n    def f(self):\n"
         "        self.d.m()\n\n"
         "class D:\n    def m(self):\n        pass\n", {"ref x.py#C.d self", "call x.py#D.m type"}),
        ("def f(x):\n    return x.area()\n", set()),
    ],
    ids=["package-alias", "constructor", "module-alias", "annotation", "containers", "local", "star", "scope",
         "attribute", "property", "unknown"],
)  # fmt: skip
def test_edges_of_a_function(code: Code, text: str, edges: set[str]) -> None:
    code.put({**BASES, "x.py": text})
    found = {edge.partition(" ")[2] for edge in code.edges() if edge.startswith(("x.py#f ", "x.py#C.f "))}
    assert found == edges


def test_members_along_the_bases_and_what_replaces_them(code: Code) -> None:
    code.put(BASES)
    assert code.edges("pkg/shapes.py") == {
        "pkg/shapes.py#Shape.area call pkg/shapes.py#Shape.side self",
        "pkg/shapes.py#Square base pkg/shapes.py#Shape scope",
        "pkg/shapes.py#Square.side call pkg/shapes.py#Shape.side super",
        "pkg/shapes.py#Square.side over pkg/shapes.py#Shape.side super",
    }


def test_a_receiver_without_a_type_is_unresolved_and_counted(code: Code) -> None:
    code.put({**BASES, "x.py": "def f(x):\n    return x.area()\n"})
    model = code.model()
    assert model.unresolved(["area"]) == [("py:x.py#f", "area", 2)]
    assert model.unresolved(["side"]) == []


def test_two_symbols_of_one_name_have_two_ids_and_both_are_reached(code: Code) -> None:
    code.put({"x.py": "if A:\n    def f(): ...\nelse:\n    def f(): ...\n\ndef g():\n    f()\n"})
    model = code.model()
    assert [item.id for item in model.target("x.py#f")] == ["py:x.py#f", "py:x.py#f~2"]
    assert code.edges("x.py#g") == {"x.py#g call x.py#f scope", "x.py#g call x.py#f~2 scope"}
    assert [reach.symbol for reach in model.impact(model.target("x.py#f"))] == ["py:x.py#g"]


def test_every_edge_is_derived_again_from_the_facts(code: Code) -> None:
    code.put({**BASES, "x.py": "import pkg\n\ndef f():\n    return pkg.assist().area()\n"})
    model = code.model()
    edges = model.callees(symbol.id for symbol in model.symbols())
    assert len(edges) >= 8
    for caller, callee, how, role, lines in edges:
        assert (how, role, tuple(map(int, lines.split()))) in model.replayed(caller, callee)


def test_kinds_and_visibility(code: Code) -> None:
    code.put(
        {
            "x.py": "from typing import Protocol\nLIMIT = 1\nname = 2\n\nclass P(Protocol):\n"
            "    def m(self): ...\n\n"
            "class C:\n    field: int = 0\n    def _p(self): ...\n"
            "    def __q(self): ...\n    def __len__(self): ...\n\n"
            "def _f(a: int, *, b=2) -> str: ...\n"
        }
    )
    found = {symbol.qual: (symbol.kind, symbol.visibility) for symbol in code.model().symbols("x.py")}
    assert found == {
        "LIMIT": ("constant", "public"), "name": ("variable", "public"), "P": ("interface", "public"),
        "P.m": ("function", "public"), "C": ("class", "public"), "C.field": ("variable", "public"),
        "C._p": ("function", "protected"), "C.__q": ("function", "private"),
        "C.__len__": ("function", "public"),
        "_f": ("function", "private"),
    }  # fmt: skip
    assert code.model().target("_f")[0].signature == "(a: int, *, b=2) -> str"


def test_getattr_of_a_name_in_quotes_is_that_attribute(code: Code) -> None:
    code.put(
        {
            "a.py": "class A:\n    def go(self): ...\n",
            "b.py": "from a import A\n\ndef f():\n    return getattr(A(), 'go', None)()\n",
        }
    )
    assert "b.py#f call a.py#A.go type" in code.edges("b.py#f")
