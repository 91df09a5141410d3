"""Edits of a repair: each compiles, changes one thing and keeps the rest of the text."""

from __future__ import annotations

import ast
import difflib

import pytest

from spak.proposers.repair.functions import Function, functions
from spak.proposers.repair.operators import edits

SOURCE = '''"""A module."""
import os

LIMIT = 7


class Shelf:
    """Things."""

    @property
    def free(self):
        return self.size - len(self.items)  # a comment that stays

    def put(self, item, at=0):
        """Put it."""
        if item is None or at < 0:
            raise ValueError("no")
        self.items.insert(at, item)
        for number in range(at):
            if number % 2 == 0:
                continue
            self.size += number
        return [one for one in self.items if one != item][at:]


if os.name == "posix":
    def later(a, b):
        def inner(c):
            return a + c * 2
        return inner(b)
'''


def found(name: str) -> Function:
    return next(one for one in functions("shelf.py", SOURCE) if one.qual == name)


def texts(source: str) -> set[str]:
    (function,) = functions("m.py", source)
    return {edit.text for edit in edits(function)}


def test_functions_of_a_file_with_what_is_around_them() -> None:
    assert [(one.qual, one.heads, one.first, one.last) for one in functions("shelf.py", SOURCE)] == [
        ("Shelf.free", ("class Shelf",), 11, 12),
        ("Shelf.put", ("class Shelf",), 14, 23),
        ("later", ("if 1",), 27, 30),
    ]


@pytest.mark.parametrize("name", ["Shelf.free", "Shelf.put", "later"])
def test_each_edit_compiles_and_changes_its_function_only(name: str) -> None:
    function = found(name)
    trees = set()
    listed = list(edits(function))
    for edit in listed:
        whole = function.in_file(edit.text)
        tree = ast.parse(whole)
        trees.add(ast.dump(tree))
        others = [one.text for one in functions("shelf.py", whole) if one.qual != name]
        assert others == [one.text for one in functions("shelf.py", SOURCE) if one.qual != name]
        changed = [line for line in difflib.ndiff(SOURCE.splitlines(), whole.splitlines()) if line[0] in "+-"]
        assert len(changed) <= 5, edit
        assert function.first <= edit.line <= function.last
    assert len(trees) == len(listed) > 20, "each program once"


def test_a_comment_on_the_line_stays() -> None:
    assert all(
        "# a comment that stays" in edit.text
        for edit in edits(found("Shelf.free"))
        if "\n" not in edit.text.strip()
    )


def test_the_order_is_the_same_each_time() -> None:
    assert list(edits(found("Shelf.put"))) == list(edits(found("Shelf.put")))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return a < b", "return a <= b"),
        ("return a in b", "return a not in b"),
        ("return a + b", "return a - b"),
        ("return a and b", "return a or b"),
        ("return a and b", "return a"),
        ("return a[1:]", "return a[:]"),
        ("return a[b]", "return a[b + 1]"),
        ("return max(a, b)", "return min(a, b)"),
        ("return f(a, b)", "return f(b, a)"),
        ("return a + b * 2", "return (a + b) * 2"),
        ("return abs(a)", "return a"),
        ("return 2 * a - b", "return 2 * (a - b)"),
        ("return a", "return b"),
        ("return a.strip()", "return a.lstrip()"),
        ("return [x for x in a if x]", "return [x for x in a if not x]"),
        ("return a if b else 0", "return 0 if b else a"),
        ("return range(a)", "return range(1, a)"),
        ("return sorted(a)", "return sorted(a, reverse=True)"),
        ("return -a", "return a"),
        ("return a == 1", "return a == 2"),
        ("return True", "return False"),
        ("return a is b", "return a < b"),
        ("return [x for x in []]", "return [x for x in b]"),
        ("return a ^ 1", "return a * 1"),
    ],
)
def test_families(before: str, after: str) -> None:
    wanted = ast.dump(ast.parse(f"def f(a, b):\n    {after}\n"))
    assert wanted in {ast.dump(ast.parse(text)) for text in texts(f"def f(a, b):\n    {before}\n")}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    a += b\n", "    a -= b\n"),
        ("    while a:\n        break\n", "    while a:\n        continue\n"),
        ("    if a:\n        b = 1\n", "    if not a:\n        b = 1\n"),
        ("    b = a\n    a = b\n", "    pass\n    a = b\n"),
        ("    a = 1\n    b = 2\n", "    a = 1\n    a = 2\n"),
        ("    f(a)\n    return b\n", "    f(a)\n    f(a)\n    return b\n"),
    ],
)
def test_families_of_statements(before: str, after: str) -> None:
    wanted = ast.dump(ast.parse(f"def f(a, b):\n{after}"))
    assert wanted in {ast.dump(ast.parse(text)) for text in texts(f"def f(a, b):\n{before}")}


def test_defaults_decorators_docstrings_and_annotations_stay() -> None:
    source = '@cache(1)\ndef f(a: int = 3) -> int:\n    """Text 5."""\n    return a\n'
    for text in texts(source):
        assert text.startswith('def f(a: int = 3) -> int:\n    """Text 5."""\n')


@pytest.mark.parametrize("source", ["def f(:\n", "x = 1\n", "def f(): return 1\r\n", "", "\x00"])
def test_what_is_no_source_has_no_functions(source: str) -> None:
    assert functions("m.py", source) == []
