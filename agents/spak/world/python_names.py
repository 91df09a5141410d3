"""Where the names of a Python file are: each with its place in the text and the scope that binds it.

Takes bytes; gives a Text: scopes, names, attributes and imports of names. Scopes are those of the language
reference (4.2.2, Resolution of names): functions, lambdas and comprehensions see what is around them, but not
the names of a class. It follows no value and reads no other file.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(eq=False, slots=True)
class Scope:
    """A block with names of its own. `qual` is its dotted name in the file, "" for the module."""

    kind: str
    qual: str
    parent: Scope | None = None
    binds: dict[str, set[str]] = field(default_factory=dict)
    """Names that are bound here, and how: `import` by `from M import NAME`, `def` by one or `class`, or
    `other`."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Names that `global` or `nonlocal` sends outwards."""
    bound: dict[str, int] = field(default_factory=dict)
    """The line at which a name is bound first."""
    used: dict[str, int] = field(default_factory=dict)
    """The line at which the block itself reads a name first."""

    def bind(self, name: str, how: str = "other") -> None:
        """Note that a name is bound here."""
        self.binds.setdefault(name, set()).add(how)

    def early(self, name: str) -> bool:
        """Whether a module or class reads a name that it binds while that may still be another one's."""
        if self.kind == "function" or name not in self.binds or name not in self.used:
            return False
        outer = name in dir(builtins) or (
            self.kind == "class" and any(name in one.binds for one in self.around() if one is not self)
        )
        return outer and (self.kind == "class" or self.used[name] <= self.bound.get(name, 0))

    def around(self) -> Iterator[Scope]:
        """This scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def holder(self, name: str) -> Scope:
        """The scope that binds a name used here; the module where nothing does."""
        *inner, module = self.around()
        for scope in inner:
            if scope.elsewhere.get(name) == "global":
                break
            seen = scope is self or scope.kind != "class"
            if seen and name in scope.binds and name not in scope.elsewhere:
                return scope
        return module


@dataclass(frozen=True, slots=True)
class Name:
    """One place: the text there is the name. `start` is the line at which its expression begins; `how` is
    `name`, `attribute`, `import` (of `from M import NAME`), `listed` (in `__all__`) or `fixed`: a form whose
    place the syntax tree does not tell."""

    name: str
    line: int
    at: int
    scope: Scope
    start: int
    how: str


@dataclass(frozen=True, slots=True)
class Import:
    """`from M import NAME [as OTHER]` in a scope; `*` for all names, which has no place."""

    scope: Scope
    level: int
    module: str
    name: str
    bound: str
    places: tuple[Name, ...]


class _Reader(ast.NodeVisitor):
    """What a Text holds."""

    def __init__(self, data: bytes) -> None:
        self.lines = data.splitlines(keepends=True)
        self.names: list[Name] = []
        self.imports: list[Import] = []
        self.strings: list[tuple[str, int]] = []
        """Their text and first line; without documentation and annotations."""
        self.module = self.scope = Scope("module", "")
        self.tree = ast.parse(data)
        self.visit(self.tree)

    # what is found

    def _found(self, name: str, node: ast.AST, at: int, how: str, line: int = 0) -> Name:
        start = getattr(node, "lineno", 0)
        line = line or start
        if how != "constant" and not self.lines[line - 1][at:].startswith(name.encode()):
            how, at = "odd" if how == "attribute" else "fixed", 0
        self.names.append(Name(name, line, at, self.scope, start, how))
        return self.names[-1]

    def _bound(self, name: str | None, node: ast.AST) -> None:
        """A name in a form whose place is not told, `except E as NAME`."""
        if name:
            self.scope.bind(name)
            self.names.append(Name(name, getattr(node, "lineno", 0), 0, self.scope, 0, "fixed"))

    def _headed(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """The name behind `def` or `class`."""
        self.scope.bind(node.name, "def")
        indented = self.scope.kind == "module" and node.col_offset > 0
        self.scope.bound.setdefault(node.name, 1 << 30 if indented else node.lineno - 1)
        line = self.lines[node.lineno - 1]
        head = re.compile(rb"(?:async\s+)?(?:def|class)\s+").match(line, node.col_offset)
        self._found(node.name, node, head.end() if head else len(line), "name")

    @contextmanager
    def _inside(self, kind: str, name: str) -> Iterator[None]:
        outer = self.scope
        self.scope = Scope(kind, f"{outer.qual}.{name}" if outer.qual else name, outer)
        yield
        self.scope = outer

    # nodes

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.scope.used.setdefault(node.id, node.lineno)
        else:
            self.scope.bind(node.id)
            self.scope.bound.setdefault(node.id, node.lineno)
        self._found(node.id, node, node.col_offset, "name")

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.strings.append((node.value, node.lineno))

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        at = (node.end_col_offset or 0) - len(node.attr.encode())
        self._found(node.attr, node, at, _reached(node.value), node.end_lineno or 0)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for one in node.decorator_list:
            self.visit(one)
        self._headed(node)
        self._outside(node.args)
        if node.returns is not None:
            self._annotation(node.returns)
        with self._inside("function", node.name):
            self._parameters(node.args)
            for statement in node.body:
                self.visit(statement)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._outside(node.args)
        with self._inside("function", "<lambda>"):
            self._parameters(node.args)
            self.visit(node.body)

    def _outside(self, args: ast.arguments) -> None:
        """What parameters say is evaluated around the function."""
        for one in (*args.defaults, *args.kw_defaults):
            if one is not None:
                self.visit(one)
        for parameter in _all(args):
            if parameter.annotation is not None:
                self._annotation(parameter.annotation)

    def _parameters(self, args: ast.arguments) -> None:
        for parameter in _all(args):
            self.scope.bind(parameter.arg)
            self._found(parameter.arg, parameter, parameter.col_offset, "name")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for one in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.visit(one)
        self._headed(node)
        with self._inside("class", node.name):
            for statement in node.body:
                self.visit(statement)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        with self._inside("function", "<comprehension>"):
            for one in node.generators:
                self.visit(one.target)
            for one in others:
                self.visit(one.iter)
            for one in node.generators:
                for test in one.ifs:
                    self.visit(test)
            parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
            for part in parts:
                self.visit(part)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        inner = self.scope
        while self.scope.parent is not None and self.scope.qual.endswith("<comprehension>"):
            self.scope = self.scope.parent
        self.visit(node.target)
        self.scope = inner

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            bound, places = alias.asname or alias.name, []
            if alias.name != "*":
                self.scope.bind(bound, "import")
                places = [self._found(alias.name, alias, alias.col_offset, "import")]
            if alias.name == alias.asname:  # by habit, what is for others too
                at = (alias.end_col_offset or 0) - len(bound.encode())
                places.append(self._found(bound, alias, at, "import", alias.end_lineno or 0))
            made = Import(self.scope, node.level, node.module or "", alias.name, bound, tuple(places))
            self.imports.append(made)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._bound(alias.asname or alias.name.partition(".")[0], alias)

    def visit_Global(self, node: ast.Global) -> None:
        for name in node.names:
            self.scope.elsewhere[name] = "global"
            self.names.append(Name(name, node.lineno, 0, self.scope, 0, "fixed"))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            self.scope.elsewhere[name] = "nonlocal"
            self.names.append(Name(name, node.lineno, 0, self.scope, 0, "fixed"))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._bound(node.name, node)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._bound(node.name, node)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._bound(node.name, node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._bound(node.rest, node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._listed(node.targets, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._listed([node.target], node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._listed([node.target], node.value)
            self.visit(node.value)
        self._annotation(node.annotation)
        self.visit(node.target)

    def _listed(self, targets: list[ast.expr], value: ast.expr) -> None:
        """The names in `__all__`."""
        if any(isinstance(one, ast.Name) and one.id == "__all__" for one in targets):
            for node in ast.walk(value):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    self._found(node.value, node, node.col_offset + 1, "listed")

    def _annotation(self, node: ast.expr) -> None:
        """An annotation, with those that are written as strings within it."""
        before = len(self.strings)
        self.visit(node)
        del self.strings[before:]
        for one in _quoted(node):
            self._in_string(one, one.value, True)

    def _in_string(self, at: ast.Constant, text: str, outer: bool) -> None:
        """The names in an annotation that is a string; one in a string within it is not rewritten."""
        try:
            parsed = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, RecursionError):
            return
        begin = at.col_offset + 1
        plain = outer and self.lines[at.lineno - 1][begin:].startswith(text.encode())
        for inner in ast.walk(parsed):
            if isinstance(inner, ast.Name):
                self._found(inner.id, at, begin + inner.col_offset if plain else 1 << 20, "name")
            elif isinstance(inner, ast.Attribute):
                end = (inner.end_col_offset or 0) - len(inner.attr.encode())
                self._found(inner.attr, at, begin + end if plain else 1 << 20, "attribute")
        for nested in _quoted(parsed.body):
            self._in_string(at, nested.value, False)


class Text(_Reader):
    """The names of a file. Raises: SyntaxError, ValueError, RecursionError where Python does not read it."""

    def replaced(self, places: Iterable[Name], new: str) -> bytes:
        """The text with another name in these places."""
        lines = list(self.lines)
        for place in sorted(set(places), key=lambda one: (one.line, -one.at)):
            line, end = lines[place.line - 1], place.at + len(place.name.encode())
            assert line[place.at : end] == place.name.encode()
            lines[place.line - 1] = line[: place.at] + new.encode() + line[end:]
        return b"".join(lines)


def _quoted(node: ast.expr) -> Iterator[Any]:
    """The strings in an annotation that are types: not those of `Literal`, nor what `Annotated` adds."""
    stack: list[ast.AST] = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one
        last = (
            getattr(one.value, "attr", getattr(one.value, "id", "")) if isinstance(one, ast.Subscript) else ""
        )
        if last == "Annotated" and isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Tuple):
            stack.append(one.slice.elts[0])
        elif last != "Literal":
            stack.extend(ast.iter_child_nodes(one))


def _reached(node: ast.expr) -> str:
    """How an attribute of an expression counts: `constant` where it is one of text or a number, `odd` where
    the edges do not follow it."""
    direct = node
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript, ast.Await)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        return "constant" if node is direct else "odd"
    followed = (ast.Name, ast.IfExp, ast.BoolOp, ast.NamedExpr)
    return "attribute" if isinstance(node, followed) else "odd"


def _all(args: ast.arguments) -> list[ast.arg]:
    more = [one for one in (args.vararg, args.kwarg) if one is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *more]
