"""Where a program reads names as data, so that another name for a symbol may make it another program.

Takes the syntax tree of a file, or a tree of files; gives the places with the reason. It follows no value: a
place counts when its form and its text fit the name. What is built from names without naming them at all,
text of `repr`, tracebacks and pickles, it does not know.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spak.errors import UsageError
from spak.files import beneath
from spak.files.walk import walk
from spak.world import scan
from spak.world.ask import Model, Symbol
from spak.world.facts import split_root
from spak.world.languages import language_of
from spak.world.python_names import Text
from spak.world.resolve import Resolver
from spak.world.values import Faces

_OWN = (".setter", ".getter", ".deleter", ".register")
_MOST_NAMED = 5
MAX_TEXT_BYTES = 1 << 20
Target = tuple[str, str]
"""File and QUAL."""
Place = tuple[int, str]
"""A line and what is there."""

_BY_NAME = {"getattr", "setattr", "hasattr", "delattr", "__getattribute__", "__getattr__", "__setattr__",
            "attrgetter", "methodcaller", "object", "multiple", "setitem", "delitem",
            "cast", "TypeVar", "ForwardRef", "NewType", "eval", "exec", "compile", "timeit",
             "repeat", "Timer"}  # fmt: skip
"""Functions that look up what a string names; `object` and `multiple` are those of `mock.patch`."""
_LISTS = {"__slots__", "__match_args__", "_fields", "_fields_"}
_SPACES = {"globals", "locals", "vars"}
_GENERIC = {"list", "dict", "set", "frozenset", "tuple", "type"}
_TABLES = {"__dict__", "__annotations__", "__members__"}
NAMES = re.compile(r"\.__(?:qual)?name__\b")
LISTS = re.compile(r"\.__(?:dict|annotations)__\b|\b(?:vars|dir)\(")
DUCKS = {name for name in dir(io.IOBase) if name[0] != "_"} | {"read", "write", "keys"}
"""Members that Python's own library calls of any object."""
_PLAIN_BASES = {"builtins", "abc", "collections.abc", "typing"}
_CONFIGURED = (".toml", ".cfg", ".ini", ".yaml", ".yml", ".json", ".html", ".jinja", ".jinja2", ".j2")
_CODE = (".pyx", ".pxd", ".ipynb")


def called_by_name(name: str) -> bool:
    """Whether pytest or unittest would call it, or look into it, for its name."""
    return name.lower().startswith(("test", "pytest_", "setup_", "teardown_")) or name in (
        "setUp",
        "tearDown",
    )


def outside_base(base: Any) -> bool:
    """Whether a base from outside of the tree is known to do nothing with the names of its members."""
    return isinstance(base, type) and base.__module__ in _PLAIN_BASES


def imported(faces: Faces, path: str, chain: str) -> Any:
    """What a chain names of Python's own library, or None."""
    root, rest = split_root(chain.partition("[")[0])
    if re.search(r"[(|<!]", rest):
        return None
    binds = faces.binds(path, root)
    if not binds:
        found: Any = getattr(builtins, root, None)
    elif len(binds) == 1 and binds[0][0] == "i" and not binds[0][1]:
        found, rest = _own_module(binds[0][2]), f".{binds[0][3]}{rest}"
    elif len(binds) == 1 and binds[0][0] == "m":
        found = _own_module(binds[0][1])
    else:
        return None
    for step in rest.split(".")[1:]:
        found = getattr(found, step, None)
    return found


class Reads:
    """What reads the name of one symbol as data. `found` says the places; nothing in it is certain."""

    def __init__(self, model: Model, values: Resolver, target: Symbol, name: str) -> None:
        self.model, self.values, self.target, self.name = model, values, target, name
        self.found: list[str] = []

    def of_symbol(self, scope: str) -> None:
        """Neither the class, nor its bases, nor a decorator reads names as data."""
        path, qual = self.target.path, self.target.qual
        code = set(self.values.mro(path, qual)) if self.target.kind == "class" else set()
        for chain in self.values.symbol(path, qual).get("dec", ()):
            chain = chain.partition("(")[0]
            inside = [one for one in self.values.evaluate(path, scope, chain) if one[0] in "CFI"]
            code.update((one[1], one[2]) for one in inside)
            if not inside and not chain.endswith(_OWN) and not imported(self.values, path, chain):
                self.found.append(f"the decorator {chain[:40]!a} is not in the tree")
        for where, holder in code:
            self._reads(where, holder, NAMES)

    def of_class(self, path: str, holder: str) -> None:
        """A decorator of the class may look at its members."""
        for chain in self.values.symbol(path, holder).get("dec", ()):
            scope = holder.rpartition(".")[0]
            for one in self.values.evaluate(path, scope, chain.partition("(")[0]):
                if one[0] in "CF":
                    self._reads(one[1], one[2], LISTS)

    def of_files(self, family: set[Target], texts: dict[str, Text], paths: set[str]) -> None:
        """No code reads the name as data, and no file that the model does not have names it."""
        holders = {(path, qual.rpartition(".")[0]) for path, qual in family if "." in qual}
        above = {one for holder in holders for one in self.values.mro(*holder) if one[0]}
        classes = {qual.rpartition(".")[2] for _, qual in holders | above}
        home = {path for path, _ in family | above}
        for path, text in texts.items():
            found = read_as_data(text.tree, self.name, path in home, classes)
            self.found += [f"{path}:{line} {why}" for line, why in sorted(found)]
            self.found += self._elsewhere(path, text, {path for path, _ in family})
        self.found += [f"{path} has the name" for path in other_files(self.model.root, self.name, paths)]
        for path, qual in self._interfaces(texts) if holders else ():
            self.found.append(f"{path} has it in the interface {qual}")
        if holders and self.name in DUCKS:
            self.found.append(f"Python's own library calls {self.name} of what it is given")
        if self.found:
            raise UsageError(
                "world.rename_unsafe",
                f"{self.name} may be read as data: {'; '.join(self.found[:_MOST_NAMED])}",
                "look at what becomes of it; --leave renames nevertheless",
            )

    def _reads(self, path: str, qual: str, what: re.Pattern[str]) -> None:
        """Note where the code of a symbol reads names."""
        body = self.model.facts("body", path) if path else {"refs": {}}
        for caller, refs in body["refs"].items():
            if f"{caller}.".startswith(f"{qual}."):
                found = [ref[2] for ref in refs if what.search(ref[1])]
                self.found += [f"{path}:{line} reads the name" for line in found]

    def _elsewhere(self, path: str, text: Text, homes: set[str]) -> Iterator[str]:
        """Imports that may mean a file that has it, though they lead to none or to a file beside it."""
        for level, module, line in modules_of(text.tree):
            source = self.values.target(path, level, module)
            if not level and module.partition(".")[0] in sys.stdlib_module_names:
                continue
            top = self.values.target(path, level, "") if level and "." not in module else ("M",)
            if source is not None and (top is None or top[0] != "M"):
                source = None  # of a package without a file: its names are not followed
            near = source is not None and source[1].rpartition("/")[0] == path.rpartition("/")[0]
            ends = f"/{module.replace('.', '/')}"
            for home in homes:
                own = f"/{home.removesuffix('.py').removesuffix('/__init__')}"
                if own.endswith(ends) and not near and (source is None or source[1] not in homes):
                    yield f"{path}:{line} may import {home}"

    def _interfaces(self, texts: dict[str, Text]) -> Iterator[Target]:
        """Protocols with a member of the name: a class may be one without naming it."""
        for path, text in texts.items():
            for scope in {one.scope for one in text.names}:
                bases = self.values.symbol(path, scope.qual).get("bases", ()) if scope.kind == "class" else ()
                if self.name in scope.binds and any(re.search(r"\bProtocol\b", base) for base in bases):
                    yield path, scope.qual


def read_as_data(tree: ast.Module, name: str, home: bool, holders: set[str]) -> Iterator[Place]:
    """The places of a file. `home` says that it defines the symbol, `holders` are the names of the classes
    that have it; empty for a name of a module."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, own = stack.pop()
        if isinstance(node, ast.ClassDef) and node.name in holders:
            own = True
            yield from _made(node)
        elif isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            own = False  # it hands on what the class does not have
        for why in _of_node(node, name, word, home, holders, own):
            yield getattr(node, "lineno", 0), why
        stack.extend((child, own) for child in ast.iter_child_nodes(node))


def odd_all(tree: ast.Module) -> int:
    """The line where `__all__` is made by anything but a list of strings, 0 where it is not."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            plain = isinstance(node.value, (ast.List, ast.Tuple)) and all(
                isinstance(one, ast.Constant) for one in node.value.elts
            )
            if any(_is(one, "__all__") for one in targets) and node.value is not None and not plain:
                return node.lineno
        elif isinstance(node, ast.Attribute) and _is(node.value, "__all__"):
            return node.lineno
    return 0


def modules_of(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    """The modules that a file may import: dots before it, name, line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            before = f"{node.module}." if node.module else ""
            if before:
                yield node.level, before[:-1], node.lineno
            yield from ((node.level, before + alias.name, node.lineno) for alias in node.names)


def other_files(root: Path, name: str, known: set[str]) -> Iterator[str]:
    """The files that are not indexed, or are a second name of one that is, and have the name as code does:
    settings after a dot or a colon, templates, notebooks, scripts without an ending."""
    plain = re.compile(rb"\b%s\b" % re.escape(name.encode()))
    reached = re.compile(rb"[.:]\s*%s\b" % re.escape(name.encode()))
    for entry in walk(root, ".", scan.MAX_DEPTH, lambda folder: scan.skipped(root, folder)):
        path = root / entry.path
        if entry.kind == "link" and entry.name.endswith((".py", ".pyi")):
            real = path.resolve()
            inside = real.is_relative_to(root.resolve()) and str(real.relative_to(root.resolve())) in known
            if inside and plain.search(real.read_bytes()):
                yield entry.path
        elif entry.kind == "file" and (not language_of(entry.name) or entry.path not in known):
            code = entry.name.endswith((*_CODE, ".py", ".pyi")) or "." not in entry.name
            if not code and not entry.name.endswith(_CONFIGURED):
                continue
            try:
                data = beneath.read_beneath(root, entry.path, MAX_TEXT_BYTES)
            except UsageError:
                if entry.name.endswith((".py", ".pyi")):
                    yield entry.path
                continue
            script = "." in entry.name or (data[:2] == b"#!" and b"python" in data[:100])
            if script and (plain if code else reached).search(data):
                yield entry.path


def _own_module(name: str) -> Any:
    """A module of Python's own library, which does nothing when it is imported; None for another."""
    return importlib.import_module(name) if name.partition(".")[0] in sys.stdlib_module_names else None


def _made(node: ast.ClassDef) -> Iterator[Place]:
    """What is told of the names in a class when it is made."""
    for keyword in node.keywords:
        if keyword.arg == "metaclass" and _last(keyword.value) != "ABCMeta":
            yield node.lineno, "has a metaclass"
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init_subclass__":
            yield one.lineno, f"defines {one.name}"


def _of_node(
    node: ast.AST, name: str, word: re.Pattern[str], home: bool, holders: set[str], own: bool
) -> Iterator[str]:
    if isinstance(node, ast.Call):
        last = _last(node.func)
        given = node.args[1:] if last in ("TypeVar", "NewType") else node.args
        if last in _BY_NAME and _says(word, *given, *(one.value for one in node.keywords)):
            yield f"looks {name} up by a string"
        if last in ("getattr", "setattr", "hasattr", "delattr") and len(node.args) > 1:
            start = _start(node.args[1])
            if (start is None and own) or (start and name.startswith(start)):
                yield "looks up a name that is computed"
        if last in ("dir", "vars", *_SPACES) and isinstance(node.func, ast.Name):
            mine = own or any(_last(one) in holders for one in node.args)
            all_of = last in ("dir", "globals") and home and not holders and not node.args
            if (holders and node.args and mine) or all_of:
                yield f"lists names by {last}"
    elif isinstance(node, ast.Subscript):
        base, said = node.value, _says(word, node.slice)
        space = isinstance(base, ast.Call) and _last(base.func) in _SPACES
        if said and (space or _last(base) in _TABLES):
            yield f"looks {name} up by a string"
        typed = _last(base) in _GENERIC or _last(base)[:1].isupper()
        if said and typed and _last(base) not in ("Literal", "Annotated"):
            yield f"names {name} in a string as a type"
    elif isinstance(node, ast.Attribute):
        if node.attr in _TABLES and holders and (own or _last(node.value) in holders):
            yield f"reads {node.attr}"
        if node.attr in ("__name__", "__qualname__") and _last(node.value) == name:
            yield f"reads {node.attr}"
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(_last(one) in _LISTS for one in targets) and node.value and _says(word, node.value):
            yield f"lists {name} as a string"
    elif isinstance(node, ast.MatchClass):
        if name in node.kwd_attrs:
            yield f"matches by {name}"
    elif isinstance(node, ast.Constant):
        lines = node.value.splitlines() if isinstance(node.value, str) and ">>>" in node.value else ()
        if any(line.lstrip()[:3] in (">>>", "...") and word.search(line) for line in lines):
            yield f"has {name} in an example that may be run"
    elif isinstance(node, ast.JoinedStr):
        yield from _shown(node, name, word)


def _shown(node: ast.JoinedStr, name: str, word: re.Pattern[str]) -> Iterator[str]:
    """`f"{NAME=}"` prints the name."""
    for text, value in zip(node.values, node.values[1:], strict=False):
        if isinstance(text, ast.Constant) and isinstance(value, ast.FormattedValue):
            said = str(text.value).rstrip()
            used = any(_last(one) == name for one in ast.walk(value.value))
            if said.endswith("=") and used and word.search(said):
                yield f"prints {name} itself"


def _says(word: re.Pattern[str], *nodes: ast.AST) -> bool:
    """Whether a string in these has the name as a word."""
    found = (one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Constant))
    return any(isinstance(one.value, str) and word.search(one.value) is not None for one in found)


def _start(node: ast.AST) -> str | None:
    """The fixed beginning of a name that is computed; None where there is none, "" for a fixed name."""
    if isinstance(node, ast.Constant):
        return ""
    if isinstance(node, ast.BinOp):
        node = node.left
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node = node.func.value
    elif isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.split(r"[%{]", node.value)[0] or None
    return None


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
