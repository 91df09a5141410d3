"""The facts of a Rust file: functions, types with their `impl` blocks, traits, modules, and what they name.

Takes tree-sitter's tree; fills a `Maker`. Paths are chains that begin with `crate`, `mod` (the file's own
module; `super` is a step), a name of the file, or a crate of the tree. A module that is written within the
file is a class with flag `m`. What is given to a macro is read as far as it looks like calls and paths;
macros are not expanded. Types are what is declared: `Option`, `Result` and containers are lists of what they
hold; `&`, `Box`, `Rc`, `Mutex` and their kind are what they hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spak.world.facts import RUST, RUST_TEST, Maker
from spak.world.typed.rust_bodies import Bodies
from spak.world.typed.rust_paths import NAMES, PATHS

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPES = ("struct_item", "enum_item", "union_item", "type_item", "trait_item")


class Walk(Bodies):
    """One file under way."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        values = (
            *("identifier", "self", "scoped_identifier", "field_expression", "call_expression"),
            *(
                "index_expression",
                "try_expression",
                "await_expression",
                "generic_function",
                "struct_expression",
            ),
        )
        self.handlers = {
            "use_declaration": self.on_use,
            "extern_crate_declaration": lambda node, caller: None,
            "mod_item": self.on_module,
            "function_item": self.on_function,
            "function_signature_item": self.on_function,
            "impl_item": self.on_impl,
            "const_item": self.on_constant,
            "static_item": self.on_constant,
            "macro_definition": self.on_macro,
            "macro_invocation": self.on_invocation,
            "attribute_item": lambda node, caller: None,
            "inner_attribute_item": lambda node, caller: None,
            "visibility_modifier": lambda node, caller: None,
            "lifetime": lambda node, caller: None,
            "label": lambda node, caller: None,
            "let_declaration": self.on_let,
            "let_condition": self.on_let,
            "for_expression": self.on_for,
            "match_expression": self.on_match,
            "closure_expression": self.on_closure,
            "field_initializer": self.on_initializer,
            "type_identifier": self.on_type,
            "scoped_type_identifier": self.on_type,
            "type_parameters": self.on_bounds,
            **dict.fromkeys(_TYPES, self.on_declared),
            **dict.fromkeys(values, self.on_value),
        }

    def run(self, root: Node) -> Maker:
        """Walk the whole tree. A macro that the file does not have is a place that is not followed."""
        super().run(root)
        for caller, chain, line in self.macros:
            if chain not in self.maker.names and "." not in chain:
                self.maker.ref(caller, "", f"?.{chain}()", line)
        return self.maker

    # what is declared

    def on_use(self, node: Node, caller: str) -> None:
        """`use a::{b, c as d, e::*}`: names of the module or function around it."""
        argument = node.child_by_field_name("argument")
        scope = self.maker.scope_of(caller)
        left = [(argument, "")] if argument is not None else []
        while left:
            item, before = left.pop()
            kind = item.type
            path, alias = item.child_by_field_name("path"), item.child_by_field_name("alias")
            if kind in ("scoped_use_list", "use_list"):
                whole = _joined(before, self.path(path, caller)) if path is not None else before
                listed = item.child_by_field_name("list") or item
                left += [(child, whole) for child in listed.named_children]
            elif kind == "use_wildcard":
                whole = (
                    _joined(before, self.path(item.named_children[0], caller))
                    if item.named_children
                    else before
                )
                self._glob(whole, scope, caller)
            else:
                named = path if kind == "use_as_clause" else item
                if named is None or named.type not in (*NAMES, *PATHS):
                    continue
                whole = (
                    before if named.type == "self" and before else _joined(before, self.path(named, caller))
                )
                module, _, name = whole.rpartition(".")
                shown = self.text(alias) if alias is not None else name
                if shown.isidentifier() and shown != "_":
                    self.maker.bind(scope, shown, ["i", RUST, module, name])

    def _glob(self, whole: str, scope: str, caller: str) -> None:
        module = self.module_of(scope)
        if module and scope == module and whole == self.path_up(module):
            symbol = self.maker.symbols[module]
            symbol["flags"] = "mu"
        elif scope:
            self.maker.bind(scope, "*", ["i", RUST, whole, "*"])
        elif [RUST, whole] not in self.maker.stars:
            self.maker.stars.append([RUST, whole])

    def path_up(self, module: str) -> str:
        """The path of what is around a module of this file."""
        return ".".join(["mod", *module.split(".")[:-1]])

    def on_module(self, node: Node, caller: str) -> None:
        """`mod x;` is a file, `mod x { ... }` a part of this one."""
        name, body = self.name_of(node), node.child_by_field_name("body")
        if body is not None:
            qual = self.define(caller, name, "class", node, seen=_seen(node), flags="m")
            self.push([body], qual)
        elif name:
            file = next((text for kind, text in self.attributes(node) if kind == "path"), "")
            self.maker.bind(self.maker.scope_of(caller), name, ["m", file or name, RUST])

    def attributes(self, node: Node) -> list[tuple[str, str]]:
        """The last word and the value of each attribute before an item."""
        found, before = [], node.prev_named_sibling
        while before is not None and before.type in ("attribute_item", "line_comment", "block_comment"):
            inner = (
                before.named_children[0]
                if before.type == "attribute_item" and before.named_children
                else None
            )
            if inner is not None and inner.named_children:
                value = inner.child_by_field_name("value")
                word = self.text(inner.named_children[0]).rpartition(":")[2]
                found.append((word, self.text(value).strip('"') if value is not None else ""))
            before = before.prev_named_sibling
        return found

    def on_declared(self, node: Node, caller: str) -> None:
        """A type or a trait, with its fields, variants or methods."""
        name, body = self.name_of(node), node.child_by_field_name("body")
        if not name:
            return self.push(node.named_children, caller)
        kind = "interface" if node.type == "trait_item" else "class"
        qual = self.define(caller, name, kind, node, seen=_seen(node))
        self.selves[qual] = name if kind == "class" else ""
        self._generics(node, qual)
        rest = [
            child for child in node.named_children if child not in (body, node.child_by_field_name("name"))
        ]
        if kind == "interface":
            bounds = node.child_by_field_name("bounds")
            for bound in bounds.named_children if bounds is not None else ():
                self._base(qual, bound)
            self._items(body, qual, "")
        elif node.type == "type_item":
            typed = node.child_by_field_name("type")
            if typed is not None and typed.type not in ("tuple_type", "array_type"):
                self._base(qual, typed)
        else:
            self._fields(body, qual, qual, "")
        return self.push(rest, qual)

    def _base(self, qual: str, node: Node) -> None:
        scope, _, name = qual.rpartition(".")
        chain = self.annotation(node, qual)
        if chain and "[" not in chain:
            self.bases.append((scope, name, chain, node.start_point[0] + 1))

    def _fields(self, body: Node | None, qual: str, owner: str, before: str) -> None:
        """Fields of a struct or of a variant, and variants of an enumeration."""
        at = 0
        for item in body.named_children if body is not None else ():
            name, typed = self.name_of(item), item.child_by_field_name("type")
            if item.type == "enum_variant" and name:
                made = self.field(qual, name, item, self.selves[qual], seen="public", kind="constant")
                self._fields(item.child_by_field_name("body"), qual, made, f"{name}:")
            elif item.type == "field_declaration" and typed is not None:
                note = self.annotation(typed, qual)
                if before:
                    self._part(qual, before + name, note)
                    self.push([typed], owner)
                else:
                    self.push([typed], self.field(qual, name, item, note, seen=_seen(item)))
            elif item.type not in ("visibility_modifier", "attribute_item", "line_comment", "block_comment"):
                self._part(qual, f"{before}{at}", self.annotation(item, qual))
                self.push([item], owner)
                at += 1

    def _part(self, qual: str, name: str, note: str) -> None:
        self.maker.bind(qual, name, ["v", "", note, self.module_of(qual.rpartition(".")[0])])

    def on_impl(self, node: Node, caller: str) -> None:
        """`impl Trait for Type`: members of the type, whose base the trait is."""
        typed, trait = node.child_by_field_name("type"), node.child_by_field_name("trait")
        holder = self.holder(typed) if typed is not None else ""
        scope = self.module_of(self.maker.scope_of(caller))
        given = node.child_by_field_name("type_parameters")
        generics = self.bounds(node, "")
        if holder in generics:
            holder = ""
        if trait is not None and holder:
            chain = self.path(trait, caller)
            if chain and "?" not in chain:
                self.bases.append((scope, holder, chain, trait.start_point[0] + 1))
        self._items(node.child_by_field_name("body"), scope, holder or "_", trait is not None, generics)
        self.push([part for part in (typed, given) if part is not None], caller)

    def _items(
        self, body: Node | None, scope: str, holder: str, public: bool = True,
        generics: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        """The items of an `impl` (with the name of its type) or of a trait (the scope)."""
        for item in body.named_children if body is not None else ():
            if item.type in ("function_item", "function_signature_item"):
                self._function(item, scope, holder, public, generics or {})
            elif item.type == "const_item" and self.name_of(item):
                name, value = self.name_of(item), item.child_by_field_name("value")
                if holder:
                    qual = self.member(scope, holder, name, "constant", item, seen="public")
                else:
                    qual = self._symbol(scope, name, "constant", item, seen="public")
                    self.maker.bind(scope, name, ["s", qual])
                self.push([value] if value is not None else [], scope)
            elif item.type in ("type_item", "associated_type"):
                self.push(item.named_children[1:], scope)
            else:
                self.push([item], scope)

    def on_function(self, node: Node, caller: str) -> None:
        """A function of a module, or within another one."""
        self._function(node, caller, "", False, {})

    def _function(self, node: Node, caller: str, holder: str, public: bool, generics: dict[str, str]) -> None:
        name = self.name_of(node)
        if not name:
            return self.push(node.named_children, caller)
        given, result = node.child_by_field_name("parameters"), node.child_by_field_name("return_type")
        sign = self.words(given) + (f" -> {self.words(result)}" if result is not None else "")
        if any(
            word == "test" or word.endswith("test") or word.startswith("test_")
            for word, _ in self.attributes(node)
        ):
            sign = f"{sign[:200]} {RUST_TEST}"
        scope = self.maker.scope_of(caller)
        trait = self.maker.symbols[scope]["k"] == "interface"
        seen = "public" if public or trait else _seen(node)
        own = given is not None and any(self._is_self(item) for item in given.named_children)
        if holder:
            params = [["self", holder, ""]] if own else []
            qual = self.member(scope, holder, name, "function", node, sign, seen=seen, params=params)
        else:
            params = [["self", "", ""]] if own and trait else []
            qual = self.define(scope, name, "function", node, sign, seen=seen, params=params)
        if holder:
            self.selves[qual] = holder
        self.generics[qual] = {**generics, **self.bounds(node, qual)}
        note = self.annotation(result, qual) if result is not None else ""
        if note:
            self.maker.symbols[qual]["ret"] = note
        parts = (result, node.child_by_field_name("body"))
        self.push([part for part in parts if part is not None], qual)
        for part in node.named_children:
            if part.type in ("type_parameters", "where_clause"):
                self.push(part.named_children, qual)
        for item in given.named_children if given is not None else ():
            typed = item.child_by_field_name("type")
            pattern = item.child_by_field_name("pattern")
            if typed is not None:
                self.push([typed], qual)
                if pattern is not None and pattern.type != "self":
                    self.pattern(pattern, qual, "", self.annotation(typed, qual))
        return None

    def _is_self(self, item: Node) -> bool:
        pattern = item.child_by_field_name("pattern")
        return item.type == "self_parameter" or (pattern is not None and pattern.type == "self")

    def _generics(self, node: Node, qual: str) -> None:
        self.generics[qual] = self.bounds(node, qual)

    def on_bounds(self, node: Node, caller: str) -> None:
        """Type parameters: their bounds are looked at."""
        self.push([one for item in node.named_children for one in item.named_children[1:]], caller)

    def on_constant(self, node: Node, caller: str) -> None:
        """`const` and `static`."""
        name, value, typed = (
            self.name_of(node),
            node.child_by_field_name("value"),
            node.child_by_field_name("type"),
        )
        note = self.annotation(typed, caller) if typed is not None else ""
        parts = [part for part in (typed, value) if part is not None]
        if not name or name == "_":
            return self.push(parts, caller)
        if self.in_function(caller):
            self.local(caller, name, "", note)
            return self.push(parts, caller)
        scope = self.maker.scope_of(caller)
        kind = "constant" if node.type == "const_item" else "variable"
        qual = self._symbol(scope, name, kind, node, seen=_seen(node))
        self.maker.bind(scope, name, ["v", "", note, scope])
        return self.push(parts, qual)

    def on_macro(self, node: Node, caller: str) -> None:
        """`macro_rules!`: what its text names is not followed."""
        if self.name_of(node):
            self.define("", self.name_of(node), "function", node, seen="public")


def _seen(node: Node) -> str:
    return "public" if any(child.type == "visibility_modifier" for child in node.children) else "private"


def _joined(before: str, chain: str) -> str:
    return f"{before}.{chain}" if before else chain
