"""The facts of one file, the same shape for every language: what it defines, and what its code refers to.

A `Face` is what other files can see; a `Body` is what only the file itself needs to be linked, and where
things are. Both are plain JSON values, a pure function of the file's bytes and EXTRACTOR. `Maker` collects
them while an extractor walks a syntax tree.

    face  = {"names": {NAME: [bind...]}, "symbols": {TOP: {QUAL: symbol}}, "all": [NAME...] or None,
             "stars": [[level, module]...]}   an include of C is one of level INCLUDE, its module a path
    body  = {"spans": {QUAL: [line, end, signature]}, "locals": {QUAL: {NAME: [bind...]}},
             "refs": {CALLER: [[role, chain, line...]...]}, "dynamic": [[caller, what, line]...],
             "errors": [line...]}
    bind  = ["s", QUAL] a symbol, ["i", level, module, name] an import of a name, ["m", module] an import of a
            module (of other languages, with its level), ["v", chain, annotation, scope] a value
    symbol = {"k": kind, "v": visibility} and, as far as there are any: "bases" (chains), "params" ([name,
            annotation, star]), "ret" (annotation), "gives" (chains), "flags", "dec" (chains), "names" (of a
            class), "attrs" (of its instances)

In Go and Rust `names` also has members of types of other files as `Type.member`, their bases as `Type.+`,
and methods of interfaces as `.member`. `*` of a function, or of a module within a file, is what it has all
names of. Flag `m` is such a module, `u` one that sees the names around it, `o` a method that types may have
without saying so, `d` a prototype. `all` is the package's name.

QUAL is the dotted name in the file, `~2` appended to the second of one name; `""` is the module. A chain is
an expression without its arguments: a root and steps, such as `self.client.get()`.

    .name attribute   () call   [] or [0] item   <> one of many   !w entered by `with`   !e counted   !l many
    A|B   either      ? unknown root             'str a literal
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

EXTRACTOR = 5
"""Raise it when the same bytes give other facts: every file is then parsed again."""

INCLUDE = -1
RELATIVE = -2
GO = -3
RUST = -4
"""Levels of an import that is an include of C, or of JavaScript: its module is a path; of Go, where it is the
path of a package, "." for the file's own; of Rust, where it is a chain that begins with `crate`, `mod` (the
file's own module), or a name."""
RUST_TEST = "#[test]"
"""The end of the signature of a test of Rust."""
CLASSES = ("class", "interface")

Face = dict[str, Any]
Body = dict[str, Any]
Symbol = dict[str, Any]
Bind = list[Any]

MAX_CHAIN = 400
MAX_SIGNATURE = 240
MOST_LINES = 50


def visibility(name: str, member: bool) -> str:
    """By Python's habits; other languages say it in words."""
    if name.startswith("__") and name.endswith("__"):
        return "public"
    if name.startswith("__"):
        return "private"
    return ("protected" if member else "private") if name.startswith("_") else "public"


class Maker:
    """Collects the facts of one file. Symbols, names and references come in the order of the text."""

    def __init__(self) -> None:
        self.names: dict[str, list[Bind]] = {}
        self.symbols: dict[str, Symbol] = {"": {"k": "module", "v": "public"}}
        self.spans: dict[str, list[Any]] = {}
        self.locals: dict[str, dict[str, list[Bind]]] = {}
        self.refs: dict[tuple[str, str, str], list[int]] = {}
        self.dynamic: list[list[Any]] = []
        self.errors: list[int] = []
        self.stars: list[list[Any]] = []
        self.all: list[str] | None = None
        self.parents: dict[str, str] = {}

    def symbol(
        self, parent: str, name: str, kind: str, line: int, end: int, sign: str = "", **more: Any
    ) -> str:
        """Add a symbol to its parent and give its QUAL."""
        qual = base = f"{parent}.{name}" if parent else name
        count = 1
        while qual in self.symbols:
            count += 1
            qual = f"{base}~{count}"
        member = self.symbols[parent]["k"] in CLASSES
        seen = more.pop("v", None) or visibility(name, member)
        self.symbols[qual] = {"k": kind, "v": seen, **{key: value for key, value in more.items() if value}}
        self.spans[qual] = [line, end, sign[:MAX_SIGNATURE]]
        self.parents[qual] = parent
        return qual

    def bind(self, scope: str, name: str, bind: Bind) -> None:
        """Let a name of a scope stand for something."""
        kind = self.symbols[scope]["k"]
        if kind == "module":
            table = self.names
        elif kind in CLASSES:
            table = self.symbols[scope].setdefault("names", {})
        else:
            table = self.locals.setdefault(scope, {})
        found = table.setdefault(name, [])
        if bind not in found and len(found) < 20:
            found.append(bind)

    def ref(self, caller: str, role: str, chain: str, line: int) -> None:
        """Note that code refers to something."""
        if len(chain) > MAX_CHAIN:
            return
        lines = self.refs.setdefault((caller, role, chain), [])
        if len(lines) < MOST_LINES and (not lines or lines[-1] != line):
            lines.append(line)

    def scope_of(self, caller: str) -> str:
        """The scope in which the names of a symbol's text are looked up."""
        while self.symbols[caller]["k"] in ("variable", "constant"):
            caller = self.parents[caller]
        return caller

    def settled(self, scope: str, chain: str) -> str:
        """The chain with a local name that has one value replaced by that value, a few times."""
        for _ in range(3):
            root, rest = split_root(chain)
            binds = self.locals.get(scope, {}).get(root, ())
            if len(binds) != 1 or binds[0][0] != "v" or binds[0][2] or "|" in binds[0][1] or not binds[0][1]:
                break
            chain = binds[0][1] + rest
        return chain if len(chain) <= MAX_CHAIN else ""

    def facts(self) -> tuple[Face, Body]:
        """The finished facts."""
        tops: dict[str, dict[str, Symbol]] = {}
        for qual, symbol in self.symbols.items():
            if qual:
                tops.setdefault(top(qual), {})[qual] = symbol
        face = {"names": self.names, "symbols": tops, "all": self.all, "stars": self.stars}
        refs: dict[str, list[list[Any]]] = {}
        for (caller, role, chain), lines in self.refs.items():
            if self._kept(caller, chain):
                refs.setdefault(caller, []).append([role, chain, *lines])
        body = {
            "spans": self.spans,
            "locals": self.locals,
            "refs": refs,
            "dynamic": self.dynamic,
            "errors": self.errors,
        }
        return face, body

    def _kept(self, caller: str, chain: str) -> bool:
        """Whether a reference can lead anywhere: not a bare local variable, not a builtin."""
        if "|" in chain:
            return True
        root, rest = split_root(chain)
        if "." in rest:
            return True
        local, binds = self._found(caller, root.removeprefix("^"))
        if binds is None:
            return bool(self.stars) or self._sees_all(caller)
        return not local or any(bind[0] != "v" or (rest and bind[1]) for bind in binds)

    def _sees_all(self, scope: str) -> bool:
        """Whether a function or module around has all names of something (`use x::*`)."""
        while scope:
            if "*" in self.locals.get(scope, ()) or "*" in self.symbols[scope].get("names", ()):
                return True
            scope = self.parents[scope]
        return False

    def _found(self, caller: str, root: str) -> tuple[bool, Iterable[Bind] | None]:
        """Whether a name is local to a function, and what it stands for; None where nothing here binds it."""
        scope = first = self.scope_of(caller)
        while scope:
            symbol = self.symbols[scope]
            if symbol["k"] in CLASSES:
                inside = scope == first or "m" in symbol.get("flags", "")
                found = symbol.get("names", {}).get(root) if inside else None
                if found:
                    return False, found
            else:
                if any(param[0] == root for param in symbol.get("params", ())):
                    return True, ()
                found = self.locals.get(scope, {}).get(root)
                if found:
                    return True, found
            scope = self.parents[scope]
        return False, self.names.get(root)


@lru_cache(50_000)
def top(qual: str) -> str:
    """The name at the top level of the file that a symbol belongs to."""
    return qual.partition(".")[0].partition("~")[0]


@lru_cache(50_000)
def split_root(chain: str) -> tuple[str, str]:
    """Root and steps of a chain without alternatives."""
    for at, sign in enumerate(chain):
        if sign in ".([<!" and at:
            return chain[:at], chain[at:]
    return chain, ""
