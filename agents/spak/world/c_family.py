"""The facts of a C, C++ or CUDA file: functions, types, macros, what they name, and what the file includes.

Takes tree-sitter's tree; fills a `Maker`. An include is an import of all names of that file. The preprocessor
is not run: both branches of an `#if` count, and what a macro's text names is not followed. Namespaces are
left out of names. In a method the functions of its class come first; what is called through an object or a
qualified name stays unresolved. A prototype is a symbol, to which the linker finds the definition.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spak.world.facts import INCLUDE, Maker
from spak.world.walker import Walker

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPES = {
    "struct_specifier": "class",
    "class_specifier": "class",
    "union_specifier": "class",
    "enum_specifier": "class",
}
_NAMES = frozenset(["identifier", "type_identifier", "field_identifier", "operator_name", "destructor_name"])
_CALLEE = frozenset(["identifier", "qualified_identifier", "template_function", "field_expression"])
_CLASS = ("class", "interface")


class Walk(Walker):
    """One file under way."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.handlers = {
            "preproc_include": self.on_include,
            "preproc_def": self.on_macro,
            "preproc_function_def": self.on_macro,
            "function_definition": self.on_function,
            "declaration": self.on_declaration,
            "field_declaration": self.on_declaration,
            "parameter_declaration": self.on_declaration,
            "optional_parameter_declaration": self.on_declaration,
            "type_definition": self.on_typedef,
            "alias_declaration": self.on_typedef,
            "enumerator": self.on_enumerator,
            "call_expression": self.on_call,
            "qualified_identifier": self.on_name,
            "identifier": self.on_name,
            "type_identifier": self.on_name,
            "field_expression": self.on_field,
            **dict.fromkeys(_TYPES, self.on_type),
        }

    def run(self, root: Node) -> Maker:
        """Walk the whole tree."""
        self.walk(root)
        self._own_members()
        return self.maker

    def text(self, node: Node) -> str:
        """The text of a node without white space."""
        return "".join(super().text(node).split())

    def on_include(self, node: Node, caller: str) -> None:
        """`#include`: all names of that file."""
        path = node.child_by_field_name("path")
        if path is not None and path.type in ("string_literal", "system_lib_string"):
            self.maker.stars.append([INCLUDE, self.text(path)[1:-1]])

    def on_macro(self, node: Node, caller: str) -> None:
        """`#define`: a function or a constant."""
        name = node.child_by_field_name("name")
        if name is not None:
            kind = "function" if node.type == "preproc_function_def" else "constant"
            self._symbol("", self.text(name), kind, node)

    def on_type(self, node: Node, caller: str) -> None:
        """A type with a body is a symbol; without one it is a reference."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if body is None:
            return self.push(node.named_children, caller)
        owner = caller
        if name is not None:
            owner = self._symbol(self.maker.scope_of(caller), _last(self.text(name)), _TYPES[node.type], node)
        return self.push([child for child in node.named_children if child != name], owner)

    def on_function(self, node: Node, caller: str) -> None:
        """A function with its body."""
        declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
        name = _named(declarator)
        if name is None or declarator is None:
            return self.push(node.named_children, caller)
        qual = self._function(node, caller, name, declarator)
        rest = [child for child in node.named_children if child != declarator]
        return self.push(rest if body is not None else [], qual)

    def _function(self, node: Node, caller: str, name: Node, declarator: Node, **more: str) -> str:
        parts = [_plain(part) for part in self.text(name).split("::")]
        scope = self.maker.scope_of(caller)
        shown = parts[-1] if scope else ".".join(parts[-2:])
        parameters = _below(declarator, "parameter_list")
        sign = self.data[parameters.start_byte : declarator.end_byte] if parameters is not None else b""
        words = " ".join(sign.decode("utf-8", "replace").split())
        qual = self._symbol(scope, shown, "function", node, words, **more)
        if parameters is not None:
            self.stack.append((parameters, qual))
        return qual

    def on_declaration(self, node: Node, caller: str) -> None:
        """Variables, parameters and prototypes."""
        scope = self.maker.scope_of(caller)
        kind = self.maker.symbols[scope]["k"]
        rest: list[Node] = []
        for child in node.named_children:
            name = (
                _named(child)
                if "declarator" in child.type or child.type in _NAMES - {"type_identifier"}
                else None
            )
            if name is None:
                rest.append(child)
                continue
            value = child.child_by_field_name("value")
            if _below(child, "parameter_list") is not None and value is None and kind != "function":
                self._function(node, caller, name, child, flags="d")
            elif kind == "function":
                self.maker.bind(scope, self.text(name), ["v", "", "", scope])
            elif "parameter" not in node.type:
                self._symbol(scope, _last(self.text(name)), "variable", node)
            rest += [value] if value is not None else []
        self.push(rest, caller)

    def on_typedef(self, node: Node, caller: str) -> None:
        """`typedef` and `using`: another name of a type."""
        name = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        found = _named(name)
        owner = caller
        if found is not None and self.text(found) not in self.maker.names:
            owner = self._symbol(self.maker.scope_of(caller), self.text(found), "class", node)
        for child in node.named_children:
            if child.type in _TYPES and child.child_by_field_name("name") is None:
                self.push(child.named_children, owner)
            elif child != name:
                self.stack.append((child, caller))

    def on_enumerator(self, node: Node, caller: str) -> None:
        """A constant of an enumeration."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            self._symbol("", self.text(name), "constant", node)
        self.push([value] if value is not None else [], caller)

    def on_call(self, node: Node, caller: str) -> None:
        """A call; what is called through an object, or in a method, may also be a method."""
        function = node.child_by_field_name("function")
        if function is None or function.type not in _CALLEE:
            return self.push(node.named_children, caller)
        line = function.start_point[0] + 1
        if function.type == "field_expression":
            name = _last(self.text(function.named_children[-1])).partition("<")[0]
            self.maker.ref(caller, "", f"?.{name}()", line)
            self.push(function.named_children[:-1], caller)
        else:
            name = _last(self.text(function).partition("<")[0])
            self.maker.ref(caller, "", f"{name}()", line)
            if "::" in self.text(function) or "." in caller:
                self.maker.ref(caller, "", f"?.{name}()", line)
        return self.push([child for child in node.named_children if child != function], caller)

    def on_name(self, node: Node, caller: str) -> None:
        """A name by itself."""
        name = _last(self.text(node).partition("<")[0])
        if name:
            self.maker.ref(caller, "", name, node.start_point[0] + 1)

    def on_field(self, node: Node, caller: str) -> None:
        """A member of an object: the object is looked at, the member's type is not known."""
        self.push(node.named_children[:-1], caller)

    def _symbol(self, scope: str, name: str, kind: str, node: Node, sign: str = "", **more: str) -> str:
        if self.maker.symbols[scope]["k"] == "function":
            scope = ""
        static = any(
            child.type == "storage_class_specifier" and self.text(child) == "static"
            for child in node.children
        )
        seen = "private" if static and not scope else "public"
        qual = self.maker.symbol(
            scope, name, kind, node.start_point[0] + 1, node.end_point[0] + 1, sign, v=seen, **more
        )
        if "." not in name:
            self.maker.bind(scope, name, ["s", qual])
        return qual

    def _own_members(self) -> None:
        """In a method, a name that its class has is the class's."""
        refs, self.maker.refs = self.maker.refs, {}
        for (caller, role, chain), lines in refs.items():
            holder, root = caller.rpartition(".")[0], chain.removesuffix("()")
            about = self.maker.symbols.get(holder, {})
            own = about.get("k") in _CLASS and root in about.get("names", {})
            self.maker.refs.setdefault((caller, role, f"{holder}.{chain}" if own else chain), lines)


def _last(name: str) -> str:
    """A name without its namespaces and classes."""
    return name.rpartition("::")[2]


def _plain(name: str) -> str:
    """A name without signs that ids and chains use."""
    name = name.replace("~", "destructor ") if name.startswith("~") else name
    return re.split(r"[<~.(\[]", name)[0]


def _named(node: Node | None) -> Node | None:
    """The name that a declarator gives."""
    while node is not None and node.type not in _NAMES and node.type != "qualified_identifier":
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next((child for child in node.named_children if _declares(child)), None)
        node = inner
    return node


def _declares(node: Node) -> bool:
    return node.type.endswith("declarator") or node.type in _NAMES or node.type == "qualified_identifier"


def _below(node: Node | None, kind: str) -> Node | None:
    """The parameters of a declarator that is a function's."""
    while node is not None:
        for child in node.named_children:
            if child.type == kind:
                return child
        node = node.child_by_field_name("declarator")
    return None
