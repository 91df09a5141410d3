"""Python given on a command line: whether it does no more than import, compute, read files and print.

`understood` takes the text and gives what it opens and imports, or a reason why it may do more. Nodes of the
syntax, functions and methods are lists of what is known to be harmless; anything else is a reason.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from dataclasses import dataclass, field

from spak.commandline.words import words

MAX_TEXT = 4000
_NODES = (
    *(ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.If, ast.Pass, ast.Assert),
    *(ast.Try, ast.ExceptHandler, ast.Raise, ast.With, ast.withitem, ast.Import, ast.ImportFrom, ast.alias),
    *(ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Call, ast.keyword),
    *(ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.comprehension, ast.IfExp, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.NamedExpr),
    *(ast.JoinedStr, ast.FormattedValue, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
    *(ast.Break, ast.Continue),
)
_CALLS = words(
    "print len sorted sum min max range str int float bool list dict set tuple repr abs round hex oct "
    "bin ord chr type enumerate zip any all divmod pow hash isinstance reversed"
)
_METHODS = words(
    "version python_version join split strip lower upper format encode decode keys values items index "
    "count startswith endswith cpu_count getcwd machine system platform hexdigest exit read readline "
    "readlines splitlines get load loads dumps lstrip rstrip replace title isdigit zfill rjust ljust "
    "group findall match search time now today isoformat"
)
_FUNCTIONS = words(
    "sys.exit sys.version_info.index os.cpu_count os.getcwd os.path.join os.path.split json.load json.loads "
    "json.dumps platform.system platform.machine platform.platform platform.version platform.python_version "
    "re.match re.search re.findall re.split time.time datetime.now datetime.today datetime.datetime.now "
    "datetime.date.today "
    "sys.stdin.read sys.stdin.readline sys.stdin.readlines sys.version.split string.ascii_letters.index "
    "sys.platform.startswith sys.path.index"
)
"""What of the standard library's modules is called."""
_KEYWORDS = words("sep end flush indent start reverse sort_keys ensure_ascii encoding errors mode")
_DUNDER = frozenset({"__version__", "__file__", "__name__", "__doc__"})
_FROM = words(
    "sys json math re platform os time datetime collections itertools functools string textwrap os.path"
)
_REACHES = words(
    "socket subprocess ctypes pty multiprocessing http urllib ftplib smtplib telnetlib antigravity "
    "idlelib turtledemo imaplib poplib nntplib xmlrpc webbrowser asyncio code codeop runpy importlib"
)
_STARTS = words(
    "system popen Popen eval exec run call check_output check_call spawn spawnl spawnv fork execv "
    "execl execvp getoutput import_module __import__ loads_unsafe"
)
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
    if reading.found.calls and not reading.found.why:
        reading.found.why = reading.hands_on(tree)
    return reading.found


class _Reading:
    def __init__(self) -> None:
        self.found = Text()
        self.own: dict[str, str] = {}
        """Names that stand for modules which are not of the standard library, or for what they give."""
        self.standard: set[str] = set()

    def names(self, tree: ast.Module) -> None:
        """Which names stand for modules, and for what functions of the project gave."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._imported(alias.name, alias.asname or alias.name.partition(".")[0])
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    self._imported(node.module or "", alias.asname or alias.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                module = self.own.get(_root(node.value.func))
                for target in node.targets if module else ():
                    if isinstance(target, ast.Name):
                        self.own[target.id] = module or ""

    def _imported(self, module: str, name: str) -> None:
        if module.partition(".")[0] in sys.stdlib_module_names:
            self.standard.add(name)
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
                return _attribute(node)
            case ast.Import():
                return self._import(node)
            case ast.ImportFrom():
                return self._import_from(node)
            case ast.Name():
                return self._name(node)
            case ast.ExceptHandler(name=str(name)) if name in _CALLS | self.standard or name in self.own:
                return "python code that gives a function another meaning"
            case ast.Subscript(ctx=ast.Store()) | ast.Subscript(ctx=ast.Del()):
                return "python code that changes what is not its own"
            case ast.BinOp(op=ast.Pow() | ast.LShift()) if not _small(node):
                return "python code with a power, whose size is not known"
            case ast.Constant(value=int(value)) if value > _LARGEST:
                return "python code with a number that may be a size"
        return ""

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
            return "python code that makes classes" if name.id == "type" and len(node.args) != 1 else ""
        if not isinstance(name, ast.Attribute) or name.attr not in _METHODS:
            return "python code that calls more than print and arithmetic"
        if _root(name) in self.standard and _dotted(name) not in _FUNCTIONS and _root(name) != "math":
            return f"python code that calls {_dotted(name)}"
        if name.attr == "system" and _dotted(name) != "platform.system":
            return "python code that calls more than print and arithmetic"
        if name.attr == "format" and not _plain_format(name.value):
            return "python code that formats by a text which may reach for internals"
        if name.attr in ("load", "loads", "dumps") and not _is_json(name.value):
            return "python code that loads more than JSON"
        return ""

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
            taken = node.id in _CALLS or node.id in ("platform", "json", "open") or node.id in self.standard
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
            for alias in node.names
        )
        if node.level or (standard and module not in _FROM) or hidden:
            return "python code that imports names which hide what is called"
        return ""

    def hands_on(self, tree: ast.Module) -> str:
        """Why functions of the project may be given what starts programs."""
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and id(node) not in called and _root(node) in self.standard:
                return "python code that may hand a function of a module to the project's"
        return ""


def _attribute(node: ast.Attribute) -> str:
    if node.attr.startswith("_") and node.attr not in _DUNDER:
        return "python code that reaches for internals"
    if not isinstance(node.ctx, ast.Load):
        return "python code that changes what is not its own"
    if node.attr in ("environ", "environb", "modules"):
        return "python code that shows the environment"
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


def _dotted(node: ast.Attribute) -> str:
    return ".".join([_root(node), *reversed(_parts(node))])


def _is_json(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "json"


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
