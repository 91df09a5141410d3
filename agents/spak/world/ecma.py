"""The facts of a JavaScript or TypeScript file: functions, classes, types, variables, and what they name.

Takes tree-sitter's tree; fills a `Maker`. Imports and `require` of relative paths lead to files; those of
packages, and of names that a configuration maps, are outside. `this` is the class of the method around it.
Types are what annotations of one name say, and what `new` makes. A function without a name belongs to the
function around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spak.world.facts import RELATIVE, Maker
from spak.world.walker import Walker

if TYPE_CHECKING:
    from tree_sitter import Node

_FUNCTIONS = frozenset(["arrow_function", "function_expression", "generator_function"])
_SAME = frozenset(["parenthesized_expression", "await_expression", "non_null_expression", "as_expression"])
_PATTERNS = frozenset(
    """object_pattern array_pattern rest_pattern assignment_pattern pair_pattern
    object_assignment_pattern""".split()  # noqa: SIM905
)
_NAMES = frozenset(["identifier", "shorthand_property_identifier_pattern"])
_MEMBERS = ("method_definition", "method_signature", "abstract_method_signature", "public_field_definition",
            "field_definition", "property_signature")  # fmt: skip
_DECLARED = ("function_declaration", "generator_function_declaration", "function_signature")
_CLASSES = (
    *("class_declaration", "abstract_class_declaration"),
    *("interface_declaration", "type_alias_declaration", "enum_declaration"),
)


class Walk(Walker):
    """One file under way."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.others: list[tuple[str, str]] = []
        """Other names by which a name is exported."""
        self.handlers = {
            "import_statement": self.on_import,
            "export_statement": self.on_export,
            "variable_declarator": self.on_variable,
            "required_parameter": self.on_parameter,
            "optional_parameter": self.on_parameter,
            "formal_parameters": self.on_parameters,
            "arrow_function": self.on_arrow,
            **dict.fromkeys(_DECLARED, self.on_function),
            **dict.fromkeys(_CLASSES, self.on_class),
            **dict.fromkeys(_MEMBERS, self.on_member),
            **dict.fromkeys(
                ("identifier", "type_identifier", "shorthand_property_identifier", "member_expression",
                 "call_expression", "new_expression", "subscript_expression"), self.on_value,
            ),
        }  # fmt: skip

    def run(self, root: Node) -> Maker:
        """Walk the whole tree."""
        self.walk(root)
        for name, of in self.others:
            for bind in self.maker.names.get(of, ()):
                self.maker.bind("", name, bind)
        return self.maker

    def on_import(self, node: Node, caller: str) -> None:
        """`import a, { b as c } from "./x"` and `import * as d from "./x"`."""
        source = node.child_by_field_name("source")
        if source is None:
            return
        module = self.text(source)[1:-1]
        for clause in node.named_children:
            for item in clause.named_children if clause.type == "import_clause" else ():
                if item.type == "identifier":
                    self.maker.bind("", self.text(item), ["i", RELATIVE, module, "default"])
                elif item.type == "namespace_import":
                    self.maker.bind("", self.text(item.named_children[-1]), ["m", module, RELATIVE])
                else:
                    self._imported(item.named_children, module)

    def on_export(self, node: Node, caller: str) -> None:
        """What is exported of other files, by another name, or as the default."""
        source = node.child_by_field_name("source")
        clause = next((child for child in node.named_children if child.type == "export_clause"), None)
        if source is not None:
            module = self.text(source)[1:-1]
            if clause is not None:
                return self._imported(clause.named_children, module)
            self.maker.stars.append([RELATIVE, module])
            return None
        for item in clause.named_children if clause is not None else ():
            first, last = self.text(item.named_children[0]), self.text(item.named_children[-1])
            if first != last:
                self.others.append((last, first))
        if any(child.type == "default" for child in node.children):
            value = node.child_by_field_name("declaration") or node.child_by_field_name("value")
            name = value if value is None or value.type == "identifier" else value.child_by_field_name("name")
            if name is not None:
                self.others.append(("default", self.text(name)))
        return self.push(node.named_children if clause is None else [], caller)

    def _imported(self, items: list[Node], module: str) -> None:
        for item in items:
            if item.type in ("import_specifier", "export_specifier") and item.named_child_count:
                first, last = item.named_children[0], item.named_children[-1]
                self.maker.bind("", self.text(last), ["i", RELATIVE, module, self.text(first)])

    def on_function(self, node: Node, caller: str) -> None:
        """A function with its body."""
        name = node.child_by_field_name("name")
        if name is None:
            return self.push(node.named_children, caller)
        qual = self._symbol(caller, self.text(name), "function", node, node)
        return self.push([child for child in node.named_children if child != name], qual)

    def on_class(self, node: Node, caller: str) -> None:
        """A class, interface, type or enumeration with its members."""
        name = node.child_by_field_name("name")
        if name is None:
            return self.push(node.named_children, caller)
        kind = "interface" if node.type == "interface_declaration" else "class"
        scope = self.maker.scope_of(caller)
        qual = self._symbol(caller, self.text(name), kind, node)
        bases = []
        rest = [child for child in node.named_children if child != name]
        for part in [child for child in rest if child.type in ("class_heritage", "extends_type_clause")]:
            rest.remove(part)
            for item in part.named_children if part.type == "class_heritage" else [part]:
                values = item.named_children if item.type.endswith("clause") else [item]
                for value in values:
                    chain = self.chain(value, scope) if value.type != "type_identifier" else self.text(value)
                    if chain and chain[0] != "?":
                        bases.append(chain)
                        self.maker.ref(qual, "base", chain, value.start_point[0] + 1)
        if bases:
            self.maker.symbols[qual]["bases"] = bases
        return self.push(rest, qual)

    def on_member(self, node: Node, caller: str) -> None:
        """A method or field of a class."""
        name = node.child_by_field_name("name") or node.child_by_field_name("property")
        value = node.child_by_field_name("value")
        if name is None or name.type not in ("property_identifier", "private_property_identifier"):
            return self.push(node.named_children, caller)
        method = "method" in node.type or (value is not None and value.type in _FUNCTIONS)
        kind = "function" if method else "variable"
        words = {
            self.text(child) for child in node.children if child.type in ("accessibility_modifier", "get")
        }
        seen = next((word for word in ("private", "protected") if word in words), "")
        seen = "private" if self.text(name).startswith("#") else seen or "public"
        flags = "sp" if "get" in words else "s"
        qual = self._symbol(
            caller, self.text(name), kind, node, node if value is None else value, seen, flags
        )
        return self.push([child for child in node.named_children if child != name], qual)

    def on_variable(self, node: Node, caller: str) -> None:
        """A variable: of a module or class it is a symbol, of a function a local name."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        scope = self.maker.scope_of(caller)
        if name is None:
            return self.push(node.named_children, caller)
        module = self._required(value)
        if module:
            return self._bind_required(name, module, scope)
        local = self.maker.symbols[scope]["k"] == "function"
        if name.type != "identifier":
            self._pattern(name, scope, "" if local else caller)
            return self.push([value] if value is not None else [], caller)
        shown = self.text(name)
        if value is not None and value.type in _FUNCTIONS and not local:
            return self.push(value.named_children, self._symbol(caller, shown, "function", node, value))
        owner = caller
        if not local:
            owner = self._symbol(
                caller, shown, "constant" if shown.isupper() else "variable", node, bind=False
            )
        chain = self.on_value(value, owner) if value is not None else ""
        self.maker.bind(scope, shown, ["v", chain, self._annotation(node), scope])
        return None

    def _required(self, value: Node | None) -> str:
        """The path of `require("./x")`."""
        if value is None or value.type != "call_expression" or value.named_child_count != 2:
            return ""
        function, given = value.named_children
        if self.text(function) != "require" or given.named_child_count != 1:
            return ""
        path = given.named_children[0]
        return self.text(path)[1:-1] if path.type == "string" else ""

    def _bind_required(self, name: Node, module: str, scope: str) -> None:
        if name.type == "identifier":
            self.maker.bind(scope, self.text(name), ["m", module, RELATIVE])
        for item in name.named_children:
            names = [self.text(child) for child in item.named_children] or [self.text(item)]
            self.maker.bind(scope, names[-1], ["i", RELATIVE, module, names[0]])

    def on_parameters(self, node: Node, caller: str) -> None:
        """Parameters: names of the function around them."""
        for item in node.named_children:
            if item.type in _NAMES or item.type in _PATTERNS:
                self._pattern(item, self.maker.scope_of(caller))
            else:
                self.stack.append((item, caller))

    def on_parameter(self, node: Node, caller: str) -> None:
        """A parameter of TypeScript with its type."""
        pattern, scope = node.child_by_field_name("pattern"), self.maker.scope_of(caller)
        if pattern is not None and pattern.type == "identifier":
            if self.maker.symbols[scope]["k"] == "function":
                self.maker.bind(scope, self.text(pattern), ["v", "", self._annotation(node), scope])
        elif pattern is not None:
            self._pattern(pattern, scope)
        self.push([child for child in node.named_children if child != pattern], caller)

    def on_arrow(self, node: Node, caller: str) -> None:
        """A function without a name: its parameters are names of the function around it."""
        parameter = node.child_by_field_name("parameter")
        if parameter is not None:
            self._pattern(parameter, self.maker.scope_of(caller))
        self.push([child for child in node.named_children if child != parameter], caller)

    def _pattern(self, node: Node, scope: str, symbols_of: str | None = None) -> None:
        """Bind the names of a pattern; what they are is not known."""
        left = [node]
        while left:
            item = left.pop()
            if item.type in _NAMES:
                if self.maker.symbols[scope]["k"] == "function":
                    self.maker.bind(scope, self.text(item), ["v", "", "", scope])
                elif symbols_of is not None:
                    self._symbol(symbols_of, self.text(item), "variable", item)
            elif item.type in _PATTERNS:
                values = [item.child_by_field_name("right")] if "assignment" in item.type else []
                self.stack += [(value, scope) for value in values if value is not None]
                left += [child for child in item.named_children if child not in values]

    def _annotation(self, node: Node) -> str:
        typed = node.child_by_field_name("type")
        return self.text(typed).lstrip(": ") if typed is not None else ""

    def on_value(self, node: Node, caller: str) -> str:
        """Note the reference that an expression is, and give its chain."""
        chain = self.chain(node, caller)
        if chain and (chain[0] != "?" or "." in chain):
            self.maker.ref(caller, "", chain, node.start_point[0] + 1)
        return chain

    def chain(self, node: Node, caller: str) -> str:
        """The chain of an expression; its arguments, and what is no chain, are visited later."""
        steps: list[str] = []
        while True:
            kind, inner = node.type, node.named_children
            if kind in ("identifier", "type_identifier", "shorthand_property_identifier"):
                root = self.text(node)
                break
            if kind == "member_expression" and len(inner) > 1:
                steps.append("." + self.text(inner[-1]))
                node = inner[0]
            elif kind in ("call_expression", "new_expression", "subscript_expression") and inner:
                steps.append("[]" if kind == "subscript_expression" else "()")
                self.push(inner[1:], caller)
                node = inner[0]
            elif kind in _SAME and inner:
                self.push(inner[1:], caller)
                node = inner[0]
            else:
                root = self._root(node, caller)
                break
        return root + "".join(reversed(steps))

    def _root(self, node: Node, caller: str) -> str:
        holder = caller.rpartition(".")[0]
        if node.type == "super":
            return "super()"
        if node.type == "this":
            return holder if holder and self.maker.symbols[holder]["k"] in ("class", "interface") else "?"
        if node.type not in ("identifier", "member_expression"):
            self.push(node.named_children if node.type in self.handlers else [node], caller)
        return "?"

    def _symbol(
        self, caller: str, name: str, kind: str, node: Node, function: Node | None = None,
        seen: str = "public", flags: str = "", bind: bool = True,
    ) -> str:  # fmt: skip
        scope, more = self.maker.scope_of(caller), {}
        given = function.child_by_field_name("parameters") if function is not None else None
        result = function.child_by_field_name("return_type") if function is not None else None
        sign = ""
        if given is not None:
            sign = " ".join(self.text(given).split()) + (self.text(result) if result is not None else "")
            more = {"ret": self.text(result).lstrip(": ") if result is not None else "", "flags": flags}
        qual = self.maker.symbol(
            scope, name, kind, node.start_point[0] + 1, node.end_point[0] + 1, sign, v=seen, **more
        )
        if bind:
            self.maker.bind(scope, name, ["s", qual])
        return qual
