"""Python given on a command line: whether it does no more than import, compute, read files and print.

`understood` takes the text and gives what it opens and imports, or a reason why it may do more. Nodes of the
syntax, functions and methods are lists of what is known to be harmless (`[python]` in lists.toml); all else
is a reason. No module, and no function of one that does more than compute, becomes a value that could be
handed on: so what is called of a value is harmless, whichever it is.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from dataclasses import dataclass, field

from spak.commandline import lists

MAX_TEXT = 4000
_OF = lists.table("python", "of")
PURE = frozenset(_OF)
"""Modules of the standard library that only compute, as far as they are named."""
FUNCTIONS = lists.names("python", "partly") | {
    f"{module}.{name}" for module, names in _OF.items() for name in names.split()
}
"""What is called, by its whole name."""
DATA, METHODS, MODULES = (lists.names("python", key) for key in ("data", "methods", "modules"))
_NODES = tuple(getattr(ast, name) for name in lists.ordered("python", "nodes"))
_CALLS = lists.names("python", "calls")
_SHOWS = lists.names("python", "shows")
"""Functions that keep nothing of what they are given."""
_KEYWORDS = lists.names("python", "keywords")
_DUNDER = frozenset({"__version__", "__file__", "__name__", "__doc__"})
_FROM = PURE | {"sys", "platform", "os", "time", "os.path"}
_REACHES = lists.names("python", "reaches")
_STARTS = lists.names("python", "starts")
_INTERNAL = ("gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_", "obj")
"""How attributes begin that lead to frames, code and modules without an underscore."""
_HIDES = frozenset({"environ", "environb", "modules", "system"})
_LARGEST = 1_000_000
_BUILTINS = frozenset(dir(builtins))


@dataclass(slots=True)
class Text:
    """What a text does besides computing, and why it may do more."""

    why: str = ""
    opens: list[str] = field(default_factory=list)
    """Files that it reads."""
    imports: list[str] = field(default_factory=list)
    """Modules that are not of the standard library; what is called of them has to be the project's."""
    calls: set[str] = field(default_factory=set)
    """Those of the imports of which something is called."""


def understood(text: str) -> Text:
    """What the text opens, imports and calls."""
    if len(text) > MAX_TEXT:
        return Text("a long program given on the command line")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Text("python code that does not parse")
    reading = _Reading()
    reading.names(tree)
    for node in ast.walk(tree):
        reading.found.why = reading.found.why or reading.node(node)
    return reading.found


class _Reading:
    def __init__(self) -> None:
        self.found = Text()
        self.own: dict[str, str] = {}
        """Names that stand for modules which are not of the standard library, or for what they give."""
        self.standard: dict[str, str] = {}
        """Names that stand for modules of the standard library, or for what is in them: whole names."""
        self.above: dict[int, ast.AST] = {}
        """What each node is a part of."""

    def names(self, tree: ast.Module) -> None:
        """Which names stand for modules, and for what functions of the project gave."""
        for node in ast.walk(tree):
            self.above |= {id(part): node for part in ast.iter_child_nodes(node)}
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self._imported(alias.name, alias.asname or first, alias.name if alias.asname else first)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    module = node.module or ""
                    self._imported(module, alias.asname or alias.name, f"{module}.{alias.name}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                of = self.own.get(_root(node.value.func))
                for target in node.targets if of else ():
                    if isinstance(target, ast.Name):
                        self.own[target.id] = of or ""

    def _imported(self, module: str, name: str, whole: str) -> None:
        if module.partition(".")[0] in sys.stdlib_module_names:
            if self.standard.setdefault(name, whole) != whole:
                self.found.why = "python code that gives a module another name"
        else:
            self.own[name] = module
            self.found.imports.append(module)

    def node(self, node: ast.AST) -> str:
        """Why the node does more than compute; empty when it does not."""
        if not isinstance(node, _NODES):
            return "python code with more than straight statements"
        match node:
            case ast.Call():
                return self._call(node)
            case ast.Attribute():
                return _attribute(node) or self._handed_on(node)
            case ast.Import():
                return self._import(node)
            case ast.ImportFrom():
                return self._import_from(node)
            case ast.Name():
                return self._name(node) or self._handed_on(node)
            case ast.ExceptHandler(name=str(name)) | ast.arg(arg=name) if self._taken(name):
                return "python code that gives a function another meaning"
            case ast.Subscript(ctx=ast.Store()) if not self._is_own_value(node.value):
                return "python code that changes what is not its own"
            case ast.Subscript(ctx=ast.Del()):
                return "python code that changes what is not its own"
            case ast.BinOp(op=ast.Pow() | ast.LShift()) if not _small(node):
                return "python code with a power, whose size is not known"
            case ast.Constant(value=int(value)) if value > _LARGEST:
                return "python code with a number that may be a size"
        return ""

    def _taken(self, name: str) -> bool:
        return (
            name in _CALLS
            or name in self.standard
            or name in self.own
            or name in ("open", "json", "platform")
        )

    def _is_own_value(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and not self._taken(node.id)

    def _whole(self, node: ast.AST) -> str:
        """The whole name of what `a.b.c` is of the standard library; empty for anything else."""
        root = self.standard.get(_root(node), "")
        rest = _parts(node) if isinstance(node, ast.Attribute) else []
        return ".".join([root, *reversed(rest)]) if root else ""

    def _handed_on(self, node: ast.Attribute | ast.Name) -> str:
        """Why a function or a module may come where somebody else calls it."""
        above = self.above.get(id(node))
        called = isinstance(above, ast.Call) and above.func is node
        if called or isinstance(above, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return ""
        last = node.attr if isinstance(node, ast.Attribute) else node.id
        if last in ("open", "type", "format", "format_map"):
            return "python code that hands over what may be called"
        own, whole = self.own.get(_root(node)), self._whole(node)
        if own is not None and not self._is_shown(node, ""):
            self.found.calls.add(own)
            odd = set(_parts(node)) & _STARTS
            return f"python code that hands {sorted(odd)[0]} on" if odd else ""
        if not whole or whole in DATA or self._is_shown(node, whole):
            return ""
        module = whole.partition(".")[0]
        if module in PURE and (whole in FUNCTIONS or _is_constant(module, whole.removeprefix(f"{module}."))):
            return ""
        return "python code that hands a module, or a function of one, on"

    def _is_shown(self, node: ast.AST, whole: str) -> bool:
        """Whether all that is done with the value is to show it, or to compare it."""
        match above := self.above.get(id(node)):
            case ast.FormattedValue() | ast.Compare() | ast.Expr() | ast.ExceptHandler() | ast.Raise():
                return True
            case ast.Starred() | ast.BinOp():
                return self._is_shown(above, "")
            case ast.Call(func=ast.Name(id=name)) if node in above.args:
                return name in _SHOWS or (whole == "sys.path" and name in ("sorted", "list", "enumerate"))
            case ast.Call(func=ast.Attribute(attr="join")) | ast.Subscript():
                return whole == "sys.path"
            case ast.For() | ast.comprehension():
                return whole == "sys.path" and above.iter is node
        return False

    def _call(self, node: ast.Call) -> str:
        name = node.func
        if any(keyword.arg not in _KEYWORDS for keyword in node.keywords) and not self.own.get(_root(name)):
            return "python code that hands over what may be called"
        if isinstance(name, ast.Name) and name.id == "open":
            return self._open(node)
        module = self.own.get(_root(name))
        if module is not None:
            self.found.calls.add(module)
            parts = _parts(name)
            odd = [part for part in parts if part in _STARTS or part in sys.stdlib_module_names]
            return f"python code that calls {odd[0]}" if odd or not parts else ""
        if isinstance(name, ast.Name) and name.id in _CALLS:
            return self._type(node) if name.id == "type" else ""
        whole = self._whole(name)
        if whole:
            return "" if whole in FUNCTIONS else f"python code that calls {whole}"
        if not isinstance(name, ast.Attribute) or name.attr not in METHODS:
            return "python code that calls more than print and arithmetic"
        if name.attr == "system":
            return "python code that calls more than print and arithmetic"
        if name.attr == "format" and not _plain_format(name.value):
            return "python code that formats by a text which may reach for internals"
        if name.attr in ("load", "loads", "dumps"):
            return "python code that loads more than JSON"
        return ""

    def _type(self, node: ast.Call) -> str:
        """Why a type may be made, or be used to make what `open` gives."""
        above = self.above.get(id(node))
        named = isinstance(above, ast.Attribute) and above.attr == "__name__"
        return (
            ""
            if len(node.args) == 1 and (named or self._is_shown(node, ""))
            else "python code that makes classes"
        )

    def _open(self, node: ast.Call) -> str:
        first, *more = node.args or [ast.Constant(None)]
        modes = more[:1] + [word.value for word in node.keywords if word.arg == "mode"]
        plain = all(isinstance(mode, ast.Constant) and mode.value in ("r", "rb", "rt") for mode in modes)
        if (
            not isinstance(first, ast.Constant)
            or not isinstance(first.value, str)
            or not plain
            or len(more) > 1
        ):
            return "python code that opens a file which is not written out, or writes one"
        self.found.opens.append(str(getattr(first, "value", "")))
        return ""

    def _name(self, node: ast.Name) -> str:
        if not isinstance(node.ctx, ast.Load):
            above = self.above.get(id(node))
            given = isinstance(above, ast.Assign) and isinstance(above.value, ast.Call)
            kept = given and _root(above.value.func) in self.own  # type: ignore[union-attr]
            taken = self._taken(node.id) and not (node.id in self.own and kept)
            return "python code that gives a function another meaning" if taken else ""
        if node.id in _BUILTINS and node.id not in _CALLS and node.id not in ("open", *_DUNDER):
            known = getattr(builtins, node.id)
            plain = node.id in ("True", "False", "None") or (
                isinstance(known, type) and issubclass(known, BaseException)
            )
            return "" if plain else f"python code that names {node.id}"
        return ""

    def _import(self, node: ast.Import) -> str:
        if any(alias.name.partition(".")[0] in _REACHES for alias in node.names):
            return "python code that loads what starts processes or connects"
        shown = {alias.asname for alias in node.names if alias.asname}
        if shown & (_CALLS | {"platform", "json", "open"}):
            return "python code that gives a module another name"
        return ""

    def _import_from(self, node: ast.ImportFrom) -> str:
        module = node.module or ""
        standard = module.partition(".")[0] in sys.stdlib_module_names
        hidden = any(
            alias.asname in (_CALLS | {"json", "platform", "open"})
            or alias.name in ("*", *_HIDES, *_CALLS, *_STARTS)
            or (not standard and alias.name in sys.stdlib_module_names)
            or (standard and alias.asname)
            or (
                module in PURE
                and f"{module}.{alias.name}" not in FUNCTIONS | DATA
                and not _is_constant(module, alias.name)
            )
            for alias in node.names
        )
        if node.level or (standard and module not in _FROM) or hidden:
            return "python code that imports names which hide what is called"
        return ""


def _is_constant(module: str, name: str) -> bool:
    """Whether it is `re.I` and the like, or a kind of node of a syntax tree."""
    return "." not in name and (name.isupper() or (module == "ast" and name[:1].isupper()))


def _attribute(node: ast.Attribute) -> str:
    if node.attr.startswith("_") and node.attr not in _DUNDER:
        return "python code that reaches for internals"
    if not isinstance(node.ctx, ast.Load):
        return "python code that changes what is not its own"
    if node.attr in ("environ", "environb", "modules"):
        return "python code that shows the environment"
    if node.attr in MODULES or node.attr.startswith(_INTERNAL):
        return "python code that reaches a module through another"
    return ""


def _parts(node: ast.AST) -> list[str]:
    """The names of `a.b.c` after the first; itself for a plain name; empty where there are calls between."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (parts or [node.id]) if isinstance(node, ast.Name) else []


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _plain_format(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and not re.search(r"\{[^{}]*[.\[]", re.sub(r":[^{}]*", "", node.value))
    )


def _small(node: ast.BinOp) -> bool:
    """True for a power of two plain numbers whose value is short."""
    left, right = node.left, node.right
    return (
        isinstance(left, ast.Constant)
        and isinstance(right, ast.Constant)
        and isinstance(left.value, (int, float))
        and isinstance(right.value, (int, float))
        and left.value <= 1024
        and right.value <= 64
    )
