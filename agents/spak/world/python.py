"""The facts of a Python file, from tree-sitter's tree: one iterative walk in the order of the text.

Takes a tree and the bytes; fills a `Maker`. A broken file gives the facts of the parts that parse, and the
lines that do not. It resolves nothing: what a name means elsewhere is the linker's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spak.world.facts import Bind, Maker
from spak.world.python_chains import Chains, Handler, number

if TYPE_CHECKING:
    from tree_sitter import Node

_INTERFACES = (".Protocol", "Protocol", "ABC", ".ABC")


class Walk(Chains):
    """The statements of one file."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.moved: dict[tuple[str, str], str] = {}
        """Names that a function declares global: they are bound in the module."""
        self.gives: dict[str, list[str]] = {}
        names: dict[str, Handler] = {
            "class_definition": self.on_class,
            "function_definition": self.on_function,
            "decorated_definition": self.on_decorated,
            "import_statement": self.on_import,
            "import_from_statement": self.on_from,
            "assignment": self.on_assignment,
            "augmented_assignment": self.on_augmented,
            "named_expression": self.on_named,
            "for_statement": self.on_for,
            "for_in_clause": self.on_for,
            "with_item": self.on_with,
            "except_clause": self.on_except,
            "lambda": self.on_lambda,
            "keyword_argument": self.on_keyword,
            "global_statement": self.on_global,
            "return_statement": self.on_return,
            "yield": self.on_yield,
            "case_clause": self.on_case,
            "string": self.on_string,
        }
        ids = {number(name): handler for name, handler in names.items()}
        for name in ("call", "attribute", "subscript", "identifier"):
            ids[number(name)] = self.on_value
        for name in (
            "comment",
            "integer",
            "float",
            "true",
            "false",
            "none",
            "pass_statement",
            "future_import_statement",
        ):
            ids[number(name)] = self.on_nothing
        self.ids = ids

    def on_value(self, node: Node, caller: str) -> None:
        """An expression by itself."""
        self.on_expression(node, caller)

    def run(self, root: Node) -> Maker:
        """Walk the whole tree."""
        stack, ids = self.stack, self.ids
        stack.append((root, ""))
        while stack:
            node, caller = stack.pop()
            handler = ids.get(node.kind_id)
            if handler is not None:
                handler(node, caller)
            else:
                for child in reversed(node.named_children):
                    stack.append((child, caller))
        for qual, chains in self.gives.items():
            symbol = self.maker.symbols[qual]
            if "ret" not in symbol:
                settled = [self.maker.settled(qual, chain) for chain in chains[:8]]
                symbol["gives"] = [chain for chain in dict.fromkeys(settled) if chain]
        for symbol in self.maker.symbols.values():
            for binds in symbol.get("attrs", {}).values():
                for bind in binds:
                    bind[1] = self.maker.settled(bind[3], bind[1])
        return self.maker

    def on_keyword(self, node: Node, caller: str) -> None:
        """`name=value` in a call: the name is no reference."""
        self.stack.append((node.children[-1], caller))

    def on_class(self, node: Node, caller: str, decorators: tuple[str, ...] = ()) -> None:
        """A class, its bases, then its body."""
        scope = self.maker.scope_of(caller)
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name is None or body is None:
            return self.push(node.named_children, caller)
        start, end = node.start_point[0] + 1, node.end_point[0] + 1
        given = node.child_by_field_name("superclasses")
        sign = self.text(given) if given is not None else ""
        qual = self.maker.symbol(scope, self.text(name), "class", start, end, sign, dec=list(decorators))
        self.maker.bind(scope, self.text(name), ["s", qual])
        self.stack.append((body, qual))
        bases = []
        for base in given.named_children if given is not None else ():
            if base.type == "keyword_argument":
                self.on_keyword(base, qual)
            else:
                bases.append(self._outside(base, scope, qual, "base"))
        symbol = self.maker.symbols[qual]
        symbol["bases"] = [base for base in bases if base]
        if any(base.endswith(_INTERFACES) for base in bases):
            symbol["k"] = "interface"
        return None

    def _outside(self, node: Node, scope: str, qual: str, role: str) -> str:
        """A reference of a symbol whose names are those around it: a base, a decorator."""
        chain = self.chain(node, scope)
        chain = chain[: -len("[]")] if role == "base" and chain.endswith("[]") else chain
        if chain and chain[0] not in "'?":
            self.maker.ref(qual, role, chain, node.start_point[0] + 1)
        return chain

    def on_decorated(self, node: Node, caller: str) -> None:
        """Decorators, which belong to what they decorate."""
        *decorators, definition = node.named_children
        chains, kept = [], []
        for item in decorators:
            if item.type == "decorator" and item.named_child_count:
                kept.append(item)
                chains.append(self.chain(item.named_children[0], self.maker.scope_of(caller)))
        before = len(self.maker.symbols)
        if definition.type == "class_definition":
            self.on_class(definition, caller, tuple(chains))
        elif definition.type == "function_definition":
            self.on_function(definition, caller, tuple(chains))
        else:
            self.stack.append((definition, caller))
        if len(self.maker.symbols) > before:
            qual = list(self.maker.symbols)[before]
            for item, chain in zip(kept, chains, strict=True):
                if chain and chain[0] not in "'?":
                    self.maker.ref(qual, "deco", chain, item.start_point[0] + 1)

    def on_function(self, node: Node, caller: str, decorators: tuple[str, ...] = ()) -> None:
        """A function with its parameters, then its body."""
        scope = self.maker.scope_of(caller)
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        parameters = node.child_by_field_name("parameters")
        if name is None or body is None or parameters is None:
            return self.push(node.named_children, caller)
        result = node.child_by_field_name("return_type")
        start, end = node.start_point[0] + 1, node.end_point[0] + 1
        sign = " ".join(
            self.data[parameters.start_byte : (result or parameters).end_byte]
            .decode("utf-8", "replace")
            .split()
        )
        flags = _flags(decorators)
        qual = self.maker.symbol(
            scope, self.text(name), "function", start, end, sign,
            dec=list(decorators), flags=flags, ret=self.text(result) if result is not None else "",
        )  # fmt: skip
        self.maker.bind(scope, self.text(name), ["s", qual])
        self.stack.append((body, qual))
        if result is not None:
            self.typed(result, qual)
        found: list[list[str]] = []
        for item in parameters.named_children:
            self._parameter(item, qual, found)
        if found:
            self.maker.symbols[qual]["params"] = found
        return None

    def _parameter(self, item: Node, qual: str, found: list[list[str]]) -> None:
        kind, annotation = item.type, ""
        if kind == "identifier":
            found.append([self.text(item), "", ""])
            return
        parts = item.named_children
        if kind in ("typed_parameter", "typed_default_parameter"):
            typed = item.child_by_field_name("type")
            if typed is not None:
                annotation = self.text(typed)
                self.typed(typed, qual)
        if kind in ("default_parameter", "typed_default_parameter"):
            value = item.child_by_field_name("value")
            if value is not None:
                self.stack.append((value, qual))
        if not parts:
            return
        name, star = parts[0], ""
        if name.type in ("list_splat_pattern", "dictionary_splat_pattern"):
            star = "*" if name.type == "list_splat_pattern" else "**"
            name = name.named_children[0] if name.named_child_count else name
        elif kind in ("list_splat_pattern", "dictionary_splat_pattern"):
            star = "*" if kind == "list_splat_pattern" else "**"
        found.append([self.text(name), annotation, star])

    def on_import(self, node: Node, caller: str) -> None:
        """`import a.b` and `import a.b as c`."""
        scope = self.maker.scope_of(caller)
        for item in node.named_children:
            if item.type == "aliased_import":
                name, alias = item.named_children[0], item.named_children[-1]
                self._bind(scope, self.text(alias), ["m", self.text(name)])
            elif item.type == "dotted_name":
                module = self.text(item)
                self._bind(scope, module.partition(".")[0], ["m", module.partition(".")[0]])
                if "." in module:
                    self.maker.bind(scope, f"import {module}", ["m", module])

    def on_from(self, node: Node, caller: str) -> None:
        """`from a import b as c`, relative or not, and `*`."""
        scope = self.maker.scope_of(caller)
        module, *names = node.named_children
        words = self.text(module).replace(" ", "")
        level = len(words) - len(words.lstrip("."))
        for item in names:
            if item.type == "wildcard_import":
                self.maker.stars.append([level, words[level:]])
            elif item.type == "aliased_import":
                name, alias = self.text(item.named_children[0]), self.text(item.named_children[-1])
                self._bind(scope, alias, ["i", level, words[level:], name])
            elif item.type == "dotted_name":
                self._bind(scope, self.text(item), ["i", level, words[level:], self.text(item)])

    def _bind(self, scope: str, name: str, bind: Bind) -> None:
        self.maker.bind(self.moved.get((scope, name), scope), name, bind)

    def on_global(self, node: Node, caller: str) -> None:
        """Names that are the module's."""
        for item in node.named_children:
            self.moved[self.maker.scope_of(caller), self.text(item)] = ""

    def on_assignment(self, node: Node, caller: str) -> None:
        """A value gets one name or several; at module and class level the name is a symbol."""
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        typed = node.child_by_field_name("type")
        if target is None:
            return self.push(node.named_children, caller)
        annotation = self.text(typed) if typed is not None else ""
        scope = self.maker.scope_of(caller)
        owner, name = caller, ""
        if target.kind_id == self.kinds.identifier:
            name = self.text(target)
            if self.maker.symbols[scope]["k"] != "function":
                owner = self._variable(scope, name, node, annotation)
            if name == "__all__" and not scope and value is not None:
                self._all(value)
        if typed is not None:
            self.typed(typed, owner)
        chain = self._value(value, owner) if value is not None else ""
        if name:
            self._bind(scope, name, ["v", chain, annotation, scope])
        else:
            self._targets(target, chain, annotation, caller)
        return None

    def _value(self, value: Node, caller: str) -> str:
        """The chain of a value, its references noted."""
        if value.type == "assignment":
            self.on_assignment(value, caller)
            inner = value
            while inner.type == "assignment" and inner.named_child_count:
                inner = inner.named_children[-1]
            value, caller = inner, caller
            return (
                self.chain(value, caller)
                if value.kind_id in (self.kinds.identifier, self.kinds.attribute)
                else ""
            )
        if value.kind_id in (self.kinds.tuple, self.kinds.dict):
            self.stack.append((value, caller))
            return ""
        return self.on_expression(value, caller)

    def _variable(self, scope: str, name: str, node: Node, annotation: str) -> str:
        base = f"{scope}.{name}" if scope else name
        if base in self.maker.symbols:
            return base if self.maker.symbols[base]["k"] in ("variable", "constant") else scope
        kind = "constant" if name.isupper() else "variable"
        return self.maker.symbol(
            scope, name, kind, node.start_point[0] + 1, node.end_point[0] + 1, annotation
        )

    def _all(self, value: Node) -> None:
        if value.kind_id in (self.kinds.list, self.kinds.tuple):
            names = [
                self.text(item)[1:-1] for item in value.named_children if item.kind_id == self.kinds.string
            ]
            self.maker.all = names

    def _targets(self, target: Node, chain: str, annotation: str, caller: str) -> None:
        """Bind the names of a target; those of a tuple to the parts of its value."""
        scope = self.maker.scope_of(caller)
        kind = target.type
        if kind == "identifier":
            self._bind(scope, self.text(target), ["v", chain, annotation, scope])
        elif kind == "attribute":
            owner, name = target.children[0], self.text(target.children[-1])
            if not self._attribute(scope, owner, name, chain, annotation, target):
                self.on_expression(target, caller)
        elif kind in ("pattern_list", "tuple_pattern", "list_pattern", "tuple", "list"):
            for at, item in enumerate(target.named_children):
                if item.type == "list_splat_pattern":
                    self._targets(item.named_children[0], "", "", caller)
                else:
                    self._targets(item, f"{chain}[{at}]" if chain and "|" not in chain else "", "", caller)
        else:
            self.stack.append((target, caller))

    def _attribute(self, scope: str, owner: Node, name: str, chain: str, annotation: str, node: Node) -> bool:
        """An attribute that a method sets on its instance."""
        symbol = self.maker.symbols[scope]
        parent = self.maker.parents.get(scope, "")
        params = symbol.get("params")
        if symbol["k"] != "function" or not params or owner.kind_id != self.kinds.identifier:
            return False
        holder = self.maker.symbols[parent]
        if holder["k"] not in ("class", "interface") or self.text(owner) != params[0][0]:
            return False
        binds = holder.setdefault("attrs", {}).setdefault(name, [])
        if len(binds) < 8:
            binds.append(["v", chain, annotation, scope])
        self.maker.ref(scope, "set", f"{params[0][0]}.{name}", node.start_point[0] + 1)
        return True

    def on_augmented(self, node: Node, caller: str) -> None:
        """`+=`; on `__all__` the names are added."""
        target = node.child_by_field_name("left")
        if target is not None and self.text(target) == "__all__" and self.maker.all is not None:
            value = node.child_by_field_name("right")
            before = self.maker.all
            if value is not None:
                self._all(value)
                self.maker.all = None if self.maker.all is before else [*before, *self.maker.all]
        self.push(node.named_children, caller)

    def on_named(self, node: Node, caller: str) -> None:
        """`:=`."""
        target, value = node.named_children[0], node.named_children[-1]
        self._targets(target, self.on_expression(value, caller), "", caller)

    def on_for(self, node: Node, caller: str) -> None:
        """A loop or a comprehension's `for`: its names are elements of what is gone through."""
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        rest = [child for child in node.named_children if child not in (target, value)]
        self.push(rest, caller)
        if target is None or value is None:
            return
        chain = self.on_expression(value, caller)
        self._targets(target, f"{chain}<>" if chain and "|" not in chain else "", "", caller)

    def on_with(self, node: Node, caller: str) -> None:
        """`with value as name`."""
        value = node.named_children[0]
        if value.type == "as_pattern" and value.named_child_count == 2:
            value, target = value.named_children
            chain = self.on_expression(value, caller)
            for item in target.named_children:
                self._targets(item, f"{chain}!w" if chain and "|" not in chain else "", "", caller)
        else:
            self.on_expression(value, caller)

    def on_except(self, node: Node, caller: str) -> None:
        """`except Kind as name`: the name is an instance of the kind."""
        children = node.named_children
        if children and children[0].type == "as_pattern" and children[0].named_child_count == 2:
            value, target = children[0].named_children
            self.push(children[1:], caller)
            kinds = value.named_children if value.kind_id == self.kinds.tuple else [value]
            chains = [self.on_expression(kind, caller) for kind in kinds]
            for item in target.named_children:
                self._targets(item, "|".join(f"{chain}()" for chain in chains if chain), "", caller)
        else:
            self.push(children, caller)

    def on_lambda(self, node: Node, caller: str) -> None:
        """The names of a lambda are those of the function around it, as far as it has none of that name."""
        given = node.child_by_field_name("parameters")
        scope = self.maker.scope_of(caller)
        for item in given.named_children if given is not None else ():
            name = item if item.type == "identifier" else (item.named_children or [item])[0]
            if self.maker.symbols[scope]["k"] == "function":
                self.maker.bind(scope, self.text(name), ["v", "", "", scope])
        body = node.child_by_field_name("body")
        if body is not None:
            self.stack.append((body, caller))

    def on_return(self, node: Node, caller: str) -> None:
        """What a function gives, where it does not say so in its signature."""
        for value in node.named_children:
            chain = self.on_expression(value, caller)
            if (
                self.maker.symbols[caller]["k"] == "function"
                and chain
                and "ret" not in self.maker.symbols[caller]
            ):
                found = self.gives.setdefault(caller, [])
                found += [
                    part for part in chain.split("|") if part and part[0] not in "?'" and part not in found
                ]

    def on_yield(self, node: Node, caller: str) -> None:
        """A generator; what it yields are elements of what it gives."""
        symbol = self.maker.symbols[caller]
        if symbol["k"] == "function" and "g" not in symbol.get("flags", ""):
            symbol["flags"] = symbol.get("flags", "") + "g"
        for value in node.named_children:
            chain = self.on_expression(value, caller)
            if (
                symbol["k"] == "function"
                and "ret" not in symbol
                and chain
                and chain[0] not in "?'"
                and "|" not in chain
            ):
                self.gives.setdefault(caller, []).append(f"{chain}!l")

    def on_case(self, node: Node, caller: str) -> None:
        """Names in patterns are bound, not read; classes in them are read."""
        for child in node.named_children:
            if child.type != "case_pattern":
                self.stack.append((child, caller))
        patterns = [child for child in node.named_children if child.type == "case_pattern"]
        while patterns:
            item = patterns.pop()
            if item.type == "class_pattern" and item.named_child_count:
                kind = item.named_children[0]
                self.maker.ref(caller, "", self.text(kind), kind.start_point[0] + 1)
                patterns += item.named_children[1:]
            elif item.type == "dotted_name":
                scope = self.maker.scope_of(caller)
                if "." in self.text(item):
                    self.maker.ref(caller, "", self.text(item), item.start_point[0] + 1)
                elif self.maker.symbols[scope]["k"] == "function":
                    self.maker.bind(scope, self.text(item), ["v", "", "", scope])
            else:
                patterns += item.named_children


def _flags(decorators: tuple[str, ...]) -> str:
    """p property, s static, c class method, w context manager, o overload."""
    flags = ""
    for chain in decorators:
        name = chain.removesuffix("()").rpartition(".")[2]
        flags += {
            "property": "p", "cached_property": "p", "setter": "p", "getter": "p", "deleter": "p",
            "staticmethod": "s", "classmethod": "c", "overload": "o",
            "contextmanager": "w", "asynccontextmanager": "w",
        }.get(name, "")  # fmt: skip
    return flags
