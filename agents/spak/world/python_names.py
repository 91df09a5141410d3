"""Where the names of a Python file are: each with its place in the text and the scope that binds it.

Takes bytes; gives a Text: scopes, names, attributes and imports of names. Scopes are those of the language
reference (4.2.2, Resolution of names): functions, lambdas and comprehensions see what is around them, but not
the names of a class. It follows no value and reads no other file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

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

    def bind(self, name: str, how: str = "other") -> None:
        """Note that a name is bound here."""
        self.binds.setdefault(name, set()).add(how)

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
        self.visit(ast.parse(data))

    # what is found

    def _found(self, name: str, node: ast.AST, at: int, how: str, line: int = 0) -> Name:
        start = getattr(node, "lineno", 0)
        line = line or start
        if not self.lines[line - 1][at:].startswith(name.encode()):
            how, at = "fixed", 0
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
        if not isinstance(node.ctx, ast.Load):
            self.scope.bind(node.id)
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
        self._found(node.attr, node, at, "attribute", node.end_lineno or 0)

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
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                try:
                    parsed = ast.parse(one.value, mode="eval")
                except (SyntaxError, ValueError):
                    continue
                plain = self.lines[one.lineno - 1][one.col_offset + 1 :].startswith(one.value.encode())
                for inner in ast.walk(parsed):
                    if isinstance(inner, ast.Name):
                        at = one.col_offset + 1 + inner.col_offset if plain else 1 << 20
                        self._found(inner.id, one, at, "name")
                    elif isinstance(inner, ast.Attribute):
                        end = inner.end_col_offset or 0
                        at = one.col_offset + 1 + end - len(inner.attr.encode()) if plain else 1 << 20
                        self._found(inner.attr, one, at, "attribute")


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


def _all(args: ast.arguments) -> list[ast.arg]:
    more = [one for one in (args.vararg, args.kwarg) if one is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *more]
