"""What the extractors of Go and Rust share: members that are written apart from their type, and local names.

A member's QUAL is `Type.member`, wherever it is written. If its type is in the file, the member is one of the
type's `names`; otherwise the file has a name `Type.member`, which the resolver asks the files around the
type for. The bases of a type that is elsewhere are under `Type.+`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from spak.world.facts import CLASSES, Maker, split_root
from spak.world.walker import Walker

if TYPE_CHECKING:
    from tree_sitter import Node

OUTER = "^"
"""Before a root: the name is no variable, parameter or field, whatever is nearer."""


class Typed(Walker, ABC):
    """One file under way."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.members: list[tuple[str, str, str, str]] = []
        """Scope, name of the type, member, QUAL."""
        self.bases: list[tuple[str, str, str, int]] = []
        """Scope, name of the type, chain, line."""
        self.generics: dict[str, dict[str, str]] = {}
        """What the type parameters of a symbol are bound by, as an annotation."""

    def run(self, root: Node) -> Maker:
        """Walk the whole tree."""
        self.walk(root)
        self._adopt()
        return self.maker

    def _adopt(self) -> None:
        """Give each type its members and bases."""
        symbols, names = self.maker.symbols, self.maker.names
        for scope, holder, name, qual in self.members:
            whole = f"{scope}.{holder}" if scope else holder
            known = symbols.get(whole, {}).get("k") in CLASSES
            table = symbols[whole].setdefault("names", {}) if known else names
            table.setdefault(name if known else f"{holder}.{name}", []).append(["s", qual])
            for param in symbols[qual].get("params", ()) if known else ():
                param[1] = ""  # the first parameter is `self`, without being declared
        for scope, holder, chain, line in self.bases:
            whole = f"{scope}.{holder}" if scope else holder
            if symbols.get(whole, {}).get("k") in CLASSES:
                symbols[whole].setdefault("bases", []).append(chain)
                self.maker.ref(whole, "base", chain, line)
            elif whole not in symbols:
                names.setdefault(f"{holder}.+", []).append(["v", chain, "", scope])
                self.maker.ref(scope, "base", chain, line)

    def define(
        self, caller: str, name: str, kind: str, node: Node, sign: str = "", *, seen: str, **more: object
    ) -> str:
        """Add a symbol and bind its name."""
        scope = self.maker.scope_of(caller)
        qual = self._symbol(scope, name, kind, node, sign, seen=seen, **more)
        self.maker.bind(scope, name, ["s", qual])
        return qual

    def member(
        self, scope: str, holder: str, name: str, kind: str, node: Node, sign: str = "", *, seen: str,
        **more: object,
    ) -> str:  # fmt: skip
        """Add a member of a type that may be elsewhere."""
        qual = self._symbol(scope, f"{holder}.{name}", kind, node, sign, seen=seen, **more)
        self.members.append((scope, holder, name, qual))
        return qual

    def field(
        self, holder: str, name: str, node: Node, annotation: str, *, seen: str, kind: str = "variable"
    ) -> str:
        """Add a field of a type, with what it is declared to be."""
        qual = self._symbol(holder, name, kind, node, seen=seen)
        around = holder.rpartition(".")[0]
        self.maker.bind(holder, name, ["v", "", annotation, self.module_of(around)])
        return qual

    def _symbol(
        self, scope: str, name: str, kind: str, node: Node, sign: str = "", *, seen: str, **more: object
    ) -> str:
        return self.maker.symbol(
            scope, name, kind, node.start_point[0] + 1, node.end_point[0] + 1, sign, v=seen, **more
        )

    def module_of(self, scope: str) -> str:
        """The module around a scope: the file, or one that is written within it."""
        while scope and "m" not in self.maker.symbols[scope].get("flags", ""):
            scope = self.maker.parents[scope]
        return scope

    def local(self, caller: str, name: str, chain: str = "", annotation: str = "") -> None:
        """Bind a name of a function; one that is made of itself (`x := x.Next()`) keeps what it was."""
        scope = self.maker.scope_of(caller)
        table = self.maker.locals.setdefault(scope, {})
        root, rest = split_root(chain)
        if root == name and chain:
            before = list(table.get(name, ()))
            root = f"{name}~{len(before)}" if before else OUTER + name
            if before:
                table[root] = before
            chain = root + rest
        self.maker.bind(scope, name, ["v", chain, annotation, scope])

    def in_function(self, caller: str) -> bool:
        """Whether code belongs to a function."""
        return bool(self.maker.symbols[self.maker.scope_of(caller)]["k"] == "function")

    def bound_by(self, caller: str, name: str) -> str | None:
        """What a type parameter is bound by; None where the name is not one."""
        while True:
            found = self.generics.get(caller, {}).get(name)
            if found is not None or not caller:
                return found
            caller = self.maker.parents[caller]

    def note(self, caller: str, chain: str, node: Node) -> str:
        """Note the reference that a chain is."""
        if chain and (chain[0] != "?" or "." in chain):
            self.maker.ref(caller, "", chain, node.start_point[0] + 1)
        return chain

    def later(self, node: Node, caller: str) -> None:
        """Visit what a chain ends at; where that is broken, its parts."""
        if self.handlers.get(node.type) == self.on_value:
            self.push(node.named_children, caller)
        else:
            self.push([node], caller)

    @abstractmethod
    def on_value(self, node: Node, caller: str) -> str:
        """Note the reference that an expression is, and give its chain."""

    def words(self, node: Node | None) -> str:
        """The text of a node on one line."""
        return " ".join(self.text(node).split()) if node is not None else ""

    def name_of(self, node: Node) -> str:
        """The text of a node's name, without signs that ids and chains use."""
        name = node.child_by_field_name("name")
        return self.text(name).replace("r#", "") if name is not None and not name.is_missing else ""
