"""Which tests a change needs, by which rule, and what a map shows first."""

from __future__ import annotations

from spak.world import rank
from world_kit import Code

FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": "class Cart:\n    def __init__(self, n):\n        self.n = check(n)\n\n"
    "    def total(self):\n        return self.n\n\ndef check(n):\n    return n\n\ndef lonely():\n    ...\n",
    "shop/other.py": "def nobody():\n    ...\n",
    "tests/conftest.py": "import pytest\nfrom shop.cart import Cart\n\n"
    "@pytest.fixture\ndef cart():\n    yield Cart(1)\n",
    "tests/test_cart.py": "def test_total(cart):\n    assert cart.total() == 1\n",
    "tests/test_check.py": "from shop.cart import check\n\nclass TestCheck:\n"
    "    def test_it(self):\n        check(1)\n",
    "tests/far/test_far.py": "def test_far(): ...\n",
}


def chosen(code: Code, target: str) -> tuple[str, set[str]]:
    model = code.model()
    found = rank.tests(model, model.target(target))
    return found.rule, {test.partition("#")[2] for test in found.tests}


def test_each_rule_chooses_what_it_says(code: Code) -> None:
    code.put(FILES)
    assert chosen(code, "shop/cart.py#Cart.total") == ("static", {"test_total"})
    assert chosen(code, "shop/cart.py#check") == ("static", {"test_total", "TestCheck.test_it"})
    assert chosen(code, "shop/cart.py#lonely") == ("importers", {"test_total", "TestCheck.test_it"})
    assert chosen(code, "shop/other.py#nobody") == ("all", {"test_total", "TestCheck.test_it", "test_far"})


def test_a_fixture_is_an_edge_and_gives_a_type(code: Code) -> None:
    code.put(FILES)
    assert code.edges("tests/test_cart.py") == {
        "tests/test_cart.py#test_total call tests/conftest.py#cart import",
        "tests/test_cart.py#test_total call shop/cart.py#Cart.total type",
    }


def test_what_runs_while_a_test_file_loads_belongs_to_all_its_tests(code: Code) -> None:
    code.put(
        {**FILES, "tests/test_load.py": "from shop.other import nobody\n\nnobody()\n\ndef test_b(): ...\n"}
    )
    assert chosen(code, "shop/other.py#nobody") == ("static", {"test_b"})


def test_a_map_begins_near_its_targets_and_keeps_its_budget(code: Code) -> None:
    code.put(FILES)
    model = code.model()
    whole = rank.overview(model, [], 1000)
    assert {symbol.qual for symbol in whole["shop/cart.py"]} == {
        "Cart",
        "Cart.__init__",
        "Cart.total",
        "check",
        "lonely",
    }
    near = rank.overview(model, model.target("shop/cart.py#check"), 20)
    assert [symbol.qual for symbol in near["shop/cart.py"]][-1] == "check"
    size = sum(len(rank.line(item)) + 1 for items in near.values() for item in items)
    assert 0 < size <= 20 * rank.CHARACTERS
