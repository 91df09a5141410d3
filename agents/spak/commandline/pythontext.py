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
from collections.abc import Mapping
from dataclasses import dataclass, field

from spak.commandline import lists

MAX_TEXT = 4000
_OF: Mapping[str, str] = lists.section("python")["of"]
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
_TAKEN = _CALLS | {"open", "json", "platform"}
"""Names that no text may give another meaning."""


@dataclass(slots=True)
class Text:
    """What a text does besides computing, and why it may do more."""

    why: str = ""
    opens: list[str] = field(default_factory=list)
    """Files that it reads."""
    imports: set[str] = field(default_factory=set)
    """Modules that are not of the standard library, and names of them."""
    calls: set[str] = field(default_factory=set)
    """Modules, not of the standard library, of which something is called: they have to be the project's."""


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
            match node:
                case ast.Import(names=aliases):
                    for alias in aliases:
                        name = alias.asname or alias.name.partition(".")[0]
                        self._imported(alias.name, name, alias.name if alias.asname else name)
                case ast.ImportFrom(module=str(module), names=aliases, level=0):
                    for alias in aliases:
                        self._imported(module, alias.asname or alias.name, f"{module}.{alias.name}")
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=targets, value=ast.Call(func=func)) if of := self._own(func):
                    self.own |= {target.id: of for target in targets if isinstance(target, ast.Name)}

    def _imported(self, module: str, name: str, whole: str) -> None:
        if not _is_standard(module):
            self.own[name] = module
            self.found.imports |= {module, whole}
        elif self.standard.setdefault(name, whole) != whole:
            self.found.why = "python code that gives a module another name"

    def _own(self, node: ast.AST) -> str | None:
        """The module, not of the standard library, that `a.b.c` is of."""
        return self.own.get(_names(node)[0])

    def node(self, node: ast.AST) -> str:
        """Why the node does more than compute; empty when it does not."""
        if not isinstance(node, _NODES):
            return "python code with more than straight statements"
        match node:
            case ast.Call():
                return self._call(node)
            case ast.Attribute():
                return _attribute(node) or self._handed_on(node)
            case ast.Import() | ast.ImportFrom():
                return _import(node)
            case ast.Name():
                return self._name(node) or self._handed_on(node)
            case ast.ExceptHandler(name=str(name)) | ast.arg(arg=name) if self._taken(name):
                return "python code that gives a function another meaning"
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()) if not self._taken(name):
                return ""
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                return "python code that changes what is not its own"
            case ast.BinOp(
                ast.Constant(int() | float() as base),
                ast.Pow() | ast.LShift(),
                ast.Constant(int() | float() as power),
            ) if base <= 1024 and power <= 64:
                return ""
            case ast.BinOp(
                op=ast.Mult(), left=ast.BinOp(op=ast.Mult(), right=ast.Constant(one)), right=two
            ) if isinstance(one, int) and one > 1000 and not isinstance(two, ast.Name):
                return "python code with a product that may be a size"
            case ast.BinOp(op=ast.Pow() | ast.LShift()):
                return "python code with a power, whose size is not known"
            case ast.Constant(value=int(value)) if value > _LARGEST:
                return "python code with a number that may be a size"
        return ""

    def _taken(self, name: str) -> bool:
        return name in _TAKEN or name in self.standard or name in self.own

    def _whole(self, node: ast.AST) -> str:
        """The whole name of what `a.b.c` is of the standard library; empty for anything else."""
        first, *rest = _names(node)
        return ".".join([self.standard[first], *rest]) if first in self.standard else ""

    def _handed_on(self, node: ast.Attribute | ast.Name) -> str:
        """Why a function or a module may come where somebody else calls it."""
        above = self.above.get(id(node))
        called = isinstance(above, ast.Call) and above.func is node
        if called or isinstance(above, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return ""
        names = _names(node)
        last = node.attr if isinstance(node, ast.Attribute) else node.id
        if last in ("open", "type", "format", "format_map"):
            return "python code that hands over what may be called"
        own, whole = self._own(node), self._whole(node)
        if own is not None and not self._is_shown(node, ""):
            self.found.calls.add(own)
            odd = set(names[1:] or names) & _STARTS
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
        name, names, own, whole = node.func, _names(node.func), self._own(node.func), self._whole(node.func)
        if any(keyword.arg not in _KEYWORDS for keyword in node.keywords) and not own:
            return "python code that hands over what may be called"
        if names == ["open"]:
            return self._open(node)
        if own is not None:
            self.found.calls.add(own)
            parts = names[:0:-1] or names
            odd = [part for part in parts if part in _STARTS or part in sys.stdlib_module_names]
            return f"python code that calls {odd[0]}" if odd else ""
        if names[0] in _CALLS and len(names) == 1:
            return self._type(node) if names == ["type"] else ""
        if whole:
            return "" if whole in FUNCTIONS else f"python code that calls {whole}"
        if not isinstance(name, ast.Attribute) or name.attr not in METHODS or name.attr == "system":
            return "python code that calls more than print and arithmetic"
        if name.attr == "format" and not _plain_format(name.value):
            return "python code that formats by a text which may reach for internals"
        return "python code that loads more than JSON" if name.attr in ("load", "loads", "dumps") else ""

    def _type(self, node: ast.Call) -> str:
        """Why a type may be made, or be used to make what `open` gives."""
        above = self.above.get(id(node))
        named = isinstance(above, ast.Attribute) and above.attr == "__name__"
        shown = len(node.args) == 1 and (named or self._is_shown(node, ""))
        return "" if shown else "python code that makes classes"

    def _open(self, node: ast.Call) -> str:
        modes = node.args[1:] + [word.value for word in node.keywords if word.arg == "mode"]
        plain = all(isinstance(mode, ast.Constant) and mode.value in ("r", "rb", "rt") for mode in modes)
        match node.args:
            case [ast.Constant(value=str(path))] | [ast.Constant(value=str(path)), _] if plain:
                self.found.opens.append(path)
                return ""
        return "python code that opens a file which is not written out, or writes one"

    def _name(self, node: ast.Name) -> str:
        if isinstance(node.ctx, ast.Load):
            known = getattr(builtins, node.id, None)
            error = isinstance(known, type) and issubclass(known, BaseException)
            plain = known is None or error or node.id in _CALLS or node.id in ("open", *_DUNDER)
            return "" if plain else f"python code that names {node.id}"
        match self.above.get(id(node)):
            case ast.Assign(value=ast.Call(func=func)) if node.id in self.own and self._own(func) is not None:
                return ""
        return "python code that gives a function another meaning" if self._taken(node.id) else ""


def _import(node: ast.Import | ast.ImportFrom) -> str:
    if isinstance(node, ast.Import):
        if any(alias.name.partition(".")[0] in _REACHES for alias in node.names):
            return "python code that loads what starts processes or connects"
        renamed = any(alias.asname in _TAKEN for alias in node.names)
        return "python code that gives a module another name" if renamed else ""
    module = node.module or ""
    hidden = any(_hides(module, alias) for alias in node.names)
    if node.level or (_is_standard(module) and module not in _FROM) or hidden:
        return "python code that imports names which hide what is called"
    return ""


def _hides(module: str, alias: ast.alias) -> bool:
    """Whether a name that is imported from the module hides what is called."""
    if alias.asname in _TAKEN or alias.name in ("*", *_HIDES, *_CALLS, *_STARTS):
        return True
    if not _is_standard(module):
        return alias.name in sys.stdlib_module_names
    known = f"{module}.{alias.name}" in FUNCTIONS | DATA or _is_constant(module, alias.name)
    return alias.asname is not None or (module in PURE and not known)


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


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


def _names(node: ast.AST) -> list[str]:
    """The names of `a.b.c`; one that is empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else [""]


def _plain_format(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return not re.search(r"\{[^{}]*[.\[]", re.sub(r":[^{}]*", "", text))
    return False
