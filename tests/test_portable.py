"""Names for any system."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.portable import Names, plain


@pytest.mark.parametrize(
    ("path", "name"),
    [("src/a.py", "src/a.py"), ("名前/Ünï 🎈.txt", "名前/Ünï 🎈.txt"), (".env.d/x", ".env.d/x"),
     ("..\\..\\x", ".._.._x"), ("a\\b/c", "a_b/c"), ("C:/x", "C_/x"), ('<">|?*', "______"),
     ("a. ", "a__"), ("...", "___"), ("nul", "_nul"), ("COM1.txt", "_COM1.txt"), ("com¹/x", "_com¹/x"),
     ("aux .c", "_aux .c"), ("console", "console"), ("a\nb\x7f", "a_b_"), ("\u202egpj.exe", "_gpj.exe"),
     ("\udcff.txt", "_.txt"), ("x" * 255, "x" * 255)],
    ids=ascii,
)  # fmt: skip
def test_what_some_system_would_take_for_something_else(path: str, name: str) -> None:
    assert Names().of(path) == name


def test_two_paths_are_two_names_on_every_system() -> None:
    names = Names()
    asked = [
        "a.txt",
        "A.txt",
        "a\\b",
        "a:b",
        "a_b",
        "é",
        "e\u0301",
        "Dir/x",
        "dir/x",
        "straße",
        "STRASSE",
        "noend",
        "NOEND",
    ]
    found = [names.of(path) for path in asked]
    assert found == [
        "a.txt", "A (2).txt", "a_b", "a_b (2)", "a_b (3)", "é", "e\u0301 (2)", "Dir/x", "dir (2)/x", "straße",
        "STRASSE (2)", "noend", "NOEND (2)",
    ]  # fmt: skip
    assert [names.of(path) for path in asked] == found
    long = [names.of(sign + "x" * 250 + ".tar") for sign in "yY"]
    assert len(set(long)) == 2 and all(len(one.encode()) <= 255 for one in long)


PARTS = st.text(st.characters(exclude_characters="/\0", codec=None), min_size=1, max_size=12)


@given(st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), max_size=8, unique=True))
def test_no_name_leads_out_and_none_is_given_twice(paths: list[str]) -> None:
    names = Names()
    found = {path: names.of(path) for path in paths}
    folded = [unicodedata.normalize("NFC", name).casefold() for name in found.values()]
    assert len(set(folded)) == len(paths)
    for path, name in found.items():
        assert name.count("/") == path.count("/")
        for part in name.split("/"):
            assert part == plain(part) and part not in ("", ".", "..") and part[-1] not in ". "
            assert not set(part) & set('\\:*?"<>|') and part.isprintable()


def test_what_is_put_beside_the_files_is_none_of_them() -> None:
    names = Names()
    assert [names.of("a/x"), names.fresh("a/x"), names.fresh("a/X"), names.of("a/x")] == [
        "a/x", "a/x (2)", "a/X (3)", "a/x",
    ]  # fmt: skip
