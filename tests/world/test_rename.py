"""A symbol gets another name in all files, and the program is the same; else it is refused with the place."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from spak.cli.world import command
from spak.errors import UsageError
from spak.world.python_names import Text
from spak.world.rename import Renamed, rename
from world_kit import Code

SHOP = {
    "shop/__init__.py": "from .cart import Cart as Cart, total as sum_of\n__all__ = ['Cart', 'sum_of']\n",
    "shop/cart.py": (
        "from __future__ import annotations\nimport json\n\ndef total(xs):\n    return sum(xs)\n\n"
        "class Base:\n    def pay(self):\n        return 1\n\n"
        "class Cart(Base):\n    rate = 2\n\n    def pay(self):\n"
        "        return total([1]) + super().pay() * self.rate\n\n    @property\n    def size(self):\n"
        "        return self._size\n\n    @size.setter\n    def size(self, to):\n        self._size = to\n\n"
        "def use(cart: 'Cart', of: \"list[Cart]\" = ()) -> int:\n    return (cart\n        .pay())\n"
    ),
    "shop/all.py": "from shop.cart import *\n",
    "shop/empty.py": "",
    "shop/more.py": (
        "import shop.cart as k\nimport shop\nfrom shop.all import Cart as C, total\n\n"
        "def f(total=None):\n    é = [k.total([total('a')])]; return é\n\n"
        "def g():\n    from shop.cart import Cart, total\n    c = Cart(); c.size = 3\n"
        "    return [total([c.pay()]), k.use(C()), shop.Cart().rate, c.size]\n"
    ),
    "run.py": (
        "from shop import more\nfrom shop.cart import Base\n"
        "print(more.f(total=len), more.g(), Base().pay())\n"
    ),
}  # fmt: skip


def ran(code: Code) -> str:
    done = subprocess.run([sys.executable, "-I", "-c", RUN, str(code.root)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


RUN = "import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True; import run"


def renamed(code: Code, target: str, new: str, leave: bool = False) -> Renamed:
    model = code.model()
    found = rename(model, model.target(target)[0], new, leave)
    code.put({path: after for path, (_, after) in found.files.items()})
    return found


@pytest.mark.parametrize(
    ("target", "new", "places", "left"),
    [
        ("shop/cart.py#total", "sum_up", 7, 2),
        ("shop/cart.py#Cart", "Basket", 10, 0),
        ("shop/cart.py#Cart.pay", "settle", 6, 0),
        ("shop/cart.py#Cart.rate", "faktor_ü", 3, 0),
        ("shop/cart.py#Cart.size", "count", 5, 0),
        ("shop/cart.py#use", "use_it", 2, 0),
    ],
)
def test_it_is_the_same_program(code: Code, target: str, new: str, places: int, left: int) -> None:
    """`left` are the places that mean something else by the old name."""
    code.put(SHOP)
    before, edges = ran(code), code.edges()
    found = renamed(code, target, new)
    assert (found.places, found.strings) == (places, [])
    assert ran(code) == before
    old = target.rpartition("#")[2].rpartition(".")[2]
    texts = [Text((code.root / path).read_bytes()) for path in SHOP]
    assert sum(one.name == old for text in texts for one in text.names) == left
    assert len(code.edges()) == len(edges) and new in str(code.edges()) and not code.model().symbols(target)
    assert renamed(code, target.replace(old, new), old).places == places  # and back, to the byte
    assert {path: (code.root / path).read_text() for path in SHOP} == SHOP


@pytest.mark.parametrize(
    ("files", "target", "new", "said"),
    [
        ({"a.py": "def f(): ...\n"}, "a.py#f", "def", r"'def' is no new name"),
        ({"a.py": "def f(): ...\n"}, "a.py#f", "f", r"'f' is no new name"),
        ({"a.py": "def f(): ...\n"}, "a.py#f", "a b", r"'a b' is no new name"),
        ({"a.py": "def f(): ...\n"}, "a.py#f", "\u202eg", r"'\\u202eg' is no new name"),
        ({"a.py": "def f(): ...\ng = 1\n"}, "a.py#f", "g", r"g is in use in the module, a.py:2"),
        ({"a.py": "def f(): ...\nprint(len(''))\n"}, "a.py#f", "len", r"len is in use .* a.py:2"),
        ({"a.py": "def f(): ...\ndef h(g): return f(), g\n"}, "a.py#f", "g", r"g is in use in h, a.py:2"),
        ({"a.py": "def f(): ...\n", "b.py": "from a import f\ng = 1\n"}, "a.py#f", "g", r"g is .* b.py:2"),
        ({"a.py": "class A:\n    x = 1\nclass B(A):\n    y = 2\n"}, "a.py#A.x", "y", r"y is in use in B"),
        (
            {"a.py": "class A:\n    def __init__(self): self.y = 1\n    x = 1\n"},
            "a.py#A.x",
            "y",
            r"in use in A",
        ),
    ],
)
def test_a_name_that_cannot_be_had(
    code: Code, files: dict[str, str], target: str, new: str, said: str
) -> None:
    code.put(files)
    with pytest.raises(UsageError, match=said) as found:
        renamed(code, target, new)
    assert found.value.code == "world.rename_name" and found.value.hint


@pytest.mark.parametrize(
    ("text", "target", "code_", "said"),
    [
        ("class A:\n    def __init__(self): ...\n", "A.__init__", "kind", "is no function, class"),
        ("class A:\n    _fields_ = []\n", "A._fields_", "kind", "is no function, class"),
        ("def f():\n    def g(): ...\n", "f.g", "kind", "is no function, class"),
        ("import pytest\n@pytest.fixture\ndef f(): ...\n", "f", "kind", "is a fixture"),
        ("@some\nclass A:\n    f: int = 1\n", "A.f", "kind", "field of a decorated class"),
        ("class A:\n    def f(self): ...\ndef g(x): x.f()\n", "A.f", "unsafe", r"1 places name f .*: a.py:4"),
        ("import io\nclass A(io.RawIOBase):\n    def read(self): ...\n", "A.read", "unsafe", "may have read"),
        ("class A(Unknown):\n    def f(self): ...\n", "A.f", "unsafe", "the base 'Unknown'"),
        ("import copy\nclass A:\n    def f(self):\n        copy.copy(self).f()\n", "A.f", "unsafe", "a.py:5"),
        ("import copy\nclass A:\n    def f(self):\n        b = copy.copy(self)\n        b.f()\n", "A.f",
         "unsafe", "a.py:6"),
        ("class A:\n    def f(self): ...\nA().f(); [].f()\n", "A.f", "unsafe", "1 places name f"),
        ("class A:\n    def f(self): ...\nclass B:\n    def f(self): ...\nA().f(); B().f()\n", "A.f",
         "unsafe", "a.py:6 names f more than once"),
        ("def f(): ...\nf = 3 if f else f\n", "f", "unsafe", "several meanings in the module"),
        ("try:\n    from os import f\nexcept ImportError:\n    def f(): ...\n", "f", "unsafe",
         "several meanings"),
        ("def f(): ...\ndef g():\n    global f\n    f = 2\n", "f", "unsafe", "a form that is not rewritten"),
        ("def f(): ...\nexec('a.f()')\n", "f", "unsafe", "1 strings name f as code does: a.py:3"),
        ("import enum\nclass A(enum.Enum):\n    B = 1\n", "A", "unsafe", "'enum.Enum', which may"),
        ("import abc\nclass A(abc.ABC): ...\nclass B(A):\n    c = 1\ndef d(a: A): return a.c\n", "B.c",
         "unsafe", "1 places name c"),
        ("class A(Unknown): ...\n", "A", "unsafe", "'Unknown', which may read its name"),
        ("class A:\n    def g(self): return type(self).__name__\n", "A", "unsafe", "a.py:3 reads the name"),
    ],
)  # fmt: skip
def test_what_may_become_another_program_is_refused(
    code: Code, text: str, target: str, code_: str, said: str
) -> None:
    code.put({"a.py": f"# one\n{text}"})
    with pytest.raises(UsageError, match=said) as found:
        renamed(code, f"a.py#{target}", "other")
    assert found.value.code == f"world.rename_{code_}" and found.value.hint


def test_what_could_not_be_followed_may_be_left(code: Code) -> None:
    code.put({"a.py": "class A:\n    def f(self): ...\nA().f()\ndef g(x): x.f()\nh = 'f', 'a.f()'\n"})
    found = renamed(code, "a.py#A.f", "other", leave=True)
    assert (found.places, found.strings) == (2, [("a.py", 5)])
    assert (code.root / "a.py").read_text().splitlines()[2:4] == ["A().other()", "def g(x): x.f()"]


def test_files_that_python_does_not_read_or_that_change_meanwhile(code: Code) -> None:
    code.put({"a.py": "def f(): ...\n", "b.py": "from a import f\nprint f\n", "c.js": "function f() {}\n"})
    model = code.model()
    with pytest.raises(UsageError, match=r"b.py has the name, and Python does not read it") as found:
        rename(model, model.target("a.py#f")[0], "g")
    assert found.value.code == "world.rename_unparsed"
    with pytest.raises(UsageError, match=r"c.js is another") as found:
        rename(model, model.target("c.js#f")[0], "g")
    assert found.value.code == "world.language"
    code.put({"b.py": "from a import f\n"})
    with pytest.raises(UsageError, match=r"b.py changed just now") as found:
        rename(model, model.target("a.py#f")[0], "g")
    assert found.value.code == "world.stale"


def test_the_command_prints_a_patch_that_git_takes(code: Code) -> None:
    code.put(SHOP)
    before = ran(code)
    line = ["rename", "shop/cart.py#Cart.pay", "settle", "--workspace", str(code.root)]
    done = CliRunner().invoke(command, line, standalone_mode=False)
    assert done.exception is None and "6 places in 3 files; next: git apply" in done.output
    told = json.loads(CliRunner().invoke(command, [*line, "--json"], standalone_mode=False).stdout)
    assert (told["places"], told["files"]) == (6, ["run.py", "shop/cart.py", "shop/more.py"])
    assert (code.root / "shop/cart.py").read_text() == SHOP["shop/cart.py"], "nothing is written"
    subprocess.run(["git", "apply"], cwd=code.root, input=told["patch"].encode(), check=True)
    assert ran(code) == before and "settle" in (code.root / "shop/more.py").read_text()
