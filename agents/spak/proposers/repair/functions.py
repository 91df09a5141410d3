"""Functions of a file as a repair sees them: where each is, its text, and the parts that edits draw on.

Takes the text of a Python file; gives its functions that no other function holds, methods of classes among
them. A function's text begins at its `def`, without decorators: defaults, annotations and decorators are
evaluated when a module is imported and are not edited.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

MOST = 8
"""Literals of the file that a literal is exchanged for."""

Def = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """A function at the top of a file or of a class."""

    path: str
    qual: str
    heads: tuple[str, ...]
    """What stands around it: `class NAME` of each class, or `if 1` for another block."""
    node: Def
    source: str
    """The whole file."""
    file_integers: tuple[int, ...] = ()
    file_texts: tuple[str, ...] = ()

    @property
    def first(self) -> int:
        """The line of its `def`."""
        return self.node.lineno

    @property
    def last(self) -> int:
        """Its last line."""
        assert self.node.end_lineno is not None
        return self.node.end_lineno

    @cached_property
    def lines(self) -> list[str]:
        """The lines of its file."""
        return _lines(self.source)

    @cached_property
    def text(self) -> str:
        """Its text."""
        return "".join(self.lines[self.first - 1 : self.last])

    @cached_property
    def integers(self) -> tuple[int, ...]:
        """Small literals of its file."""
        return self.file_integers[:MOST]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Short literals of its file."""
        return self.file_texts[:MOST]

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Attributes that it reads."""
        found = (one.attr for one in ast.walk(self.node) if isinstance(one, ast.Attribute))
        return tuple(dict.fromkeys(found))[:MOST]

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Conditions that it asks, as texts."""
        tests = (one.test for one in ast.walk(self.node) if isinstance(one, (ast.If, ast.While, ast.IfExp)))
        parts = (part for test in tests for part in (test.values if isinstance(test, ast.BoolOp) else [test]))
        return tuple(dict.fromkeys(ast.unparse(part) for part in parts))

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """Its statements of one line, as they are written."""
        found = []
        for one in ast.walk(self.node):
            simple = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Break, ast.Continue)
            if isinstance(one, simple) and one.lineno == one.end_lineno:
                found.append(ast.get_source_segment(self.source, one) or "")
        return tuple(dict.fromkeys(text for text in found if text and not text.startswith(("'", '"'))))

    def replaced(self, node: ast.expr | ast.stmt, new: str) -> str | None:
        """Its text with the text of one node replaced, in parentheses where the meaning needs them."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        first, last = self.lines[node.lineno - 1], self.lines[node.end_lineno - 1]
        head = first.encode()[: node.col_offset].decode()
        tail = last.encode()[node.end_col_offset :].decode()
        before = "".join(self.lines[self.first - 1 : node.lineno - 1]) + head
        after = tail + "".join(self.lines[node.end_lineno : self.last])
        bare = f"{before}{new}{after}"
        if isinstance(node, ast.stmt):
            return bare
        covered = f"{before}({new}){after}"
        meant = self.parsed(covered)
        if meant is None:
            return None
        seen = self.parsed(bare)
        return bare if seen is not None and ast.dump(seen) == ast.dump(meant) else covered

    def parsed(self, text: str) -> Def | None:
        """The tree of a text of this function; None where it is none, or more than one function."""
        head = "if 1:\n" if text[:1] in " \t" else ""
        try:
            body = ast.parse(head + text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        found = body[0].body if head and isinstance(body[0], ast.If) else body
        if len(body) == len(found) == 1 and isinstance(found[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
            return found[0] if found[0].name == self.node.name else None
        return None

    def in_file(self, text: str) -> str:
        """The file with another text of this function."""
        return "".join([*self.lines[: self.first - 1], text, *self.lines[self.last :]])


def functions(path: str, source: str) -> list[Function]:
    """The functions of a file; empty where it cannot be parsed or is written in an unusual way."""
    if "\f" in source or "\r" in source:
        return []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    literals = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)]
    integers = tuple(dict.fromkeys(one for one in literals if type(one) is int and abs(one) < 10**9))
    texts = tuple(dict.fromkeys(one for one in literals if isinstance(one, str) and len(one) <= 12))
    lines = _lines(source)
    return [
        Function(path, ".".join((*names, node.name)), heads, node, source, integers, texts)
        for names, heads, node in _found(tree.body, (), ())
        if lines[node.lineno - 1].encode()[: node.col_offset].strip() == b""
    ]


def _lines(text: str) -> list[str]:
    """Lines as Python counts them, which line feeds end and nothing else."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + parts[-1:]


def _found(
    body: list[ast.stmt], names: tuple[str, ...], heads: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], Def]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield names, heads or (("if 1",) if node.col_offset else ()), node
        elif isinstance(node, ast.ClassDef):
            yield from _found(node.body, (*names, node.name), (*heads, f"class {node.name}"))
        else:
            for name in ("body", "orelse", "finalbody"):
                yield from _found(getattr(node, name, []), names, heads)
            for handler in getattr(node, "handlers", []):
                yield from _found(handler.body, names, heads)
