"""`spak world`: what it prints and its documents, on a small folder of code."""

from __future__ import annotations

from pathlib import Path

import pytest

import recording_kit
from cli_calls import Cli

CART = (
    "class Cart:\n    def total(self) -> int:\n        return 1\n\n"
    "    def pay(self):\n        return self.total()\n"
)
MAIL = "from cart import Cart\n\ndef mail(cart: Cart):\n    cart.pay()\n\ndef guess(x):\n    x.total()\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "cart.py").write_text(CART)
    (tmp_path / "mail.py").write_text(MAIL)
    (tmp_path / "test_cart.py").write_text("from cart import Cart\n\ndef test_total():\n    Cart().total()\n")
    return tmp_path


def test_index_reads_what_changed(cli: Cli, shop: Path) -> None:
    first = cli("world", "index", "--json").json
    assert (first["files"], first["parsed"], first["covers"]["indexed"]) == (3, 3, 3)
    assert cli("world", "index", "--json").json["parsed"] == 0
    assert "3 files, " in cli("world", "index").out


def test_impact_names_dependents_tests_and_what_is_not_known(cli: Cli, shop: Path) -> None:
    done = cli("world", "impact", "cart.py#Cart.total", "--json").json
    found = {item["symbol"]: (item["how"], item["via"]) for item in done["impacted"]}
    assert found == {
        "py:cart.py#Cart.pay": ("self", "py:cart.py#Cart.total"),
        "py:mail.py#mail": ("type", "py:cart.py#Cart.pay"),
        "py:test_cart.py#test_total": ("type", "py:cart.py#Cart.total"),
    }
    assert done["tests"] == ["py:test_cart.py#test_total"]
    assert done["may"] == [{"symbol": "py:mail.py#guess", "name": "total", "line": 7}]
    assert done["covers"] == {"indexed": 3, "stale": 0, "unresolved": 1, "unparsed": 0, "unknown": 0}
    shown = cli("world", "impact", "cart.py#Cart.total")
    assert "cart.py:6  Cart.pay  /self Cart.total" in shown.out
    assert "may: mail.py:7  guess names total" in shown.out


def test_impact_names_places_that_may_reach_any_symbol_of_the_file(cli: Cli, shop: Path) -> None:
    text = "def f(): ...\n\n\ndef run(o, n):\n    return getattr(o, n)()\n"
    (shop / "dyn.py").write_text(text)
    done = cli("world", "impact", "dyn.py#f", "--json").json
    assert done["dynamic"] == [{"symbol": "py:dyn.py#run", "by": "getattr", "line": 5}]
    assert "dynamic: dyn.py:5  run uses getattr" in cli("world", "impact", "dyn.py#f").out
    assert cli("world", "impact", "cart.py#Cart.total", "--json").json["dynamic"] == []


def test_what_is_unresolved_in_reach_counts_as_much_as_what_names_the_target(cli: Cli, shop: Path) -> None:
    (shop / "more.py").write_text(
        "from cart import Cart\n\ndef later(x):\n    x.mail()\n\n"
        "def named(x):\n    getattr(x, 'pay')()\n\n"
        "def made(name):\n    getattr(Cart(), f'{name}')()\n"
    )
    done = cli("world", "impact", "cart.py#Cart.total", "--json").json
    assert [(item["symbol"], item["name"]) for item in done["may"]] == [
        ("py:mail.py#guess", "total"),
        ("py:more.py#later", "mail"),
        ("py:more.py#named", "pay"),
    ]
    assert done["dynamic"] == [{"symbol": "py:more.py#made", "by": "getattr", "line": 10}]
    assert done["covers"]["unresolved"] == 4
    assert cli("world", "tests", "cart.py#Cart.total", "--json").json["covers"]["unresolved"] == 4
    whole = cli("world", "impact", "cart.py#Cart", "--json").json["may"]
    assert {"total", "pay"} <= {item["name"] for item in whole}, "its members count as it does"


def test_symbols_of_a_file_and_by_name(cli: Cli, shop: Path) -> None:
    assert cli("world", "symbols", "cart.py").out.splitlines() == [
        "cart.py:1  class Cart",
        "cart.py:2  function Cart.total(self) -> int",
        "cart.py:5  function Cart.pay(self)",
    ]
    assert [item["symbol"] for item in cli("world", "symbols", "pay", "--json").json["symbols"]] == [
        "py:cart.py#Cart.pay"
    ]


def test_tests_of_a_change_are_named_as_pytest_names_them(cli: Cli, shop: Path) -> None:
    assert cli("world", "tests", "cart.py#Cart.pay").out.splitlines() == ["test_cart.py::test_total"]
    done = cli("world", "tests", "cart.py#Cart.pay", "--json").json
    assert (done["rule"], done["tests"]) == ("static", ["py:test_cart.py#test_total"])


def test_tests_are_chosen_by_a_recording_and_the_answer_says_so(cli: Cli, shop: Path) -> None:
    ran = {"": {"cart.py": [1, 2, 5]}, "test_cart.py::test_total|run": {"cart.py": [3], "test_cart.py": [4]}}
    recording_kit.write(shop / ".coverage", shop, ran)
    assert cli("world", "tests", "--json").error == "world.no_recording"
    assert cli("world", "record").out == "1 tests, 2 files that they ran\n"
    done = cli("world", "record", ".coverage", "--json").json
    assert done == {"tests": 1, "files": 2, "changed": [], "unknown": []}
    assert cli("world", "tests").out == ""
    test = "py:test_cart.py#test_total"
    done = cli("world", "tests", "cart.py#Cart.total", "--json").json
    assert (done["rule"], done["by"], done["without"]) == ("recorded", {"recorded": [test]}, [])
    done = cli("world", "tests", "cart.py#Cart.pay", "--json").json
    assert (done["rule"], done["by"]) == ("static", {"static": [test]})
    assert done["without"] == [{"path": "cart.py", "line": 5, "why": "no test ran it"}]
    (shop / "cart.py").write_text(CART.replace("return 1", "return 2"))
    shown = cli("world", "tests")
    assert shown.out.splitlines() == ["test_cart.py::test_total"]
    assert "1 tests, chosen by the rule recorded (recorded 1)" in shown.err


def test_a_recording_that_cannot_be_used_is_named(cli: Cli, shop: Path) -> None:
    assert cli("world", "record", "--json").error == "world.recording"
    recording_kit.write(shop / ".coverage", shop, {"": {"cart.py": [1]}})
    assert cli("world", "record", "--json").error == "world.recording_contexts"
    recording_kit.write(shop / ".coverage", shop.parent, {"test_cart.py::test_total": {"cart.py": [3]}})
    assert cli("world", "record", "--json").error == "world.recording_elsewhere"


def test_a_map_has_the_signatures_by_file(cli: Cli, shop: Path) -> None:
    done = cli("world", "map", "mail.py#mail", "--tokens", "20", "--json").json
    assert "3: function mail(cart: Cart)" in done["files"]["mail.py"]
    assert sum(map(len, done["files"].values())) < 5
    assert "mail.py:" in cli("world", "map").out.splitlines()


def test_search_finds_by_form_and_says_when_it_finds_nothing(cli: Cli, shop: Path) -> None:
    done = cli("world", "search", "$A.total()", "--json").json
    assert [(item["path"], item["line"], item["names"]) for item in done["matches"]] == [
        ("cart.py", 6, {"A": "self"}),
        ("mail.py", 7, {"A": "x"}),
        ("test_cart.py", 4, {"A": "Cart()"}),
    ]
    assert cli("world", "search", "$A.absent()").code == 1


def test_why_shows_the_rule_and_says_where_there_is_none(cli: Cli, shop: Path) -> None:
    done = cli("world", "why", "cart.py#Cart.pay", "cart.py#Cart.total", "--json")
    assert (done.code, done.json["edges"][0]["how"], done.json["edges"][0]["lines"]) == (0, "self", [6])
    assert cli("world", "why", "cart.py#Cart.total", "cart.py#Cart.pay").code == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("impact", "cart.py#Cart.sum"), "world.no_symbol"),
        (("impact", "no.py"), "world.no_symbol"),
        (("impact", "same"), "world.ambiguous"),
        (("index", "no/such"), "usage.workspace"),
        (("search", "f($A"), "world.pattern"),
        (("search", "f($A)", "--workspace", "no"), "usage.workspace"),
    ],
    ids=["symbol", "file", "ambiguous", "folder", "pattern", "place"],
)
def test_what_is_not_there_is_named(cli: Cli, shop: Path, arguments: tuple[str, ...], code: str) -> None:
    for name in ("a.py", "b.py"):
        (shop / name).write_text("def same(): ...\n")
    done = cli("world", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
