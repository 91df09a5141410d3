"""The facts of a Go file: functions, types with their methods and fields, and what they name.

Takes tree-sitter's tree; fills a `Maker`. All files of a folder are one package: a name that the file does
not have is one of the package (`stars`), and `all` is the package's name. An import leads to a folder of a
module whose `go.mod` is in the tree. Types are what is declared: parameters, results, fields, composite
literals, conversions. Which types satisfy an interface is decided by the resolver, within one package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spak.world.facts import GO, split_root
from spak.world.typed.base import OUTER, Typed

if TYPE_CHECKING:
    from tree_sitter import Node

_PREDECLARED = frozenset(
    """any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune
    string uint uint8 uint16 uint32 uint64 uintptr append cap close complex copy delete imag len make new
    panic print println real recover true false nil iota _""".split()  # noqa: SIM905
)
_SAME = frozenset(["parenthesized_expression", "slice_expression", "unary_expression", "parenthesized_type"])
_LISTS = frozenset(["slice_type", "array_type", "implicit_length_array_type", "channel_type"])


class Walk(Typed):
    """One file under way."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.maker.stars.append([GO, "."])
        names = (
            *("identifier", "selector_expression", "call_expression", "index_expression", "slice_expression"),
            *("composite_literal", "type_conversion_expression", "type_instantiation_expression"),
        )
        self.handlers = {
            "package_clause": self.on_package,
            "import_spec": self.on_import,
            "function_declaration": self.on_function,
            "method_declaration": self.on_method,
            "type_spec": self.on_type,
            "type_alias": self.on_type,
            "const_spec": self.on_spec,
            "var_spec": self.on_spec,
            "short_var_declaration": self.on_assigned,
            "range_clause": self.on_range,
            "receive_statement": self.on_assigned,
            "type_switch_statement": self.on_switch,
            "func_literal": self.on_literal,
            "function_type": self.on_signature,
            "keyed_element": self.on_keyed,
            "field_declaration": self.on_loose_field,
            "labeled_statement": self.on_label,
            "type_identifier": self.on_named_type,
            "qualified_type": self.on_named_type,
            **dict.fromkeys(("break_statement", "continue_statement", "goto_statement"), self.on_label),
            **dict.fromkeys(names, self.on_value),
        }

    def on_package(self, node: Node, caller: str) -> None:
        """`package x`."""
        self.maker.all = [self.text(child) for child in node.named_children[:1]]

    def on_import(self, node: Node, caller: str) -> None:
        """An import binds the last part of its path, or what is written before it."""
        path, name = node.child_by_field_name("path"), self.name_of(node)
        module = self.text(path)[1:-1] if path is not None else ""
        if name == ".":
            self.maker.stars.append([GO, module])
        elif name != "_":
            for shown in [name] if name else _package_names(module):
                self.maker.bind("", shown, ["m", module, GO])

    # what is declared

    def on_function(self, node: Node, caller: str) -> None:
        """A function of the package."""
        name = self.name_of(node)
        if name in ("init", "_", ""):  # called by the program's start, and never by name
            qual = self.maker.symbol(
                "", name or "_", "function", *_lines(node), self._sign(node), v="private"
            )
        else:
            qual = self.define("", name, "function", node, self._sign(node), seen=_seen(name))
        self._body(node, qual, self._parameters_of_type(node))

    def on_method(self, node: Node, caller: str) -> None:
        """A method, of the type of its receiver."""
        receiver, name = node.child_by_field_name("receiver"), self.name_of(node)
        given = next(iter(receiver.named_children), None) if receiver is not None else None
        typed = given.child_by_field_name("type") if given is not None else None
        generics: dict[str, str] = {}
        while typed is not None and typed.type != "type_identifier":
            inner = [child for child in typed.named_children if child.type != "comment"]
            if typed.type == "generic_type":
                generics = dict.fromkeys(self.text(inner[-1]).strip("[]").replace(" ", "").split(","), "")
            typed = inner[0] if inner else None
        if typed is None or given is None or not name:
            return self.push(node.named_children, caller)
        holder = self.text(typed)
        more = {"params": [[self.name_of(given) or "_", holder, ""]]}
        qual = self.member("", holder, name, "function", node, self._sign(node), seen=_seen(name), **more)
        self.maker.ref(qual, "", OUTER + holder, node.start_point[0] + 1)
        return self._body(node, qual, generics)

    def _sign(self, node: Node) -> str:
        parameters, result = node.child_by_field_name("parameters"), node.child_by_field_name("result")
        return f"{self.words(parameters)} {self.words(result)}".rstrip()

    def _body(self, node: Node, qual: str, generics: dict[str, str]) -> None:
        """What a function takes, gives and does."""
        self.generics[qual] = generics
        result = self._result(node, qual)
        if result:
            self.maker.symbols[qual]["ret"] = result
        for part in ("body", "type_parameters"):
            inner = node.child_by_field_name(part)
            if inner is not None:
                self.push([inner], qual)
        self._parameters(node, qual)

    def _parameters_of_type(self, node: Node) -> dict[str, str]:
        """Type parameters with what bounds them."""
        given = node.child_by_field_name("type_parameters")
        found = {}
        for item in given.named_children if given is not None else ():
            bound = item.child_by_field_name("type")
            for name in _named(item):
                inner = bound.named_children if bound is not None else []
                found[self.text(name)] = self.annotation(inner[0], "") if len(inner) == 1 else ""
        return found

    def _parameters(self, node: Node, caller: str) -> None:
        """Parameters and named results: names of the function around them; their types are looked at."""
        for part in ("result", "parameters"):
            given = node.child_by_field_name(part)
            for item in given.named_children if given is not None else ():
                typed = item.child_by_field_name("type")
                note = self.annotation(typed, caller) if typed is not None else ""
                note = f"list[{note}]" if note and item.type.startswith("variadic") else note
                for name in _named(item):
                    if self.in_function(caller):
                        self.local(caller, self.text(name), "", note)
            if given is not None:
                types = [item.child_by_field_name("type") for item in given.named_children]
                whole = given.type != "parameter_list"
                self.push([given] if whole else [one for one in types if one is not None], caller)

    def on_literal(self, node: Node, caller: str) -> None:
        """A function without a name belongs to the function around it."""
        body = node.child_by_field_name("body")
        self.push([body] if body is not None else [], caller)
        self._parameters(node, caller)

    def on_signature(self, node: Node, caller: str) -> None:
        """The type of a function: only types are looked at."""
        self._parameters(node, "")

    def on_type(self, node: Node, caller: str) -> None:
        """A type: a struct with fields, an interface with methods, or another name."""
        name, typed = self.name_of(node), node.child_by_field_name("type")
        if not name or typed is None:
            return self.push(node.named_children, caller)
        kind = "interface" if typed.type == "interface_type" else "class"
        qual = self.define(caller, name, kind, node, seen=_seen(name))
        self.generics[qual] = self._parameters_of_type(node)
        given = node.child_by_field_name("type_parameters")
        if given is not None:
            self.push([given], qual)
        if typed.type == "struct_type":
            for part in typed.named_children:
                for item in part.named_children:
                    self._field(item, qual)
        elif kind == "interface":
            for item in typed.named_children:
                self._element(item, qual)
        elif chain := self.type_chain(typed, qual):
            self._base(qual, chain, typed)
        else:
            self.push([typed], qual)
        return None

    def _base(self, qual: str, chain: str, node: Node) -> None:
        scope, _, name = qual.rpartition(".")
        self.bases.append((scope, name, chain, node.start_point[0] + 1))

    def _field(self, node: Node, qual: str) -> None:
        """A field of a struct; without a name it is embedded, and gives its members."""
        typed = node.child_by_field_name("type")
        if node.type != "field_declaration" or typed is None:
            return
        names = [self.text(name) for name in _named(node)]
        note = self.annotation(typed, qual)
        owner = qual
        for name in names:
            owner = self.field(qual, name, node, note, seen=_seen(name)) if name != "_" else qual
        chain = self.type_chain(typed, qual) if not names else ""
        if chain:
            self._base(qual, chain, typed)
            last = chain.rpartition(".")[2]
            self.field(qual, last, node, note, seen=_seen(last))
        else:
            self.push([typed], owner)

    def on_loose_field(self, node: Node, caller: str) -> None:
        """A field of a struct that has no name: its type is looked at."""
        typed = node.child_by_field_name("type")
        self.push([typed] if typed is not None else [], caller)

    def _element(self, node: Node, qual: str) -> None:
        """A method of an interface, or another interface within it."""
        name = self.name_of(node)
        if node.type == "method_elem" and name:
            more = {"ret": self._result(node, qual), "flags": "o"}
            made = self.define(qual, name, "function", node, self._sign(node), seen=_seen(name), **more)
            self.maker.names.setdefault(f".{name}", []).append(["s", made])
            self._parameters(node, qual)
        elif node.type == "type_elem" and node.named_child_count == 1:
            chain = self.type_chain(node.named_children[0], qual)
            if chain:
                self._base(qual, chain, node)
        else:
            self.push(node.named_children, qual)

    def on_spec(self, node: Node, caller: str) -> None:
        """`var` and `const`: symbols of the package, or local names."""
        names = [self.text(name) for name in _named(node)]
        typed, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        note = self.annotation(typed, caller) if typed is not None else ""
        values = value.named_children if value is not None else []
        if self.in_function(caller):
            self._bind(names, values, caller, note)
        else:
            kind = "constant" if node.type == "const_spec" else "variable"
            made, chain = {}, ""
            for name in names:
                made[name] = self._symbol("", name, kind, node, seen=_seen(name)) if name != "_" else ""
            for at, item in enumerate(values):
                owner = made[names[at]] if at < len(names) else caller
                chain, declared = self._given(item, owner)
                for name in names[at : at + 1] if len(values) > 1 else names:
                    part = f"[{names.index(name)}]" if len(names) > len(values) and chain else ""
                    if name != "_":
                        self.maker.bind("", name, ["v", chain + part, note or declared, ""])
            for name in names if not values else ():
                self.maker.bind("", name, ["v", "", note, ""])
            holder = chain.removesuffix("()")
            if names == ["_"] and note and holder.isidentifier():  # var _ Interface = (*Type)(nil)
                self.bases.append(("", holder, note, node.start_point[0] + 1))
        if typed is not None:
            self.push([typed], caller)

    # what functions do

    def on_assigned(self, node: Node, caller: str) -> None:
        """`a, b := f()`."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        names = (
            [self.text(name) if name.type == "identifier" else "" for name in left.named_children]
            if left
            else []
        )
        values = right.named_children if right is not None and right.type == "expression_list" else [right]
        if node.type == "receive_statement" and not any(child.type == ":=" for child in node.children):
            names = []
        self._bind(names, [value for value in values if value is not None], caller)

    def _bind(self, names: list[str], values: list[Node], caller: str, note: str = "") -> None:
        """Local names with what they are given; one call may give all of them."""
        given = [self._given(value, caller) for value in values]
        called = len(names) > 1 and len(values) == 1 and values[0].type == "call_expression"
        for at, name in enumerate(names):
            chain, declared = given[at] if at < len(given) else ("", "")
            if called:
                chain, declared = (f"{given[0][0]}[{at}]" if given[0][0] else ""), ""
            if name and name != "_":
                self.local(caller, name, chain, note or declared)

    def _given(self, value: Node, caller: str) -> tuple[str, str]:
        """The chain and the declared type of a value, whose parts are visited."""
        inner = value
        while inner.type in _SAME and inner.named_child_count == 1:
            inner = inner.named_children[0]
        if inner.type == "composite_literal":
            typed = inner.child_by_field_name("type")
            note = self.annotation(typed, caller) if typed is not None else ""
            if "[" in note:
                self.push([inner], caller)
                return "", note
        if inner.type == "call_expression":
            function, given = inner.child_by_field_name("function"), inner.child_by_field_name("arguments")
            first = next(iter(given.named_children), None) if given is not None else None
            if function is not None and first is not None and self.text(function) == "make":
                self.push([inner], caller)
                return "", self.annotation(first, caller)
        return self.on_value(value, caller), ""

    def on_range(self, node: Node, caller: str) -> None:
        """`for k, v := range x`."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if right is None:
            return
        chain, declared = self._given(right, caller)
        for at, name in enumerate(left.named_children if left is not None else ()):
            if name.type == "identifier" and self.text(name) != "_":
                if chain and "?" not in chain:
                    self.local(caller, self.text(name), chain + ("[]" if at else "<>"))
                else:
                    inner = declared[5:-1] if declared.startswith("list[") and at else ""
                    self.local(caller, self.text(name), "", inner)

    def on_switch(self, node: Node, caller: str) -> None:
        """`switch x := y.(type)`: the name is any of the types of the cases."""
        alias = node.child_by_field_name("alias")
        for name in alias.named_children if alias is not None else ():
            for case in node.named_children:
                for typed in case.children_by_field_name("type") if case.type == "type_case" else ():
                    self.local(caller, self.text(name), "", self.annotation(typed, caller))
        self.push([child for child in node.named_children if child != alias], caller)

    def on_keyed(self, node: Node, caller: str) -> None:
        """`name: value` of a literal: the name of a field is not a name of the scope."""
        key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
        inner = key.named_children[0] if key is not None and key.named_child_count else None
        keep = inner is not None and inner.type != "identifier"
        self.push([part for part in (key if keep else None, value) if part is not None], caller)

    def on_label(self, node: Node, caller: str) -> None:
        """A label is not a name."""
        self.push([child for child in node.named_children if child.type != "label_name"], caller)

    def on_named_type(self, node: Node, caller: str) -> None:
        """The name of a type."""
        chain = self.type_chain(node, caller)
        if chain:
            self.note(caller, OUTER + chain, node)

    def on_value(self, node: Node, caller: str) -> str:
        """Note the reference that an expression is, and give its chain."""
        chain = self.chain(node, caller)
        root, scope = split_root(chain)[0], self.maker.scope_of(caller)
        imported = any(bind[0] == "m" for bind in self.maker.names.get(root, ()))
        if imported and root not in self.maker.locals.get(scope, ()):  # and not yet a variable (p := p.New())
            chain = OUTER + chain
        return self.note(caller, chain, node) if chain not in _PREDECLARED else ""

    def chain(self, node: Node, caller: str) -> str:
        """The chain of an expression; its arguments, and what is no chain, are visited later."""
        steps: list[str] = []
        while True:
            kind, inner = node.type, [child for child in node.named_children if child.type != "comment"]
            if kind == "identifier" or (kind in ("type_identifier", "qualified_type", "generic_type")):
                root = self.type_chain(node, caller) if kind != "identifier" else self.text(node)
                return (root or "?") + "".join(reversed(steps))
            if kind == "selector_expression" and len(inner) > 1:
                steps.append("." + self.text(inner[-1]))
            elif kind == "call_expression" and inner:
                if inner[0].type == "identifier" and self.text(inner[0]) == "new" and len(inner) > 1:
                    inner = inner[1].named_children[:1] or inner
                else:
                    self.push(inner[1:], caller)
                steps.append("()")
            elif kind == "type_assertion_expression" and len(inner) > 1:
                self.push(inner, caller)
                return (_cast(self.type_chain(inner[1], caller)) or "?") + "".join(reversed(steps))
            elif kind in ("composite_literal", "type_conversion_expression") and inner:
                self._literal(inner, caller)
                steps.append("()")
            elif kind in ("index_expression", "type_instantiation_expression") and inner:
                steps.append("[]")
                self.push(inner[1:], caller)
            elif kind in _SAME and inner:
                self.push(inner[1:], caller)
                if kind == "unary_expression" and self.text(node).startswith("<-"):
                    steps.append("[]")
            elif kind == "pointer_type" and inner:
                pass
            else:
                self.later(node, caller)
                return "?" + "".join(reversed(steps))
            node = inner[0]

    def _literal(self, inner: list[Node], caller: str) -> None:
        """The parts of a literal. The names before colons are fields where its type has a name."""
        typed, elements = inner[0], [item for part in inner[1:] for item in part.named_children]
        chain = self.type_chain(typed, caller)
        for item in elements if inner[-1].type == "literal_value" else ():
            key = item.child_by_field_name("key") if item.type == "keyed_element" else None
            if key is None or chain:
                self.push([item], caller)
                if key is not None and self.text(key).isidentifier():
                    field = f"{_cast(chain)}.{self.text(key)}"
                    self.maker.ref(caller, "", field, key.start_point[0] + 1)
            else:
                self.push(item.named_children, caller)
        if inner[-1].type != "literal_value":
            self.push(inner[1:], caller)

    # types

    def type_chain(self, node: Node, caller: str) -> str:
        """The chain of a named type; nothing for what Go itself declares, and for a type parameter."""
        while node.type in ("pointer_type", "generic_type", "parenthesized_type") and node.named_child_count:
            if node.type == "generic_type":
                self.push(node.named_children[1:], caller)
            node = node.named_children[0]
        if node.type == "qualified_type":
            return "".join(self.text(node).split())
        name = self.text(node) if node.type in ("type_identifier", "identifier") else ""
        bound = self.bound_by(caller, name) if name else None
        if bound is not None:
            return bound if "[" not in bound else ""
        return "" if name in _PREDECLARED else name

    def annotation(self, node: Node, caller: str, depth: int = 0) -> str:
        """A type as an annotation (spak.world.annotations)."""
        kind = node.type
        if depth > 20:
            return ""
        if kind in _LISTS or kind == "map_type":
            parts = [node.child_by_field_name(name) for name in ("key", "value", "element")]
            inner = [self.annotation(part, caller, depth + 1) for part in parts if part is not None]
            if not inner and node.named_child_count:
                inner = [self.annotation(node.named_children[-1], caller, depth + 1)]
            return (
                f"{'dict' if kind == 'map_type' else 'list'}[{', '.join(part or 'None' for part in inner)}]"
            )
        if kind == "pointer_type" and node.named_child_count:
            return self.annotation(node.named_children[0], caller, depth + 1)
        if kind == "function_type":
            result = self._result(node, caller, depth + 1)
            return f"Callable[[], {result}]" if result else ""
        if kind == "generic_type" and node.named_child_count:
            node = node.named_children[0]
        return self.type_chain(node, caller) if node.type in ("type_identifier", "qualified_type") else ""

    def _result(self, node: Node, caller: str, depth: int = 0) -> str:
        result = node.child_by_field_name("result")
        if result is None:
            return ""
        if result.type != "parameter_list":
            return self.annotation(result, caller, depth)
        notes: list[str] = []
        for item in result.named_children:
            typed = item.child_by_field_name("type")
            note = self.annotation(typed, caller, depth) if typed is not None else ""
            notes += [note or "None"] * max(1, len(_named(item)))
        return notes[0] if len(notes) == 1 else f"tuple[{', '.join(notes)}]" if notes else ""


def _named(node: Node) -> list[Node]:
    return [child for child in node.children_by_field_name("name") if child.is_named]


def _seen(name: str) -> str:
    return "public" if name[:1].isupper() else "private"


def _cast(chain: str) -> str:
    """The root of a chain that begins with a value of a type."""
    return f"'cast:{chain.replace('.', ':')}" if chain else ""


def _lines(node: Node) -> tuple[int, int]:
    return node.start_point[0] + 1, node.end_point[0] + 1


def _package_names(module: str) -> list[str]:
    """The names by which a package without another one may be known: `x/go-yaml/v3` is `yaml`."""
    parts = [part for part in module.split("/") if part]
    if len(parts) > 1 and parts[-1][:1] == "v" and parts[-1][1:].isdigit():
        parts.pop()
    last = parts[-1] if parts else ""
    if last.isidentifier():
        return [last]
    words = last.replace(".", "-").split("-")
    return list(dict.fromkeys(word for word in ("".join(words), *words) if word.isidentifier()))
