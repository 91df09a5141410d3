"""Python given on a command line: whether it does no more than import, compute, read files and print.

`understood` takes the text and gives what it opens, imports and calls, or a reason why it may do more. What
is understood are plain statements with calls of builtins, of functions of the standard library and of methods
that are listed (`[python]` in lists.toml), calls of what a module of the project has, and names of modules,
which are shown. No module and no function of one becomes a value, and no name gets another meaning. All else
is a reason.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from spak.commandline import lists

MAX_TEXT = 4000
_OF: Mapping[str, str] = lists.section("python")["of"]
FUNCTIONS = lists.names("python", "partly") | {
    f"{module}.{name}" for module, names in _OF.items() for name in names.split()
}
"""What is called, by its whole name."""
DATA, METHODS = lists.names("python", "data"), lists.names("python", "methods")
_NODES = tuple(getattr(ast, name) for name in lists.ordered("python", "nodes"))
_CALLS, _SHOWS = lists.names("python", "calls"), lists.names("python", "shows")
_STARTS = lists.names("python", "starts")
_KEYWORDS, _REACHES = lists.names("python", "keywords"), lists.names("python", "reaches")
_FIELDS = lists.names("python", "fields")
"""Attributes that are data."""
_HIDDEN = re.compile(r"(?i)^_(?!_(version|file|name|doc)__$)|environ|secret|token|passw|key|cred|dsn")
_LARGEST = 1_000_000


@dataclass(slots=True)
class Text:
    """What a text does besides computing, and why it may do more."""

    why: str = ""
    opens: list[str] = field(default_factory=list)
    """Files that it reads."""
    imports: set[str] = field(default_factory=set)
    """Modules that are not of the standard library, and names of them."""
    calls: set[str] = field(default_factory=set)
    """Modules of which something is called: they have to be the project's."""
    texts: list[str] = field(default_factory=list)
    """Texts in it, which what is called may take for paths."""


def understood(text: str) -> Text:
    """What the text opens and imports."""
    if len(text) > MAX_TEXT:
        return Text("a long program given on the command line")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Text("python code that does not parse")
    reading = _Reading(tree)
    for node in ast.walk(tree):
        reading.found.why = reading.found.why or reading.node(node)
    return reading.found


class _Reading:
    def __init__(self, tree: ast.Module) -> None:
        self.found = Text()
        self.modules: dict[str, str] = {}
        """What names stand for: modules, and what is in them, by whole names."""
        self.own: set[str] = set()
        """Names that the text gives a value."""
        self.above: dict[int, ast.AST] = {}
        """What each node is a part of."""
        for node in ast.walk(tree):
            self.above |= {id(part): node for part in ast.iter_child_nodes(node)}
            match node:
                case ast.Import(names=aliases):
                    for alias in aliases:
                        first = "" if alias.asname else alias.name.partition(".")[0]
                        self._imported(alias, alias.name, first)
                case ast.ImportFrom(module=module, names=aliases, level=level):
                    for alias in aliases:
                        self._imported(alias, "" if level else f"{module}.{alias.name}")
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    self.own.add(name)

    def _imported(self, alias: ast.alias, whole: str, first: str = "") -> None:
        name = first or alias.asname or alias.name
        taken = name in _CALLS or name in ("*", "open")
        if not whole or taken or self.modules.setdefault(name, first or whole) != (first or whole):
            self.found.why = "python code that gives a module another name"
        elif (
            whole.partition(".")[0] in _REACHES
            or "__main__" in whole
            or (not first and whole.rpartition(".")[2] in _STARTS)
        ):
            self.found.why = "python code that loads what starts processes or connects"
        elif not is_standard(whole):
            self.found.imports |= {whole} if first else {whole, whole.rpartition(".")[0]}

    def node(self, node: ast.AST) -> str:
        """Why the node does more than compute; empty when it does not."""
        above = self.above.get(id(node))
        called = isinstance(above, ast.Call) and above.func is node
        match node:
            case ast.Call():
                return self._call(node)
            case ast.Name(ctx=ast.Store(), id=name) | ast.arg(arg=name):
                taken = name in self.modules or name in _CALLS or name == "open"
                return "python code that gives a name another meaning" if taken else ""
            case ast.Attribute(ctx=ast.Store()):
                return "python code that changes what is not its own"
            case ast.Subscript(value=value, ctx=ast.Store()) if _names(value)[0] not in self.own:
                return "python code that changes what is not its own"
            case ast.Attribute(attr=attr) if not self._whole(node):
                return "" if attr in METHODS | _FIELDS else "python code that reaches for internals"
            case ast.Constant(value=str(text)):
                self.found.texts.append(text)
            case ast.Attribute() | ast.Name() if self._whole(node):
                return "" if called or isinstance(above, ast.Attribute) else self._of_module(node, above)
            case ast.Name(id=name) if not called:
                known = name in self.own | _FIELDS or name in _CALLS - {"print", "type"}
                return "" if known else f"python code that names {name}"
            case ast.BinOp(op=ast.Mult() | ast.Pow() | ast.LShift()) if not self._is_small(node):
                return "python code with a product whose size is not known"
            case ast.Constant(value=int(value)) if value > _LARGEST:
                return "python code with a number that may be a size"
        return "" if isinstance(node, _NODES) else "python code with more than imports and expressions"

    def _is_small(self, node: ast.BinOp) -> bool:
        """Whether a product or power is one of small numbers, and no part of another."""
        sides = (node.left, node.right)
        if isinstance(node.op, ast.Mult):
            big = (ast.BinOp, ast.List, ast.Tuple, ast.ListComp)
            return not any(isinstance(side, big) for side in sides)
        inner = isinstance(self.above.get(id(node)), ast.BinOp)
        values = [side.value for side in sides if isinstance(side, ast.Constant)]
        return (
            not inner
            and len(values) == 2
            and all(
                isinstance(value, int | float) and value <= most
                for value, most in zip(values, (1024, 64), strict=True)
            )
        )

    def _whole(self, node: ast.AST) -> str:
        """The whole name of what `a.b.c` is of a module; empty for anything else."""
        first, *rest = _names(node)
        return ".".join([self.modules[first], *rest]) if first in self.modules else ""

    def _of_module(self, node: ast.Attribute | ast.Name, above: ast.AST | None) -> str:
        """Why what is named of a module may be more than data that is shown."""
        names, whole = _names(node), self._whole(node)
        module = whole.partition(".")[0]
        constant = names[-1].isupper() or (module == "ast" and names[-1][:1].isupper())
        if whole in DATA or (module in _OF and (whole in FUNCTIONS or constant)):
            return ""
        shown = isinstance(above, ast.Expr | ast.FormattedValue | ast.Compare) or (
            isinstance(above, ast.Call) and _names(above.func)[0] in _SHOWS and node in above.args
        )
        plain = names[-1] in _FIELDS or names[-1].isupper() or whole == "sys.path"
        hidden = any(_HIDDEN.search(name) for name in names)
        if hidden or not shown or (is_standard(whole) and not plain):
            return "python code that hands a module, or what is in one, on"
        return ""

    def _call(self, node: ast.Call) -> str:
        names, whole = _names(node.func), self._whole(node.func)
        if any(word.arg not in _KEYWORDS for word in node.keywords):
            return "python code that hands over what may be called"
        if names == ["open"]:
            return self._open(node)
        if whole and not is_standard(whole):
            self.found.calls.add(whole.rpartition(".")[0])
        if whole:
            starts = names[-1] in _STARTS or any(name.startswith("__") for name in names)
            plain = whole in FUNCTIONS or not (is_standard(whole) or starts)
            return "" if plain else f"python code that calls {whole}"
        plain = isinstance(node.func, ast.Attribute) or (
            names[0] in _CALLS and (names[0] != "type" or len(node.args) == 1)
        )
        return "" if plain else "python code that calls more than print and arithmetic"

    def _open(self, node: ast.Call) -> str:
        modes = node.args[1:] + [word.value for word in node.keywords if word.arg == "mode"]
        plain = all(isinstance(mode, ast.Constant) and mode.value in ("r", "rb", "rt") for mode in modes)
        match node.args:
            case [ast.Constant(value=str(path))] | [ast.Constant(value=str(path)), _] if plain:
                self.found.opens.append(path)
                return ""
        return "python code that opens a file which is not written out, or writes one"


def is_standard(module: str) -> bool:
    """Whether a module, by its whole name, is of the standard library."""
    return module.partition(".")[0] in sys.stdlib_module_names


def _names(node: ast.AST) -> list[str]:
    """The names of `a.b.c`; one that is empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else [""]
