"""What would make a renamed program another one is refused: other scopes, other files, names read as data."""

from __future__ import annotations

import pytest

from spak.errors import UsageError
from spak.world.rename import Renamed, rename
from world_kit import Code

F = "def f(): return 1\n"
A = "class A:\n    def f(self): return 1\n"
B = "class A:\n    x = 1\n"


def renamed(code: Code, target: str, new: str = "other", leave: bool = False) -> Renamed:
    model = code.model()
    return rename(model, model.target(target)[0], new, leave)


def refused(code: Code, target: str, new: str = "other") -> UsageError:
    with pytest.raises(UsageError) as found:
        renamed(code, target, new)
    assert found.value.hint
    return found.value


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        ("f = 3\nclass A:\n    x = f\n    f = 4\n", "f", "A in a.py reads f and binds it"),
        ("f = 3\nclass A:\n    x = f\n    f = 4\n", "A.f", "several meanings in A"),
        (f"{F}class A:\n    f = staticmethod(f)\n", "f", "reads f and binds it"),
        ("max = max(1, 2)\n", "max", "several meanings"),
        ("print(len('a'))\ndef len(x): return 5\n", "len", "several meanings"),
        ("if 0:\n    def len(x): return 5\nprint(len('a'))\n", "len", "several meanings"),
        ("class C:\n    x = len('ab')\n    def len(self): ...\n", "C.len", "several meanings"),
        ("class M:\n    def f(self): ...\nclass B(A, M): ...\n", "A.f", "a class has both as bases"),
        ("match A():\n    case A(f=3): ...\n", "A.f", "a.py:4 matches by f"),
        ("class B(A):\n    __match_args__ = ('f',)\n", "A.f", "a.py:4 lists f as a string"),
        ("getattr(A(), 'f')()\n", "A.f", "a.py:3 looks f up by a string"),
        ("import operator\noperator.attrgetter('f')(A())\n", "A.f", "looks f up by a string"),
        ("setattr(A(), 'f', 3)\n", "A.f", "looks f up by a string"),
        ("print(A.__dict__['f'])\n", "A.f", "looks f up by a string"),
        ("print(dir(A))\n", "A.f", "lists names by dir"),
        ("getattr(A(), 'f' + '')()\n", "A.f", "a.py:3 looks"),
        ("class B(A):\n    def g(self, n): return getattr(self, n)\n", "A.f", ""),
        ("class B(A):\n    def g(self, n): return getattr(self, n)\n    def h(self): ...\n", "B.h",
         "a name that is computed"),
        ("class C:\n    def do_x(self): ...\ngetattr(C(), 'do_' + 'x')\n", "C.do_x",
         "a name that is computed"),
        (f"{F}globals()['f']()\n", "f", "looks f up by a string"),
        ("f = 1\neval('f + 1')\n", "f", "looks f up by a string"),
        ("f = 1\nprint(f'{f=}')\n", "f", "prints f itself"),
        (f"{F}print(f.__name__)\n", "f", "reads __name__"),
        (f"def reg(fn): return fn.__name__\n@reg\n{F}", "f", "reads the name"),
        (f"import click\n@click.command()\n{F}", "f", "decorator 'click.command' is not in the tree"),
        ("def reg(c): return c.__dict__\n@reg\nclass B:\n    def f(self): ...\n", "B.f", "reads the name"),
        ("class M(type): ...\nclass B(metaclass=M):\n    x = 1\n", "B.x", "has a metaclass"),
        ("class S:\n    def __init_subclass__(cls): ...\nclass B(S):\n    x = 1\n", "B.x",
         "__init_subclass__"),
        ("class D:\n    def __set_name__(s, o, n): ...\nclass B:\n    x = D()\n", "B.x", "told its name"),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int = 1\n", "P.x",
         "the base 'NamedTuple'"),
        ("from typing import TypedDict\nclass P(TypedDict):\n    x: int\n", "P.x", "the base 'TypedDict'"),
        ("import ast\nclass V(ast.NodeVisitor):\n    def visit_Name(self, n): ...\n", "V.visit_Name",
         "the base"),
        ("from typing import Protocol\nclass P(Protocol):\n    def f(self): ...\n", "A.f",
         "in the interface P"),
        ("class W:\n    def write(self, s): ...\nprint('a', file=W())\n", "W.write", "library calls write"),
        ("def t():\n    '''\n    >>> f()\n    '''\ndef f(): ...\n", "f", "example that may be run"),
        ("import typing\nX = typing.List['A']\n", "A", "names A in a string as a type"),
        ("def g(x: \"list['A']\"): ...\n", "A", "in a form that is not rewritten"),
        ("g = __import__('a').A().f()\n", "A.f", "could not be followed"),
        ("import os\nclass B: x = A().f(); y = lambda: os.f()\n", "A.f", "a.py:4 names f more than once"),
        ("g = 'a:A'\n", "A", "1 strings name A as code does"),
        ("g = A().f(), ('a' + 'b').f()\n", "A.f", ""),
    ],
)  # fmt: skip
def test_names_that_are_read_as_data_and_other_scopes(code: Code, text: str, target: str, said: str) -> None:
    code.put({"a.py": f"{A}{text}"})
    if not said and "getattr" in text:
        assert renamed(code, f"a.py#{target}").places, "the code of a subclass is not that of the class"
        return
    error = refused(code, f"a.py#{target}")
    assert error.code == "world.rename_unsafe" and said in str(error)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"b.py": b"# -*- coding: latin-1 -*-\nfrom a import f\ns = '\xe9'\n"}, "b.py has the name"),
        ({"vendor/b.py": "from a import f\n"}, "vendor/b.py has the name"),
        ({"b.py": "# @generated\nfrom a import f\n"}, "b.py has the name"),
        ({"tool": "#!/usr/bin/env python3\nfrom a import f\n"}, "tool has the name"),
        ({"pyproject.toml": '[project.scripts]\nx = "a:f"\n'}, "pyproject.toml has the name"),
        ({"settings.yaml": "handler: a.f\n"}, "settings.yaml has the name"),
        ({"b.py": "from other.a import f\n", "x/other/a.py": F}, ""),
        ({"t/b.py": "from lib.a import f\n"}, ""),
        ({"b.py": "from a import *\nf()\n", "a.py": f"__all__ = []\n__all__.append('f')\n{F}"},
         "more than a list"),
        ({"b.py": "from a import *\n", "a.py": f"__all__ = 'f g'.split()\n{F}g = 1\n"},
         "more than a list"),
        ({"b.py": "from a import ﬁ\n", "a.py": "def fi(): ...\n"}, "in a form that is not rewritten"),
    ],
)  # fmt: skip
def test_other_files_that_name_it(code: Code, files: dict[str, str | bytes], said: str) -> None:
    code.put({"a.py": F, **files})
    name = "fi" if "fi()" in str(files) else "f"
    if not said:
        assert renamed(code, "a.py#f").places == 1, "another module of that name"
        return
    error = refused(code, f"a.py#{name}")
    assert error.code == "world.rename_unsafe" and said in str(error)
    if "has the name" in said:
        assert renamed(code, "a.py#f", leave=True).places == 1


@pytest.mark.parametrize(
    "text", ["from u import f\n", "from u import *\nf()\n", "import u\nu.f()\n", "import u as w\nw.f()\n"]
)
def test_an_import_that_leads_nowhere_may_mean_the_file(code: Code, text: str) -> None:
    """As where the folders of both are put on the path."""
    code.put({"pkg/u.py": F, "t/m.py": text})
    error = refused(code, "pkg/u.py#f")
    assert error.code == "world.rename_unsafe" and "t/m.py:" in str(error)


def test_a_second_name_of_the_file(code: Code) -> None:
    code.put({"a.py": F, "c.py": "from b import f\n"})
    (code.root / "b.py").symlink_to("a.py")
    assert "b.py has the name" in str(refused(code, "a.py#f"))


@pytest.mark.parametrize(
    ("text", "target", "new", "said"),
    [
        (F, "f", "ﬁ", "world.rename_name"),
        ("def test_f(): ...\n", "test_f", "helper", "world.rename_kind"),
        (F, "f", "test_f", "world.rename_kind"),
        ("import dataclasses as d\nclass A:\n    x: int = 1\n@d.dataclass\nclass B(A):\n    x: int = 2\n",
         "A.x", "y", "world.rename_kind"),
        (f"{F}x = {'not ' * 9_000}1\n", "f", "g", "world.rename_unparsed"),
    ],
)  # fmt: skip
def test_names_and_symbols_that_are_never_renamed(
    code: Code, text: str, target: str, new: str, said: str
) -> None:
    code.put({"a.py": text})
    assert refused(code, f"a.py#{target}", new).code == said


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        (b"def f():\r\n\treturn 1\r\nf()\r\n", "f", b"def other():\r\n\treturn 1\r\nother()\r\n"),
        (b"\xef\xbb\xbf# one\ndef f(): ...\nf()\n", "f", b"\xef\xbb\xbf# one\ndef other(): ...\nother()\n"),
        (b"def f(): ...\n\x0cif 1:\n\tx = '\xc3\xa9'; f()\n", "f",
         b"def other(): ...\n\x0cif 1:\n\tx = '\xc3\xa9'; other()\n"),
        (b"def f(): ...\nx = 'a\x0bb\x1c\xc2\x85\xe2\x80\xa8c'; f()\n", "f",
         b"def other(): ...\nx = 'a\x0bb\x1c\xc2\x85\xe2\x80\xa8c'; other()\n"),
        (b'def f(): ...\nx = f"f {f()}{3:{f()}}" f"""\nf {f()}"""\n', "f",
         b'def other(): ...\nx = f"f {other()}{3:{other()}}" f"""\nf {other()}"""\n'),
        (b"class A:\n    f = 1\nx = A().f, 'a'.f, f'{3}'.f\n", "A.f",
         b"class A:\n    other = 1\nx = A().other, 'a'.f, f'{3}'.f\n"),
    ],
    ids=["crlf", "bom", "form-feed", "odd-breaks", "f-string", "literal-receiver"],
)  # fmt: skip
def test_files_of_any_layout_change_in_the_places_alone(
    code: Code, before: bytes, target: str, after: bytes
) -> None:
    code.put({"a.py": before, "p/__init__.py": f"# {target}\n"})
    assert renamed(code, f"a.py#{target}").files["a.py"][1] == after


def test_an_empty_package_beside_it(code: Code) -> None:
    code.put({"p/__init__.py": b"", "p/a.py": F, "b.py": "from p.a import f\n"})
    assert renamed(code, "p/a.py#f").places == 2


def test_getattr_of_the_name_is_left_as_it_is_when_that_is_asked_for(code: Code) -> None:
    code.put({"a.py": A, "b.py": "from a import A\n\ndef g():\n    return getattr(A(), 'f', None)()\n"})
    assert "looks f up by a string" in str(refused(code, "a.py#A.f"))
    found = renamed(code, "a.py#A.f", leave=True)
    assert (sorted(found.files), found.strings) == (["a.py"], [("b.py", 4)])
