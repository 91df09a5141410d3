"""Rust: modules in files and within them, `use`, `impl`, traits, declared types, and what stays unknown."""

from __future__ import annotations

import pytest

from spak.world import rank
from world_kit import Code, short

LIB = """\
//! The shop.
mod cart;
pub mod store;
pub use cart::{Cart, item::Item as Thing};

/// What can be drawn.
pub trait Draw: Named {
    const SIZE: u8 = 1;
    fn draw(&self) -> String;
    fn twice(&self) -> String { self.draw() + &self.name() }
}
pub trait Named { fn name(&self) -> String { String::new() } }

pub fn run<D: Draw>(d: &D, boxed: Box<dyn Draw>) -> Result<Cart, store::Lost> {
    d.draw();
    boxed.twice();
    let cart = Cart::new(3)?;
    Ok(cart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Cart { Cart::new(1).unwrap() }

    #[test]
    fn totals() {
        assert_eq!(made().total(), 2, "{}", run(1).is_ok());
    }
}
"""
CART = """\
pub mod item;
use self::item::Item;
use crate::{store::{self, Store}, Draw, Named};
use std::collections::HashMap;

pub enum Shape { Round(Item), Flat { inner: Item }, None }

#[derive(Debug)]
pub struct Cart { items: Vec<Item>, pub store: Option<Box<Store>>, by: HashMap<String, Item>, shape: Shape }

impl Cart {
    pub const LIMIT: usize = 3;

    pub fn new(n: usize) -> Result<Self, store::Lost> {
        Ok(Self { items: vec![Item::make(n)], store: None, by: HashMap::new(), shape: Shape::None })
    }

    pub fn total(&self) -> usize {
        for item in &self.items { item.price(); }
        if let Some(store) = &self.store { store.find("a"); }
        self.by.get("a").unwrap().price();
        match &self.shape {
            Shape::Round(item) => item.price(),
            Shape::Flat { inner } => inner.price(),
            _ => Self::LIMIT,
        };
        let item = self.items.iter().map(|one| one.price()).sum::<usize>();
        unknown.odd();
        store::open(item)
    }
}

impl Draw for Cart { fn draw(&self) -> String { format!("{}", self.total()) } }
impl Named for Cart {}
"""
ITEM = """\
#[derive(Clone, Default)]
pub struct Item { cost: usize }
impl Item {
    pub fn make(cost: usize) -> Item { Item { cost } }
    pub(super) fn price(&self) -> usize { self.cost }
}
"""
STORE = """\
use super::Cart;
pub struct Lost;
pub struct Store(Vec<Cart>, pub Lost);
impl Store { pub fn find(&self, key: &str) -> &Cart { &self.0[0] } }
pub fn open(n: usize) -> usize { let x = Store(vec![], Lost).find("b").total(); x }
"""
FILES: dict[str, str | bytes | None] = {
    "Cargo.toml": '[package]\nname = "the-shop"\nversion = "0.1.0"\n[dependencies]\nserde = "1"\n',
    "src/lib.rs": LIB,
    "src/cart/mod.rs": CART,
    "src/cart/item.rs": ITEM,
    "src/store.rs": STORE,
    "src/main.rs": "use the_shop::{run, Thing};\nfn main() { run(Thing::make(1)); serde::to_string(1); }\n",
    "tests/all.rs": "use the_shop::store;\n#[test]\nfn opens() { store::open(1); }\nfn test_helper() {}\n",
}


def sites(code: Code) -> set[tuple[str, str]]:
    rows = code.model().store.rows("SELECT text, site.name FROM site JOIN name ON name.id = caller")
    return {(short(caller), name) for caller, name in rows}


def test_paths_members_and_declared_types_lead_through_modules(code: Code) -> None:
    code.put(FILES)
    assert code.edges("src/cart/mod.rs#Cart.total call") == {
        "src/cart/mod.rs#Cart.total call src/cart/item.rs#Item.price type",
        "src/cart/mod.rs#Cart.total call src/store.rs#Store.find type",
        "src/cart/mod.rs#Cart.total call src/store.rs#open import",
    }
    assert code.edges("src/cart/mod.rs#Cart.total ref") >= {
        "src/cart/mod.rs#Cart.total ref src/cart/mod.rs#Cart.items self",
        "src/cart/mod.rs#Cart.total ref src/cart/mod.rs#Cart.LIMIT scope",
        "src/cart/mod.rs#Cart.total ref src/cart/mod.rs#Shape.Round scope",
    }
    assert code.edges("src/lib.rs#run") == {
        "src/lib.rs#run ref src/lib.rs#Draw scope",
        "src/lib.rs#run ref src/cart/mod.rs#Cart import",
        "src/lib.rs#run ref src/store.rs#Lost import",
        "src/lib.rs#run call src/lib.rs#Draw.draw type",
        "src/lib.rs#run call src/lib.rs#Draw.twice type",
        "src/lib.rs#run call src/cart/mod.rs#Cart.new import",
    }
    assert code.edges("src/lib.rs#Draw.twice") == {
        "src/lib.rs#Draw.twice call src/lib.rs#Draw.draw self",
        "src/lib.rs#Draw.twice call src/lib.rs#Named.name self",
    }
    assert code.edges("src/store.rs#open call") == {
        "src/store.rs#open call src/store.rs#Store scope",
        "src/store.rs#open call src/store.rs#Store.find type",
        "src/store.rs#open call src/cart/mod.rs#Cart.total type",
    }
    assert code.edges("src/main.rs#main") == {
        "src/main.rs#main call src/lib.rs#run import",
        "src/main.rs#main ref src/cart/item.rs#Item import",
        "src/main.rs#main call src/cart/item.rs#Item.make import",
    }
    assert ("src/cart/mod.rs#Cart.total", "odd") in sites(code)
    assert not {name for _, name in sites(code)} & {"to_string", "price", "collections", "unwrap"}


def test_traits_are_bases_and_their_members_are_replaced(code: Code) -> None:
    code.put(FILES)
    assert code.edges("src/cart/mod.rs#Cart base") == {
        "src/cart/mod.rs#Cart base src/lib.rs#Draw import",
        "src/cart/mod.rs#Cart base src/lib.rs#Named import",
    }
    assert "src/lib.rs#Draw base src/lib.rs#Named scope" in code.edges()
    assert code.edges("src/cart/mod.rs#Cart.draw over") == {
        "src/cart/mod.rs#Cart.draw over src/lib.rs#Draw.draw super"
    }
    reach = {
        short(item.symbol) for item in code.model().impact(code.model().target("src/cart/item.rs#Item.price"))
    }
    assert {"src/cart/mod.rs#Cart.total", "src/cart/mod.rs#Cart.draw", "src/store.rs#open"} <= reach
    assert {"src/lib.rs#tests.totals", "tests/all.rs#opens"} <= reach


def test_symbols_have_kinds_signatures_and_visibility(code: Code) -> None:
    code.put(FILES)
    found = [item for path in ("src/lib.rs", "src/cart/mod.rs") for item in code.model().symbols(path)]
    assert {item.qual: (item.kind, item.visibility, item.signature) for item in found} == {
        "Draw": ("interface", "public", ""),
        "Draw.SIZE": ("constant", "public", ""),
        "Draw.draw": ("function", "public", "(&self) -> String"),
        "Draw.twice": ("function", "public", "(&self) -> String"),
        "Named": ("interface", "public", ""),
        "Named.name": ("function", "public", "(&self) -> String"),
        "run": ("function", "public", "(d: &D, boxed: Box<dyn Draw>) -> Result<Cart, store::Lost>"),
        "tests": ("class", "private", ""),
        "tests.made": ("function", "private", "() -> Cart"),
        "tests.totals": ("function", "private", "() #[test]"),
        "Shape": ("class", "public", ""),
        "Shape.Round": ("constant", "public", ""),
        "Shape.Flat": ("constant", "public", ""),
        "Shape.None": ("constant", "public", ""),
        "Cart": ("class", "public", ""),
        "Cart.items": ("variable", "private", ""),
        "Cart.store": ("variable", "public", ""),
        "Cart.by": ("variable", "private", ""),
        "Cart.shape": ("variable", "private", ""),
        "Cart.LIMIT": ("constant", "public", ""),
        "Cart.new": ("function", "public", "(n: usize) -> Result<Self, store::Lost>"),
        "Cart.total": ("function", "public", "(&self) -> usize"),
        "Cart.draw": ("function", "public", "(&self) -> String"),
    }


def test_an_impl_may_be_in_another_file_or_module_than_its_type(code: Code) -> None:
    code.put(
        {
            "src/lib.rs": "mod t;\nmod more;\npub trait Say { fn say(&self); }\n",
            "src/t.rs": "pub struct T { name: u8 }\nmod inner;\n"
            "pub fn f(t: &T) { t.a(); t.say(); t.b(); t.name(); }\n"
            "pub mod deep { pub struct T; impl T { pub fn a(&self) {} } }\n",
            "src/t/inner.rs": "use super::T;\nimpl T { pub fn a(&self) -> u8 { self.name } }\n",
            "src/more.rs": "use crate::{t::T, Say};\nimpl Say for T { fn say(&self) {} }\n"
            "mod m { use super::*; impl T { pub fn name(&self) {} } }\n",
        }
    )
    assert code.edges("src/t.rs#f call") == {
        "src/t.rs#f call src/t/inner.rs#T.a type",
        "src/t.rs#f call src/more.rs#T.say type",
        "src/t.rs#f call src/more.rs#m.T.name type",
    }
    assert code.edges("src/t/inner.rs#T.a") == {"src/t/inner.rs#T.a ref src/t.rs#T.name type"}
    assert code.edges("src/more.rs#T.say") == {"src/more.rs#T.say over src/lib.rs#Say.say super"}
    assert ("src/t.rs#f", "b") in sites(code)
    code.put({"src/more.rs": "use crate::t::T;\nimpl T { pub fn b(&self) {} }\n"})
    assert {"src/t.rs#f call src/more.rs#T.b type", "src/t.rs#f call src/t/inner.rs#T.a type"} <= code.edges()
    assert not [edge for edge in code.edges() if "say" in edge]


def test_globs_and_modules_within_a_file_keep_to_themselves(code: Code) -> None:
    code.put(
        {
            "src/lib.rs": """
pub mod a { pub fn f() { g() } pub fn g() {}
  pub mod b { pub fn h() { super::f(); self::k(); crate::z() } fn k() {} } }
pub mod c { pub fn f() { g() } use super::a::*; }
enum E { X, Y(u8) }
fn z() { use a::*; use E::{X, Y as Why}; g(); a::b::h(); let v = X; Why(1); nothing(); }
fn g() {}
""",
        }
    )
    assert code.edges("src/lib.rs#a") == {
        "src/lib.rs#a.f call src/lib.rs#a.g scope",
        "src/lib.rs#a.b.h call src/lib.rs#a.f import",
        "src/lib.rs#a.b.h call src/lib.rs#a.b.k import",
        "src/lib.rs#a.b.h call src/lib.rs#z import",
        "src/lib.rs#a.b.h ref src/lib.rs#a import",
        "src/lib.rs#a.b.h ref src/lib.rs#a.b import",
    }
    assert code.edges("src/lib.rs#c") == {"src/lib.rs#c.f call src/lib.rs#a.g import"}
    assert code.edges("src/lib.rs#z") >= {
        "src/lib.rs#z call src/lib.rs#a.g import",
        "src/lib.rs#z call src/lib.rs#a.b.h scope",
        "src/lib.rs#z ref src/lib.rs#E.X import",
        "src/lib.rs#z call src/lib.rs#E.Y import",
    }
    assert "src/lib.rs#z call src/lib.rs#g scope" not in code.edges("src/lib.rs#z")


def test_names_that_are_bound_again_and_fields_beside_methods(code: Code) -> None:
    code.put(
        {
            "src/lib.rs": """
struct T { name: Option<U>, }
struct U;
impl T { fn name(&self) -> &Option<U> { &self.name } }
impl U { fn go(&self) -> bool { true } }
fn f(t: T, list: &[U], maybe: Option<&U>) {
    let name = t.name();
    let name = name.as_ref().unwrap();
    name.go();
}
fn g(list: &[U], maybe: Option<&U>, (one, _): (U, u8)) {
    if let Some(maybe) = maybe { maybe.go(); }
    for (at, it) in list.iter().enumerate() { it.go(); }
    list.iter().filter(|it| it.go());
    one.go();
    mine!(one.go());
}
fn h(t: T) { let T { name, .. } = t; match name { Some(u) if u.go() => {} None => {} _ => {} } }
""",
        }
    )
    assert code.edges("src/lib.rs#f") == {
        "src/lib.rs#f ref src/lib.rs#T scope",
        "src/lib.rs#f ref src/lib.rs#U scope",
        "src/lib.rs#f call src/lib.rs#T.name~2 type",
        "src/lib.rs#f call src/lib.rs#U.go type",
    }
    assert code.edges("src/lib.rs#g call") == {"src/lib.rs#g call src/lib.rs#U.go type"}
    assert "src/lib.rs#h call src/lib.rs#U.go type" in code.edges()
    assert sites(code) == {("src/lib.rs#g", "mine")}


def test_tests_of_rust_are_those_that_are_marked(code: Code) -> None:
    code.put(FILES)
    model = code.model()
    assert rank.tests(model, model.target("src/lib.rs#run")) == rank.Chosen(
        "static", ("rs:src/lib.rs#tests.totals",)
    )
    assert rank.tests(model, model.target("src/cart/item.rs#Item.price")).tests == (
        "rs:src/lib.rs#tests.totals",
        "rs:tests/all.rs#opens",
    )
    assert not model.is_test("rs:tests/all.rs#test_helper")
    cover = dict(rank.cover(model, "rs:src/cart/mod.rs#Cart.total"))
    assert cover["rs:src/store.rs#open"] == "tested" and "rs:src/lib.rs#tests.totals" not in cover
    assert [row[:2] for row in model.replayed("rs:src/main.rs#main", "rs:src/lib.rs#run")] == [
        ("import", "call")
    ]


def test_what_comes_and_goes_changes_what_a_path_means(code: Code) -> None:
    code.put(
        {
            "core/src/lib.rs": "pub fn f() {}\n",
            "app/src/a.rs": "use the_core::f;\nfn g() { f(); super::h(); }\n",
        }
    )
    assert code.edges() == set()
    code.put({"core/Cargo.toml": '[package]\nname = "the-core"\n', "app/src/main.rs": "mod a;\nfn h() {}\n"})
    assert code.edges() == {
        "app/src/a.rs#g call core/src/lib.rs#f import",
        "app/src/a.rs#g call app/src/main.rs#h import",
    }
    code.put({"core/Cargo.toml": "name = broken", "app/src/main.rs": None, "app/src/lib.rs": "fn h() {}\n"})
    assert code.edges() == {"app/src/a.rs#g call app/src/lib.rs#h import"}
    assert code.model().covers().unparsed == 1


@pytest.mark.parametrize(
    "text",
    [
        "fn (",
        "impl {",
        "fn f() { " + "(" * 9000,
        "use a::{b, c::{",
        "struct S { a: ",
        "fn f() { let Some(x = y; match",
        "fn f() { a" + ".b(" * 900,
        "macro_rules! m { ($a:expr",
        "impl<T> for X { fn f(&self) { Self::",
    ],
)
def test_broken_text_gives_no_exception(code: Code, text: str) -> None:
    code.put({"src/a.rs": text, "src/b.rs": "fn g() {\r\n    h();\r\n}\r\nfn h() {}\r\n"})
    model = code.model()
    assert model.covers().unparsed == 1
    assert "src/b.rs#g call src/b.rs#h scope" in code.edges()


def test_deep_and_long_macros_are_walked_without_recursion(code: Code) -> None:
    deep = "m!" + "(" * 4000 + "g()" + ")" * 4000
    chain = "x" + ".b()" * 4000
    code.put({"a.rs": f"fn f() {{ {deep}; {chain}; }}\nfn g() {{}}\nfn k() {{ g() }}\n"})
    assert "a.rs#k call a.rs#g scope" in code.edges()
