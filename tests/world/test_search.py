"""Patterns find code by its form, in every language, and bad ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from spak.errors import UsageError
from spak.world.languages import language_of
from spak.world.search import search


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("name", "pattern", "text", "lines"),
    [
        ("a.py", "try: $$$A except: $$$B", "try:\n    a()\n\n    b()\nexcept :\n    pass\n"
         "try: c()\nexcept E: d()\n", [(1, 6)]),
        ("a.go", "func $NAME($ARGS) error", "package p\nfunc F( a int )  error {\n\treturn nil\n}\n"
         "func G() {}\n", [(2, 4)]),
        ("a.js", "try { $$$A } catch { $$$B }", "try {\n  a()\n} catch\n{ b() }\n", [(1, 4)]),
        ("a.jsx", "try { $$$A } catch ($E) { $$$B }", "try\n{ a(  ) }\n  catch( e )\n{ b() ;\n c() }\n",
         [(1, 5)]),
        ("a.ts", "let $A: string = $B", "let  x : string =\n 'a';\nlet y = 2\n", [(1, 2)]),
        ("a.rs", "$A.unwrap()", "fn f() {\n  g(1)\n    .unwrap();\n}\n", [(2, 3)]),
        ("a.c", "memcpy($$$A)", "void f() {\n  memcpy(a,\n b, 3);\n}\n", [(2, 3)]),
        ("a.cu", "std::move($A)", "__global__ void k() { auto x = std::move( y ); }\n", [(1, 1)]),
    ],
    ids=["python", "go", "javascript", "catch-name", "typescript", "rust", "c", "cuda"],
)  # fmt: skip
def test_a_pattern_finds_code_however_it_is_laid_out(
    tmp_path: Path, name: str, pattern: str, text: str, lines: list[tuple[int, int]]
) -> None:
    put(tmp_path, {f"src/{name}": text})
    found = search(tmp_path, pattern, language_of(name))
    assert [(match.line, match.end) for match in found.matches] == lines
    assert found.matches[0].path == f"src/{name}"


def test_variables_have_their_text_and_the_place_narrows_the_search(tmp_path: Path) -> None:
    put(tmp_path, {"a/x.py": "f(1, [2])\n", "b/x.py": "f(3)\n", "b/x.js": "f(4)\n"})
    assert [match.names for match in search(tmp_path, "f($$$A)", "", "a").matches] == [{"A": "1, [2]"}]
    assert [match.path for match in search(tmp_path, "f($A)").matches] == ["b/x.js", "b/x.py"]
    assert [match.path for match in search(tmp_path, "f($A)", where="b/x.py").matches] == ["b/x.py"]


def test_hidden_and_binary_files_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path, {".ssh/k.py": "f(1)\n", ".git/x.py": "f(1)\n", "x.py": "f(1)\0\n", "y.py": "f(2)\n"})
    assert [match.path for match in search(tmp_path, "f($A)").matches] == ["y.py"]


@pytest.mark.parametrize(
    ("pattern", "language", "where", "code"),
    [
        ("", "", ".", "world.pattern"),
        ("f($A", "python", ".", "world.pattern"),
        ("x" * 3000, "", ".", "world.pattern"),
        ("f($A)", "cobol", ".", "world.language"),
        ("f($A)", "", "no", "path.missing"),
        ("f($A)", "", "../x", "path.parent"),
    ],
    ids=["empty", "broken", "long", "language", "missing", "outside"],
)
def test_what_is_wrong_has_a_code(tmp_path: Path, pattern: str, language: str, where: str, code: str) -> None:
    put(tmp_path, {"x.py": "f(1)\n"})
    with pytest.raises(UsageError) as error:
        search(tmp_path, pattern, language, where)
    assert error.value.code == code
