"""`cc` by its compilers: C and C++, gcc and clang, what is missing, and what an object says of its making."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import needs
from spak.diagnostics import read
from spak.tools.cc import INSTALL
from spak.validators import cpu_symbols

pytestmark = pytest.mark.sandbox

C = "int f(int x) { return x + 1; }\n"
CPP = '#include <vector>\nextern "C" int f(int n) { std::vector<int> v(n, 1); return v.back(); }\n'
COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}
"""The programs of each."""


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest) -> str:
    """Each compiler in turn."""
    for name in COMPILERS[request.param]:
        needs.program(name, INSTALL[name].split()[2])
    return str(request.param)


def codes(result: Any) -> list[str]:
    return [item["code"] for item in result.diagnostics]


@pytest.mark.parametrize(("lang", "text"), [("c", C), ("c++", CPP)])
def test_an_object_holds_its_compiler_and_flags(
    do: Any, workspace: Path, compiler: str, lang: str, text: str
) -> None:
    (workspace / "k").write_text(text)
    result = do("cc", source="k", output="k.so", lang=lang, compiler=compiler, flags=["-O3", "-ffast-math"])
    assert result.exit == 0, result.output
    binary = (workspace / "k.so").read_bytes()
    found = cpu_symbols.built(binary)
    assert compiler in found.compiler.lower().replace("gcc: ", "gcc ")
    assert found.fast_math == "-ffast-math" and "-O3" in found.flags
    assert cpu_symbols.forbidden(binary) == ()


def test_each_says_what_is_wrong_where(do: Any, workspace: Path, compiler: str) -> None:
    (workspace / "f.c").write_text("int g(void);\nint f(void) {\n  return nothing;\n}\n")
    result = do("cc", source="f.c", compiler=compiler)
    error = next(item for item in result.diagnostics if item["severity"] == "error")
    assert (error["code"], error["file"], error["line"]) == ("error", "f.c", 3)
    assert "nothing" in error["message"] and b"f.c:3:" in result.output
    (workspace / "f.c").write_text("int g(void);\nint main(void) { return g(); }\n")
    result = do("cc", source="f.c", compiler=compiler, shared=False)
    assert result.exit == 1 and "link" in codes(result)


@pytest.mark.parametrize(
    ("args", "without", "program", "hint"),
    [
        ({"compiler": "gcc"}, "gcc", "gcc", "apt-get install gcc"),
        ({"lang": "c++"}, "g++", "g++", "apt-get install g++"),
        ({"compiler": "clang"}, "clang", "clang", "apt-get install clang"),
        ({"compiler": "clang", "lang": "c++"}, "clang++", "clang++", "apt-get install clang"),
    ],
)
def test_a_compiler_that_is_missing_is_named(
    do: Any, workspace: Path, args: dict[str, Any], without: str, program: str, hint: str
) -> None:
    (workspace / "f.c").write_text(C)
    result = do("cc", source="f.c", without=without, **args)
    assert codes(result) == ["cc.missing"] and result.exit != 0
    assert f"no {program}\n" in result.output.decode() or f"no {program}" in result.diagnostics[0]["message"]
    assert hint in result.output.decode()


def test_the_compiler_of_a_point_of_the_space(do: Any, workspace: Path) -> None:
    (workspace / "t.c").write_text(C)
    params = {"COMPILER": "clang", "FLAGS_O": "-O2", "FLAGS_STD": "-std=c11", "TILE": 4}
    assert do("instantiate", template="t.c", path="k.c", params=params).exit == 0
    assert (workspace / "k.c").read_text() == (
        f"// spak-flags: -O2 -std=c11\n// spak-compiler: clang\n#define TILE 4\n{C}"
    )
    assert codes(do("cc", source="k.c", flags_from_source=True, without="clang")) == ["cc.missing"]
    (workspace / "k.c").write_text(f"// spak-compiler: /bin/sh\n{C}")
    assert codes(do("cc", source="k.c", flags_from_source=True)) == ["cc.compiler"]
    assert do("cc", source="k.c").exit == 0  # the line is read where it is asked for


def test_a_point_of_a_python_template(do: Any, workspace: Path) -> None:
    (workspace / "t.py").write_text("def f():\n    return BLOCK, KIND\n")
    params = {"BLOCK": 64, "KIND": "ROWS", "FAST": True, "SCALE": 0.5}
    assert do("instantiate", template="t.py", path="k.py", params=params).exit == 0
    names: dict[str, Any] = {}
    exec((workspace / "k.py").read_text(), names)
    assert names["f"]() == (64, "ROWS") and (names["FAST"], names["SCALE"]) == (True, 0.5)
    for more in ({"FLAGS": "-O3"}, {"COMPILER": "gcc"}):
        assert codes(do("instantiate", template="t.py", path="k.py", params=more)) == ["instantiate.flag"]


def test_what_clang_prints_is_read() -> None:
    printed = (
        b"./f.c:3:10: error: use of undeclared identifier 'nothing'\n"
        b"/ws/a/g.c:7:1: warning: unused variable 'x' [-Wunused-variable]\n"
        b"./f.c:1:5: note: 'g' declared here\n"
        b"clang: error: unsupported option '-mno-such'\n"
        b"/usr/bin/ld: /tmp/f-1.o: in function `main':\nf.c:(.text+0x5): undefined reference to `g'\n"
        b"clang: error: linker command failed with exit code 1 (use -v to see invocation)\n"
        b"2 errors generated.\n"
    )
    items = read("gcc", b"", printed) or []
    found = [(item["severity"], item["code"], item["file"], item["line"]) for item in items]
    assert found == [
        ("error", "error", "f.c", 3),
        ("warning", "-Wunused-variable", "a/g.c", 7),
        ("info", "note", "f.c", 1),
        ("error", "option", "", 0),
        ("error", "option", "", 0),
        ("error", "link", "", 0),
    ]


@pytest.mark.parametrize(
    "flag", ["-mllvm", "-fpass-plugin=x.so", "-ftime-trace=x", "-fno-record-gcc-switches"]
)
def test_flags_of_clang_that_load_or_hide_are_refused(do: Any, workspace: Path, flag: str) -> None:
    (workspace / "f.c").write_text(C)
    assert codes(do("cc", source="f.c", flags=[flag])) == ["cc.flag"]
