"""The chains of Python's expressions, and the references that they are.

Takes nodes of tree-sitter's tree; gives chains (`spak.world.facts`) and notes them in a `Maker`. What is not
a chain, and the arguments of calls, are put on the stack, to be visited later.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from spak.world.languages import grammar
from spak.world.walker import Walker

if TYPE_CHECKING:
    from tree_sitter import Node

_SAME = frozenset(["list", "sorted", "reversed", "set", "tuple", "frozenset", "iter"])
_ONE = frozenset(["next", "min", "max"])
_DYNAMIC = frozenset(
    ["getattr", "setattr", "exec", "eval", "__import__", "globals", "import_module", "entry_points"]
)
_NAMES = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
Handler = Callable[["Node", str], None]


class Kinds(NamedTuple):
    """Numbers of node kinds that are asked for often."""

    attribute: int
    call: int
    subscript: int
    identifier: int
    paren: int
    await_: int
    string: int
    list: int
    comprehension: int
    boolean: int
    conditional: int
    integer: int
    dict: int
    tuple: int


@cache
def number(name: str) -> int:
    """The number of a named kind of node."""
    return grammar("python").id_for_node_kind(name, True) or 0


@cache
def _kinds() -> Kinds:
    names = """attribute call subscript identifier parenthesized_expression await string list
        list_comprehension boolean_operator conditional_expression integer dictionary tuple"""
    return Kinds(*map(number, names.split()))


class Chains(Walker):
    """The expressions of one file; the kinds of nodes are numbers, since Python's files are many."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.ids: dict[int, Handler] = {}
        self.kinds = _kinds()

    def on_nothing(self, node: Node, caller: str) -> None:
        """Nothing to see."""

    def typed(self, node: Node, caller: str) -> None:
        """The names of an annotation, quoted ones too."""
        text = self.text(node)
        if '"' not in text and "'" not in text:
            self.stack.append((node, caller))
            return
        line = node.start_point[0] + 1
        for chain in dict.fromkeys(_NAMES.findall(text)):
            self.maker.ref(caller, "", chain, line)

    def on_string(self, node: Node, caller: str) -> None:
        """Only what an f-string computes."""
        if node.named_child_count > 2:
            self.push([child for child in node.named_children if child.type == "interpolation"], caller)

    def on_expression(self, node: Node, caller: str, role: str = "") -> str:
        """Note the reference that an expression is, and give its chain."""
        chain = self.chain(node, caller)
        if chain and chain[0] != "'" and chain != "?":
            self.maker.ref(caller, role, chain, node.start_point[0] + 1)
        return chain

    def chain(self, node: Node, caller: str) -> str:
        """The chain of an expression; its arguments, and what is no chain, are visited later."""
        steps: list[str] = []
        while True:
            kind = node.kind_id
            if kind == self.kinds.identifier:
                root = self.text(node)
                break
            if kind == self.kinds.attribute:
                children = node.children
                steps.append("." + self.text(children[-1]))
                node = children[0]
            elif kind == self.kinds.call:
                children = node.children
                function, arguments = children[0], children[-1]
                special = self._special(function, arguments, caller)
                if special:
                    steps.append(special[1])
                    if special[0] is None:
                        root = steps.pop()
                        break
                    node = special[0]
                    continue
                self.push(arguments.named_children if len(children) < 3 else children[1:], caller)
                steps.append("()")
                node = function
            elif kind == self.kinds.subscript:
                children = node.named_children
                index = children[1] if len(children) == 2 else None
                number = index is not None and index.kind_id == self.kinds.integer
                steps.append(f"[{self.text(index)}]" if number and index is not None else "[]")
                self.push(children[1:], caller)
                node = children[0]
            elif kind in (self.kinds.paren, self.kinds.await_) and node.named_child_count == 1:
                node = node.named_children[0]
            else:
                root = self._root(node, caller, not steps)
                break
        steps.reverse()
        if "|" in root and steps:
            root = "?"
        return root + "".join(steps)

    def _root(self, node: Node, caller: str, whole: bool) -> str:
        kind = node.kind_id
        if kind == self.kinds.string:
            self.on_string(node, caller)
            return "'str"
        if kind in (self.kinds.boolean, self.kinds.conditional) and whole:
            parts = node.named_children
            if kind == self.kinds.conditional and len(parts) == 3:
                self.stack.append((parts[1], caller))
                parts = [parts[0], parts[2]]
            chains = [self.on_expression(part, caller) for part in parts]
            return "|".join(dict.fromkeys(chain for chain in chains if chain and chain[0] not in "?'"))
        if kind == self.kinds.comprehension:
            parts = node.named_children
            self.push(parts[1:], caller)
            chain = self.on_expression(parts[0], caller) if parts else ""
            return f"{chain}!l" if chain and "|" not in chain else "?"
        if kind == self.kinds.list and node.named_child_count:
            parts = node.named_children
            self.push(parts[1:], caller)
            chain = self.on_expression(parts[0], caller)
            return f"{chain}!l" if chain and "|" not in chain else "?"
        self.stack.append((node, caller))
        if kind not in self.ids:
            return "?"
        self.stack.pop()
        self.ids[kind](node, caller)
        return "?"

    def _special(self, function: Node, arguments: Node, caller: str) -> tuple[Node | None, str] | None:
        """Calls of builtins whose value is known from their argument."""
        if function.kind_id != self.kinds.identifier:
            if function.kind_id == self.kinds.attribute:
                last = self.text(function.children[-1])
                if last == "cast":
                    return self._cast(arguments, caller)
                self._dynamic(last, arguments, function, caller)
            return None
        name = self.text(function)
        if name == "cast":
            return self._cast(arguments, caller)
        self._dynamic(name, arguments, function, caller)
        if name == "getattr" and (fixed := self._fixed(arguments)):
            self.push(arguments.named_children[2:], caller)
            return arguments.named_children[0], f".{fixed}"
        if name not in _SAME and name not in _ONE and name not in ("enumerate", "super", "type"):
            return None
        given = arguments.named_children
        if name == "super":
            self.push(given, caller)
            return None, "super()"
        if not given or given[0].type in ("keyword_argument", "generator_expression", "list_splat"):
            return None
        if name == "type":
            return (given[0], "!t") if len(given) == 1 else None
        self.push(given[1:], caller)
        return given[0], {"enumerate": "!e"}.get(name, "<>" if name in _ONE else "")

    def _cast(self, arguments: Node, caller: str) -> tuple[Node | None, str] | None:
        given = arguments.named_children
        if len(given) != 2:
            return None
        self.push(given, caller)
        return None, f"'cast:{self.text(given[0])}" if "[" not in self.text(given[0]) else "?"

    def _dynamic(self, name: str, arguments: Node, function: Node, caller: str) -> None:
        if name not in _DYNAMIC:
            return
        fixed = name in ("getattr", "setattr") and self._fixed(arguments)
        if not fixed and len(self.maker.dynamic) < 200:
            self.maker.dynamic.append([caller, name, function.start_point[0] + 1])

    def _fixed(self, arguments: Node) -> str:
        """The name that the second argument of `getattr` spells out; empty where a run makes it."""
        given = arguments.named_children
        if len(given) < 2 or given[1].kind_id != self.kinds.string or given[0].type.startswith("keyword"):
            return ""
        text = "".join(self.text(part) for part in given[1].named_children if part.type == "string_content")
        return text if text.isidentifier() and given[1].named_child_count == 3 else ""
