"""The index is brought up to date by what changed alone, and is then as a fresh one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spak.errors import UsageError
from spak.world.ask import Model
from spak.world.store import Store
from world_kit import Code, in_process

TEXTS = [
    "",
    "def f():\n    return 1\n",
    "def f():\n    return g()\n\ndef g():\n    return C()\n\nclass C:\n"
    "    def m(self):\n        return self.n()\n    def n(self): ...\n",
    "from a import f\nfrom .b import C\n\ndef g(x: C):\n    return f().m() or x.n()\n",
    "from b import *\n\nclass D(C):\n    def m(self) -> 'D':\n        return super().m()\n\n"
    "def h(d: D):\n    d.m().n()\n",
    "import a, p.c\nimport p.b as b\n\ndef h():\n    a.g()\n    b.C().m()\n    p.c.f()\n",
    "from .c import g as f\n__all__ = ['f']\n",
    "from . import a, b\nfrom .a import *\n\ndef f(x):\n    x.m(); a.f(); b.g().n()\n",
    "class C:\n    def n(self): ...\n    @property\n    def q(self) -> 'C': ...\n\n"
    "f = C()\n\ndef g():\n    f.q.n()\n",
    "def f(:\n    g(\nclass C\n    def m(self): return f()\n",
    "import x, { f } from './b';\nexport * from './p/b';\nexport function g() { x.m(); return f(); }\n",
    "export class C { m() { this.n(); } n() {} }\nexport default new C();\nexport const f = () => C;\n",
    '#include "c.h"\nint f(void) { return g(); }\n',
    '#include "p/c.h"\nint f(void);\nstatic int g(void) { return f(); }\n',
    "module m\n",
    'package p\nimport "m/p"\ntype T struct{ I }\n'
    "func f(t T) { g(); p.G(); t.M(); t.N() }\nfunc (t T) N() {}\n",
    "package p\ntype I interface{ M() }\nfunc g() {}\nfunc G() { f(T{}) }\nfunc (t *T) M() { t.N() }\n",
    'package q\nimport . "m"\nfunc G() { f(T{}); g() }\n',
    '[package]\nname = "b"\n',
    "mod a;\nuse a::*;\npub trait D { fn m(&self) { self.n() } fn n(&self); }\n"
    "fn f(t: T) { t.m(); a::g() }\n",
    "use crate::*;\npub struct T;\nimpl D for T { fn n(&self) { super::f(T) } }\npub fn g() { b::f(T) }\n",
    "use crate::a::T;\nimpl T { pub fn m(&self) {} }\nmod x { use super::*; fn g(t: T) { t.m() } }\n",
]
PATHS = [
    *("a.py", "b.py", "p/__init__.py", "p/a.py", "p/b.py", "p/c.py", "q/a.py", "a.pyi"),
    *("c.c", "c.h", "p/c.h", "p/c.c", "a.js", "b.ts", "p/b/index.js"),
    *(
        "go.mod",
        "a.go",
        "b.go",
        "p/a.go",
        "p/b_test.go",
        "Cargo.toml",
        "src/lib.rs",
        "src/a.rs",
        "src/a/mod.rs",
    ),
    *("src/a/b.rs", "tests/t.rs"),
]


def test_only_what_changed_is_read_and_only_what_depends_on_it_is_linked(code: Code) -> None:
    code.put({"a.py": TEXTS[2], "b.py": "from a import f\n\ndef h():\n    f()\n", "q/a.py": TEXTS[1]})
    first = code.update()
    assert (first.files, first.read, first.parsed, first.linked) == (3, 3, 3, 3)
    code.put({"a.py": TEXTS[2].replace("return g()", "x = 1\n    return g()")})
    body = code.update()
    assert (body.parsed, body.linked) == (1, 1)  # no other file sees what is inside of a function
    code.put({"a.py": TEXTS[1]})
    assert code.update().linked == 2
    code.put({"q/a.py": TEXTS[2]})
    assert code.update().parsed == 0  # these bytes were seen before


def test_a_change_that_keeps_size_and_times_to_the_second_is_seen(code: Code) -> None:
    code.put({"a.py": "def f(): ...\n"})
    code.update()
    before = (code.root / "a.py").stat()
    code.put({"a.py": "def g(): ...\n"})
    os.utime(code.root / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [symbol.qual for symbol in code.model().symbols()] == ["g"]


def test_files_that_come_and_go_change_what_imports_mean(code: Code) -> None:
    code.put({"x.py": "from lib import f\n\ndef g():\n    f()\n"})
    assert code.edges("x.py") == set()
    code.put({"lib.py": "def f(): ...\n"})
    assert code.edges("x.py") == {"x.py#g call lib.py#f import"}
    code.put({"lib.py": None})
    assert code.edges("x.py") == set()


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from([None, *TEXTS])), min_size=1, max_size=3),
        max_size=5,
    )
)
def test_after_any_edits_the_facts_are_those_of_a_fresh_index(
    steps: list[list[tuple[str, str | None]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        in_process(patch)
        code = Code(Path(folder))
        for edits in steps:
            code.put({path: text for path, text in edits if text is not None or (code.root / path).exists()})
            code.update()
        kept = code.store
        code.store = Store(Path(folder) / "fresh.sqlite")
        code.update()
        fresh = code.facts()
        code.store.close()
        code.store = kept
        code.update()
        assert code.facts() == fresh
        kept.close()


def test_a_damaged_or_older_store_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process(monkeypatch)
    code = Code(tmp_path)
    code.put({"a.py": TEXTS[1]})
    code.update()
    code.store.close()
    (tmp_path / "world.sqlite").write_bytes(b"no database, but long enough to be taken for one" * 100)
    code.store = Store(tmp_path / "world.sqlite")
    assert code.update().parsed == 1
    code.store.db.execute("PRAGMA user_version = 1")
    code.store.close()
    code.store = Store(tmp_path / "world.sqlite")
    assert code.update().parsed == 1
    code.store.close()


def test_a_store_that_cannot_be_made_and_a_folder_without_index_are_named(code: Code, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as no_store:
        Store(tmp_path / "file" / "world.sqlite")
    with pytest.raises(UsageError) as missing:
        Model(code.store, tmp_path)
    assert (no_store.value.code, missing.value.code) == ("world.store", "world.missing")
