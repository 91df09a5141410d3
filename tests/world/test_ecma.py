"""JavaScript and TypeScript: symbols, names through imports, members of classes, and what stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from spak.world import rank
from world_kit import Code, in_process, short


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Code:
    in_process(monkeypatch)
    return Code(tmp_path)


LIB = """\
export function rate(a, { b, c: d } = {}) { return low(a); }
const low = (x) => x + LIMIT;
export const LIMIT = 3;
export default class Shop { price() { return this.tax() + rate(1); } tax() { return 2; } }
export function unused() {}
"""


def test_names_lead_through_imports(code: Code) -> None:
    code.put(
        {"lib/index.js": LIB, "again.js": "export { rate as cost } from './lib';\nexport * from './lib';\n"}
    )
    code.put(
        {
            "app.ts": "import Shop, { rate } from './lib';\nimport * as all from './again.js';\n"
            "export function run(shop: Shop) {\n  const mine = new Shop();\n"
            "  rate(1); all.cost(2); all.rate(3); shop.price(); mine.tax();\n"
            "  rate(shop.odd()); other.far();\n}\n",
            "old.cjs": "const lib = require('./lib');\nconst { rate: r } = require('./lib');\n"
            "module.exports = function () {};\nfunction f() { lib.unused(); r(1); }\n",
        }
    )
    assert code.edges("app.ts#run") == {
        "app.ts#run ref lib/index.js#Shop import",
        "app.ts#run call lib/index.js#Shop import",
        "app.ts#run call lib/index.js#rate import",
        "app.ts#run call lib/index.js#Shop.price type",
        "app.ts#run call lib/index.js#Shop.tax type",
    }
    assert code.edges("old.cjs#f") == {
        "old.cjs#f call lib/index.js#unused import",
        "old.cjs#f call lib/index.js#rate import",
    }
    assert code.edges("lib/index.js#rate") == {"lib/index.js#rate call lib/index.js#low scope"}
    assert code.edges("lib/index.js#low") == {"lib/index.js#low ref lib/index.js#LIMIT scope"}
    assert "lib/index.js#Shop.price call lib/index.js#Shop.tax scope" in code.edges()
    rows = code.model().store.rows("SELECT text, site.name FROM site JOIN name ON name.id = caller")
    assert {(short(one), name) for one, name in rows} >= {("app.ts#run", "odd"), ("app.ts#run", "far")}


def test_members_come_from_bases_and_replace_theirs(code: Code) -> None:
    code.put(
        {
            "base.ts": "export interface Sized { size(): number }\n"
            "export class Base implements Sized { size() { return 1; } more() {} }\n",
            "more.tsx": "import { Base } from './base';\n"
            "export class More extends Base { size() { return super.size() + this.more(); } }\n"
            "export const View = (p) => <Base of={p}/>;\n",
        }
    )
    found = code.edges("more.tsx#More.size")
    assert "more.tsx#More.size call base.ts#Base.size super" in found
    assert "more.tsx#More.size over base.ts#Base.size super" in found
    assert any("call base.ts#Base.more" in edge for edge in found)
    assert code.edges("more.tsx#View") == {"more.tsx#View ref base.ts#Base import"}
    assert code.edges("more.tsx#More base") == {"more.tsx#More base base.ts#Base import"}


def test_symbols_have_kinds_signatures_and_visibility(code: Code) -> None:
    code.put(
        {
            "a.ts": "export const f = (x: number): string => g(x);\nconst MAX = 1, { a, b: [c] } = f(2);\n"
            "class K { private n = 3; #h() {} get v() { return 1; } }\ntype T = K | string;\nenum E { A }\n"
            "interface I { m(): void }\n"
        }
    )
    shown = {item.qual: (item.kind, item.visibility, item.signature) for item in code.model().symbols("a.ts")}
    assert shown == {
        "f": ("function", "public", "(x: number): string"),
        "MAX": ("constant", "public", ""),
        "a": ("variable", "public", ""),
        "c": ("variable", "public", ""),
        "K": ("class", "public", ""),
        "K.n": ("variable", "private", ""),
        "K.#h": ("function", "private", "()"),
        "K.v": ("function", "public", "()"),
        "T": ("class", "public", ""),
        "E": ("class", "public", ""),
        "I": ("interface", "public", ""),
        "I.m": ("function", "public", "(): void"),
    }


def test_a_file_of_tests_is_one_test(code: Code) -> None:
    code.put(
        {"lib/index.js": LIB, "rate.test.js": "import { rate } from './lib';\ntest('it', () => rate(1));\n"}
    )
    model = code.model()
    assert rank.tests(model, model.target("low")) == rank.Chosen("static", ("js:rate.test.js",))
    assert rank.node("js:rate.test.js") == "rate.test.js"
    assert rank.cover(model, "js:lib/index.js#low") == [
        ("js:lib/index.js#Shop.price", "untested"),
        ("js:lib/index.js#rate", "tested"),
    ]


def test_a_file_that_comes_changes_what_an_import_means(code: Code) -> None:
    code.put({"a.js": "import { f } from './b';\nexport function g() { f(); }\n"})
    assert code.edges() == set()
    code.put({"b.ts": "export function f() {}\n"})
    assert code.edges() == {"a.js#g call b.ts#f import"}
    code.put({"b.ts": None})
    assert code.edges() == set()


@pytest.mark.parametrize(
    "text",
    [
        "function (",
        "class {",
        "((((" * 3000,
        "import {",
        "export * from",
        "const {",
        "a.b." * 900,
        "`${" * 800,
    ],
)
@pytest.mark.parametrize("name", ["a.js", "a.ts", "a.tsx"])
def test_broken_text_gives_no_exception(code: Code, name: str, text: str) -> None:
    code.put({name: text})
    assert code.model().covers().unparsed == 1
