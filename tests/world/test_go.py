"""Go: packages are folders, imports by `go.mod`, methods by receiver, declared types, what stays unknown."""

from __future__ import annotations

import pytest

from spak.world import rank
from spak.world.ask import Reach
from world_kit import Code, short

MOD = "// of the shop\nmodule example.com/shop/v2 // main\n\ngo 1.22\n"
CART = """\
package cart

import (
	"fmt"
	"example.com/shop/v2/go-store"
	kv "example.com/shop/v2/kv"
)

const Limit, low = 3, 1

var shared = New()
var _ Payer = (*Cart)(nil)

type Payer interface {
	Pay(n int) error
	total() int
}

type Base struct{ ID string }

func (b *Base) Name() string { return b.ID }

type Cart struct {
	Base
	store *store.Store
	items []*Item
	byKey map[string]Item
}

func New() *Cart { return &Cart{items: nil, Base: Base{ID: "x"}} }

func (c *Cart) Pay(n int) error {
	item, err := c.store.Find("a")
	if err != nil {
		return fmt.Errorf("%d", c.total())
	}
	item.Touch()
	for _, one := range c.items {
		one.Touch()
	}
	for key, one := range c.byKey {
		one.Touch()
		key.Far()
	}
	made := kv.Make[int](Limit)
	made.Put(c.Name())
	other.Odd()
	return nil
}

func (c *Cart) total() int { return helper(len(c.items)) }
"""
ITEM = """\
package cart

type Item struct{ hits int }

func (i *Item) Touch() { i.hits++ }

func helper(n int) int { return n }
"""
STORE = """\
package store

import "example.com/shop/v2/cart"

type Store struct{}

func (s Store) Find(key string) (*cart.Item, error) { return nil, nil }
"""
KV = "package kv\ntype Map[K any] struct{}\nfunc Make[K any](n int) *Map[K] { return nil }\n"
KV += "func (m *Map[K]) Put(s string) {}\n"
FILES: dict[str, str | bytes | None] = {
    "go.mod": MOD,
    "cart/cart.go": CART,
    "cart/item.go": ITEM,
    "go-store/store.go": STORE,
    "kv/kv.go": KV,
}


def sites(code: Code) -> set[tuple[str, str]]:
    rows = code.model().store.rows("SELECT text, site.name FROM site JOIN name ON name.id = caller")
    return {(short(caller), name) for caller, name in rows}


def test_calls_lead_through_packages_receivers_and_declared_types(code: Code) -> None:
    code.put(FILES)
    assert code.edges("cart/cart.go#Cart.Pay") == {
        "cart/cart.go#Cart.Pay over cart/cart.go#Payer.Pay super",
        "cart/cart.go#Cart.Pay over cart/cart.go#Payer.Pay type",
        "cart/cart.go#Cart.Pay ref cart/cart.go#Cart scope",
        "cart/cart.go#Cart.Pay ref cart/cart.go#Cart.store self",
        "cart/cart.go#Cart.Pay call go-store/store.go#Store.Find type",
        "cart/cart.go#Cart.Pay call cart/cart.go#Cart.total self",
        "cart/cart.go#Cart.Pay call cart/item.go#Item.Touch type",
        "cart/cart.go#Cart.Pay ref cart/cart.go#Cart.items self",
        "cart/cart.go#Cart.Pay ref cart/cart.go#Cart.byKey self",
        "cart/cart.go#Cart.Pay call kv/kv.go#Make import",
        "cart/cart.go#Cart.Pay ref cart/cart.go#Limit scope",
        "cart/cart.go#Cart.Pay call kv/kv.go#Map.Put type",
        "cart/cart.go#Cart.Pay call cart/cart.go#Base.Name self",
    }
    assert code.edges("cart/cart.go#New") == {
        "cart/cart.go#New ref cart/cart.go#Cart scope",
        "cart/cart.go#New call cart/cart.go#Cart scope",
        "cart/cart.go#New call cart/cart.go#Base scope",
        "cart/cart.go#New ref cart/cart.go#Cart.items type",
        "cart/cart.go#New ref cart/cart.go#Cart.Base type",
        "cart/cart.go#New ref cart/cart.go#Base.ID type",
    }
    assert code.edges("cart/cart.go#shared") == {"cart/cart.go#shared call cart/cart.go#New scope"}
    assert code.edges("cart/cart.go#Cart.total call") == {
        "cart/cart.go#Cart.total call cart/item.go#helper scope"
    }
    assert {("cart/cart.go#Cart.Pay", "Far"), ("cart/cart.go#Cart.Pay", "Odd")} <= sites(code)
    assert ("cart/cart.go#Payer.Pay", "Pay") in sites(code)  # other types may have it without saying so
    assert not {name for _, name in sites(code)} & {"Errorf", "Touch", "Find"}


def test_symbols_have_kinds_signatures_and_visibility(code: Code) -> None:
    code.put(FILES)
    found = [item for path in ("cart/cart.go", "cart/item.go") for item in code.model().symbols(path)]
    shown = {item.qual: (item.kind, item.visibility, item.signature) for item in found}
    assert shown == {
        "Limit": ("constant", "public", ""),
        "low": ("constant", "private", ""),
        "shared": ("variable", "private", ""),
        "Payer": ("interface", "public", ""),
        "Payer.Pay": ("function", "public", "(n int) error"),
        "Payer.total": ("function", "private", "() int"),
        "Base": ("class", "public", ""),
        "Base.ID": ("variable", "public", ""),
        "Base.Name": ("function", "public", "() string"),
        "Cart": ("class", "public", ""),
        "Cart.Base": ("variable", "public", ""),
        "Cart.store": ("variable", "private", ""),
        "Cart.items": ("variable", "private", ""),
        "Cart.byKey": ("variable", "private", ""),
        "New": ("function", "public", "() *Cart"),
        "Cart.Pay": ("function", "public", "(n int) error"),
        "Cart.total": ("function", "private", "() int"),
        "Item": ("class", "public", ""),
        "Item.hits": ("variable", "private", ""),
        "Item.Touch": ("function", "public", "()"),
        "helper": ("function", "private", "(n int) int"),
    }
    assert code.edges("cart/cart.go#Cart base") == {
        "cart/cart.go#Cart base cart/cart.go#Base scope",
        "cart/cart.go#Cart base cart/cart.go#Payer scope",
    }


def test_a_method_may_be_in_another_file_than_its_type(code: Code) -> None:
    code.put(
        {
            "a.go": "package p\ntype T struct{}\ntype I interface{ M(); N() }\n"
            "func f(t T, i I) { t.M(); i.N() }\n",
            "b.go": "package p\nfunc (t *T) M() { t.N() }\nfunc (t T) N() {}\n",
            "c.go": "package main\nfunc M() {}\nfunc g() { T{}.N() }\n",
        }
    )
    assert code.edges("a.go#f") == {
        "a.go#f ref a.go#T scope",
        "a.go#f ref a.go#I scope",
        "a.go#f call b.go#T.M type",
        "a.go#f call a.go#I.N type",
    }
    assert code.edges("b.go#T.M") == {
        "b.go#T.M ref a.go#T scope",
        "b.go#T.M call b.go#T.N type",
        "b.go#T.M over a.go#I.M type",
    }
    assert code.edges("c.go") == set()  # of another package, in the same folder
    reach = code.model().impact(code.model().target("b.go#T.N"))
    assert {short(item.symbol) for item in reach} == {"b.go#T.M", "a.go#f"}
    code.put({"a.go": "package p\ntype T struct{}\ntype I interface{ M(); N(); O() }\n"})
    assert not [edge for edge in code.edges() if " over " in edge]


def test_local_names_are_those_of_the_function(code: Code) -> None:
    code.put(
        {
            "go.mod": "module m\n",
            "p/p.go": "package p\ntype P struct{}\nfunc New() *P { return nil }\n"
            "func (p *P) Next() *P { return p }\nfunc (p *P) Val() (Q, error) { return Q{}, nil }\n"
            "type Q struct{ N int }\nfunc (Q) Do() {}\n",
            "a.go": """package main
import "m/p"
func f(x interface{}, more ...p.Q) {
	it := p.New()
	it = it.Next()
	q, _ := it.Val()
	q.Do()
	more[0].Do()
	switch y := x.(type) {
	case *p.Q:
		y.Do()
	}
	run := func(z p.Q) { z.Do() }
	run(make([]p.Q, 1)[0])
	ch := make(chan p.Q)
	(<-ch).Do()
	defer new(p.Q).Do()
loop:
	for { break loop }
}
func g() {
	p := p.New()
	p.Next()
}
""",
        }
    )
    assert code.edges("a.go#f") == {
        "a.go#f call p/p.go#New import",
        "a.go#f call p/p.go#P.Next type",
        "a.go#f call p/p.go#P.Val type",
        "a.go#f call p/p.go#Q.Do type",
        "a.go#f ref p/p.go#Q import",
        "a.go#f call p/p.go#Q import",
    }
    assert code.edges("a.go#g") == {"a.go#g call p/p.go#New import", "a.go#g call p/p.go#P.Next type"}
    assert sites(code) == set()


def test_tests_of_go_are_selected_and_explained(code: Code) -> None:
    code.put(FILES)
    code.put(
        {
            "cart/cart_test.go": "package cart\nfunc TestPay(t *testing.T) { New().Pay(1) }\n"
            "func helperOfTests() {}\nfunc BenchmarkPay(b *testing.B) { helperOfTests() }\n",
            "cart/out_test.go": 'package cart_test\nimport "example.com/shop/v2/cart"\n'
            "func ExampleNew() { cart.New() }\n",
        }
    )
    model = code.model()
    chosen = rank.tests(model, model.target("Item.Touch"))
    both = ("go:cart/cart_test.go#TestPay", "go:cart/out_test.go#ExampleNew")
    assert chosen == rank.Chosen("static", both)
    assert rank.tests(model, model.target("cart/cart.go#Cart.Pay")).tests == both  # with its class
    assert rank.tests(model, model.target("go-store/store.go#Store")).tests == both[:1]
    assert model.is_test("go:cart/cart_test.go#BenchmarkPay")
    assert not model.is_test("go:cart/cart_test.go#helperOfTests")
    assert model.replayed("go:cart/cart.go#Cart.Pay", "go:cart/item.go#Item.Touch") == [
        ("type", "call", (37, 39, 42))
    ]
    first = model.impact(model.target("helper"))[0]
    assert first == Reach("go:cart/cart.go#Cart.total", 51, "scope", "go:cart/item.go#helper")


def test_what_comes_and_goes_changes_what_a_name_means(code: Code) -> None:
    code.put({"a/a.go": 'package a\nimport "m/b"\nfunc f() { g(); b.H() }\n'})
    assert code.edges() == set()
    code.put(
        {"go.mod": "module m\n", "a/c.go": "package a\nfunc g() {}\n", "b/b.go": "package b\nfunc H() {}\n"}
    )
    assert code.edges() == {"a/a.go#f call a/c.go#g scope", "a/a.go#f call b/b.go#H import"}
    code.put({"go.mod": "module n\n", "a/c.go": "package z\nfunc g() {}\n"})
    assert code.edges() == set()
    code.put({"go.mod": "module m/b\n", "b/b.go": None, "b.go": "package b\nfunc H() {}\n"})
    assert code.edges() == {"a/a.go#f call b.go#H import"}


def test_vendored_and_generated_packages_are_known_by_name(code: Code) -> None:
    code.put({"go.mod": "module m\n", "vendor/x/x.go": "package x\nfunc F() {}\n", "a.go": "package a\n"})
    code.put({"g.go": "// Code generated by stringer. DO NOT EDIT.\npackage a\nfunc G() {}\n"})
    model = code.model()
    assert model.symbols() == [] and model.covers().unknown == 2


@pytest.mark.parametrize(
    "text",
    [
        "func (",
        "package p\nfunc f( {",
        "package p\nvar x = " + "(" * 9000,
        "package p\ntype T struct { A, ",
        "package p\nfunc f() { x := y[",
        "package p\nfunc (t *) m() { new() }",
        "package p\nimport (",
        "package p\nfunc f() { a" + ".b(" * 900,
    ],
)
def test_broken_text_gives_no_exception(code: Code, text: str) -> None:
    code.put({"a.go": text, "b.go": "package p\r\n\r\nfunc g() {\r\n\th()\r\n}\r\nfunc h() {}\r\n"})
    model = code.model()
    assert model.covers().unparsed == 1
    assert "b.go#g call b.go#h scope" in code.edges()
