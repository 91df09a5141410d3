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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spak.commandline import lists

MAX_TEXT = 4000
_OF: Mapping[str, str] = lists.sections()["python"]["of"]
FUNCTIONS = lists.names("python", "partly") | {
    f"{module}.{name}" for module, names in _OF.items() for name in names.split()
}
"""What is called, by its whole name."""
DATA, METHODS = lists.names("python", "data"), lists.names("python", "methods")
_NODES = tuple(getattr(ast, name) for name in lists.ordered("python", "nodes"))
_CALLS, _SHOWS = lists.names("python", "calls"), lists.names("python", "shows")
_TAKEN = _CALLS | {"open", "*"}
"""Names that are given no other meaning."""
_STARTS = lists.names("python", "starts")
_KEYWORDS, _REACHES = lists.names("python", "keywords"), lists.names("python", "reaches")
_FIELDS = lists.names("python", "fields")
"""Attributes that are data."""
_HIDDEN = re.compile(r"(?i)^_(?!_(version|file|name|doc)__$)|environ|secret|token|passw|key|cred|dsn")


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
    nodes = list(ast.walk(tree))
    reading = _Reading(nodes)
    for node in nodes:
        reading.found.why = reading.found.why or reading.node(node)
    return reading.found


class _Reading:
    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.found = Text()
        self.modules: dict[str, str] = {}
        """What names stand for: modules, and what is in them, by whole names."""
        self.own = set(filter(None, map(_set, nodes)))
        """Names that the text gives a value."""
        self.above = {id(part): node for node in nodes for part in ast.iter_child_nodes(node)}
        """What each node is a part of."""
        for node in nodes:
            match node:
                case ast.Import(names=aliases):
                    for alias in aliases:
                        head = alias.name.partition(".")[0]
                        whole = alias.name if alias.asname else head
                        self._imported(alias.asname or head, whole, alias.name)
                case ast.ImportFrom(names=aliases):
                    for alias in aliases:
                        whole = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                        self._imported(alias.asname or alias.name, whole, whole.rpartition(".")[0], whole)

    def _imported(self, name: str, whole: str, *loaded: str) -> None:
        if name in _TAKEN or whole.startswith(".") or self.modules.setdefault(name, whole) != whole:
            self.found.why = "python code that gives a module another name"
        elif loaded[0].partition(".")[0] in _REACHES or "__main__" in loaded[-1]:
            self.found.why = "python code that loads what starts processes or connects"
        elif not is_standard(whole):
            self.found.imports |= set(loaded)

    def node(self, node: ast.AST) -> str:
        """Why the node does more than compute; empty when it does not."""
        above, whole = self.above.get(id(node)), self._whole(node)
        called = isinstance(above, ast.Call) and above.func is node
        match node:
            case ast.Call():
                return self._call(node)
            case ast.Attribute(ctx=ast.Store()):
                return "python code that changes what is not its own"
            case ast.Name() | ast.arg() if name := _set(node):
                taken = name in self.modules or name in _TAKEN
                return "python code that gives a name another meaning" if taken else ""
            case ast.Attribute() | ast.Name() if whole:
                return "" if called or isinstance(above, ast.Attribute) else self._of_module(node, above)
            case ast.Attribute(attr=attr):
                return "" if attr in METHODS | _FIELDS else "python code that reaches for internals"
            case ast.Name(id=name) if not called:
                known = name in self.own | _FIELDS or name in _CALLS - {"print", "type"}
                return "" if known else f"python code that names {name}"
            case ast.Constant(value=str(text)):
                self.found.texts.append(text)
            case ast.BinOp(op=ast.Mult() | ast.Pow() | ast.LShift()) if not _is_small(node):
                return "python code with a product whose size is not known"
        return "" if isinstance(node, _NODES) else "python code with more than imports and expressions"

    def _whole(self, node: ast.AST) -> str:
        """The whole name of what `a.b.c` is of a module; empty for anything else."""
        first, *rest = _names(node)
        return ".".join([self.modules[first], *rest]) if first in self.modules else ""

    def _of_module(self, node: ast.Attribute | ast.Name, above: ast.AST | None) -> str:
        """Why what is named of a module may be more than data that is shown."""
        names, whole = _names(node), self._whole(node)
        module, last = whole.partition(".")[0], names[-1]
        constant = last.isupper() or (module == "ast" and last[:1].isupper())
        if whole in DATA | FUNCTIONS or (module in _OF and constant):
            return ""
        shown = isinstance(above, ast.Expr | ast.FormattedValue | ast.Compare) or (
            isinstance(above, ast.Call) and _names(above.func)[0] in _SHOWS and node in above.args
        )
        plain = last in _FIELDS or last.isupper() or whole == "sys.path" or not is_standard(whole)
        if shown and plain and not any(map(_HIDDEN.search, names)):
            return ""
        return "python code that hands a module, or what is in one, on"

    def _call(self, node: ast.Call) -> str:
        names, whole = _names(node.func), self._whole(node.func)
        if any(word.arg not in _KEYWORDS for word in node.keywords):
            return "python code that hands over what may be called"
        if names == ["open"]:
            return self._open(node)
        if whole in FUNCTIONS or (isinstance(node.func, ast.Attribute) and not whole):
            return ""
        module, _, name = whole.rpartition(".")
        if whole and (is_standard(whole) or name in _STARTS or name.startswith("__")):
            return f"python code that calls {whole}"
        if whole:
            self.found.calls.add(module)
        elif names[0] not in _CALLS or (names[0] == "type" and len(node.args) != 1):
            return "python code that calls more than print and arithmetic"
        return ""

    def _open(self, node: ast.Call) -> str:
        modes = node.args[1:] + [word.value for word in node.keywords if word.arg == "mode"]
        plain = all(isinstance(mode, ast.Constant) and mode.value in ("r", "rb", "rt") for mode in modes)
        path = node.args[0] if node.args else None
        if plain and isinstance(path, ast.Constant) and isinstance(path.value, str):
            self.found.opens.append(path.value)
            return ""
        return "python code that opens a file which is not written out, or writes one"


def is_standard(module: str) -> bool:
    """Whether a module, by its whole name, is of the standard library."""
    return module.partition(".")[0] in sys.stdlib_module_names


def _set(node: ast.AST) -> str:
    """The name to which the node gives a value; empty for any other."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    return node.arg if isinstance(node, ast.arg) else ""


def _is_small(node: ast.BinOp) -> bool:
    """Whether a product is of no other one and no list, and a power of small numbers."""
    sides = (node.left, node.right)
    if isinstance(node.op, ast.Mult):
        return not any(isinstance(side, ast.BinOp | ast.List | ast.Tuple | ast.ListComp) for side in sides)
    return all(
        isinstance(side, ast.Constant) and isinstance(side.value, int | float) and side.value <= most
        for side, most in zip(sides, (1024, 64), strict=True)
    )


def _names(node: ast.AST) -> list[str]:
    """The names of `a.b.c`; one that is empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else [""]
