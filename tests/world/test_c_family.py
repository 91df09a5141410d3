"""C, C++ and CUDA: symbols, calls through includes, definitions of prototypes, and what stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from world_kit import Code, in_process, short

HEADER = """\
#define LIMIT 8
typedef struct { int rows; } shape;
int area(shape *s);
int lost(void);
static inline int half(int x) { return x / 2; }
"""
SOURCE = """\
#include "shape.h"
static int twice(int x) { return x * LIMIT; }
int area(shape *s) { int lost = s->rows; return twice(lost); }
"""
USER = """\
#include <lib/shape.h>
extern int spare;
int run(void) { shape s; spare = half(1); return area(&s) + lost(); }
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Code:
    in_process(monkeypatch)
    return Code(tmp_path)


def sites(code: Code) -> set[tuple[str, str]]:
    rows = code.model().store.rows("SELECT text, site.name FROM site JOIN name ON name.id = caller")
    return {(short(caller), name) for caller, name in rows}


def symbols(code: Code, path: str) -> list[str]:
    return [f"{item.kind} {item.qual}{item.signature}" for item in code.model().symbols(path)]


def test_calls_lead_through_includes_to_definitions(code: Code) -> None:
    code.put({"include/lib/shape.h": HEADER, "src/shape.c": SOURCE.replace("shape.h", "lib/shape.h")})
    code.put({"app/main.c": USER})
    assert code.edges() == {
        "include/lib/shape.h#area ref include/lib/shape.h#shape scope",
        "include/lib/shape.h#area def src/shape.c#area import",
        "src/shape.c#twice ref include/lib/shape.h#LIMIT import",
        "src/shape.c#area ref include/lib/shape.h#shape import",
        "src/shape.c#area call src/shape.c#twice scope",
        "app/main.c#run ref include/lib/shape.h#shape import",
        "app/main.c#run ref app/main.c#spare scope",
        "app/main.c#run call include/lib/shape.h#half import",
        "app/main.c#run call include/lib/shape.h#area import",
        "app/main.c#run call include/lib/shape.h#lost import",
    }
    reach = {short(item.symbol) for item in code.model().impact(code.model().target("src/shape.c#twice"))}
    assert reach == {"src/shape.c#area", "include/lib/shape.h#area", "app/main.c#run"}
    assert sites(code) == {("include/lib/shape.h#lost", "lost")}


def test_an_include_that_comes_or_a_definition_that_goes_changes_the_links(code: Code) -> None:
    code.put({"a.c": '#include "shape.h"\nint f(void) { return half(2); }\n'})
    assert code.edges("a.c#f") == set()
    code.put({"shape.h": HEADER, "shape.c": SOURCE})
    assert code.edges("a.c#f") == {"a.c#f call shape.h#half import"}
    assert code.edges("shape.h#area def") == {"shape.h#area def shape.c#area import"}
    code.put({"shape.c": None})
    assert code.edges("shape.h#area def") == set()


def test_symbols_have_kinds_signatures_and_visibility(code: Code) -> None:
    code.put(
        {"shape.h": HEADER, "shape.c": SOURCE, "e.c": "enum color { RED, BLUE = 3 };\nunion u { int a; };\n"}
    )
    assert symbols(code, "shape.h") == [
        "constant LIMIT",
        "class shape",
        "variable shape.rows",
        "function area(shape *s)",
        "function lost(void)",
        "function half(int x)",
    ]
    assert symbols(code, "e.c") == ["constant BLUE", "constant RED", "class color", "class u", "variable u.a"]
    seen = {item.qual: item.visibility for item in code.model().symbols("shape.c")}
    assert seen == {"twice": "private", "area": "public"}


def test_methods_see_their_class_and_what_is_called_through_objects_stays_unknown(code: Code) -> None:
    code.put(
        {
            "a.hpp": "namespace n { class A { public: int f() const; int g() { return f(); } ~A(); }; }\n",
            "a.cpp": '#include "a.hpp"\nint n::A::f() const { other.g(); return free_one(); }\n',
        }
    )
    assert code.edges("a.hpp#A.g call") == {"a.hpp#A.g call a.hpp#A.f scope"}
    assert code.edges("a.hpp#A.f def") == {"a.hpp#A.f def a.cpp#A.f import"}
    assert {("a.cpp#A.f", "g"), ("a.cpp#A.f", "free_one")} <= sites(code)


def test_a_kernel_is_called_by_its_launch(code: Code) -> None:
    code.put({"k.cu": "__global__ void k(float *a) { a[0] = 1; }\nvoid run(float *a) { k<<<1, 2>>>(a); }\n"})
    assert code.edges() == {"k.cu#run call k.cu#k scope"}


@pytest.mark.parametrize(
    "text",
    [
        "int f( {",
        "struct { struct { int",
        "((((" * 3000,
        "template <",
        "#include",
        "x::y::~z::operator",
        "f<" * 500,
    ],
)
@pytest.mark.parametrize("name", ["a.c", "a.cpp", "a.cu"])
def test_broken_text_gives_no_exception(code: Code, name: str, text: str) -> None:
    code.put({name: text})
    code.model()
    assert code.model().covers().unparsed == 1
