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
from spak.world.typed.base import OUTER, Typed

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPES = ("struct_item", "enum_item", "union_item", "type_item", "trait_item")
_NAMES = frozenset(["identifier", "type_identifier", "self", "crate", "super", "metavariable"])
_PATHS = frozenset(["scoped_identifier", "scoped_type_identifier"])
_SAME = frozenset(
    """parenthesized_expression reference_expression unary_expression await_expression generic_function
    generic_type generic_type_with_turbofish reference_type pointer_type bracketed_type""".split()  # noqa: SIM905
)
_HOLDERS = frozenset(
    """Box Rc Arc RefCell Cell Mutex RwLock Pin Ref RefMut MutexGuard Weak OnceCell OnceLock LazyLock Cow
    Wrapping""".split()  # noqa: SIM905
)
_LISTS = frozenset(
    """Option Result Vec VecDeque HashSet BTreeSet LinkedList BinaryHeap IndexSet SmallVec ArrayVec Iterator
    IntoIterator DoubleEndedIterator ExactSizeIterator Poll Receiver Sender""".split()  # noqa: SIM905
)
_MAPS = frozenset(["HashMap", "BTreeMap", "IndexMap", "FxHashMap", "DashMap"])
_EACH = frozenset(
    """map for_each filter any all find position flat_map filter_map retain take_while skip_while and_then
    map_or is_some_and inspect partition sort_by_key max_by_key min_by_key find_map""".split()  # noqa: SIM905
)
_PARTED = frozenset(["tuple_pattern", "slice_pattern", "tuple_struct_pattern", "struct_pattern"])
_MACROS = frozenset(
    """println print eprintln eprint format vec assert assert_eq assert_ne debug_assert debug_assert_eq write
    debug_assert_ne writeln panic todo unimplemented unreachable matches dbg env option_env concat stringify
    include_str include_bytes include cfg line column file module_path thread_local compile_error format_args
    """.split()  # noqa: SIM905
)
"""Macros of Rust itself."""


class Walk(Typed):
    """One file under way."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.selves: dict[str, str] = {}
        """What `Self` is for a symbol."""
        self.macros: list[tuple[str, str, int]] = []
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
                if named is None or named.type not in (*_NAMES, *_PATHS):
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
        holder = self._holder(typed) if typed is not None else ""
        scope = self.module_of(self.maker.scope_of(caller))
        given = node.child_by_field_name("type_parameters")
        generics = self._bounds(node, "")
        if holder in generics:
            holder = ""
        if trait is not None and holder:
            chain = self.path(trait, caller)
            if chain and "?" not in chain:
                self.bases.append((scope, holder, chain, trait.start_point[0] + 1))
        self._items(node.child_by_field_name("body"), scope, holder or "_", trait is not None, generics)
        self.push([part for part in (typed, given) if part is not None], caller)

    def _holder(self, node: Node) -> str:
        """The last name of the type of an `impl`."""
        while node.type not in ("type_identifier", "primitive_type"):
            inner = node.child_by_field_name("name") or node.child_by_field_name("trait")
            inner = inner or node.child_by_field_name("type")
            if inner is None:
                return ""
            node = inner
        return self.text(node)

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
        self.generics[qual] = {**generics, **self._bounds(node, qual)}
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
        self.generics[qual] = self._bounds(node, qual)

    def _bounds(self, node: Node, caller: str) -> dict[str, str]:
        """Type parameters with their first bound that is a name."""
        found: dict[str, str] = {}
        given = node.child_by_field_name("type_parameters")
        where = [child for child in node.named_children if child.type == "where_clause"]
        for item in [
            *(given.named_children if given is not None else ()),
            *(one for part in where for one in part.named_children),
        ]:
            name = item.child_by_field_name("name") or item.child_by_field_name("left")
            bounds = item.child_by_field_name("bounds")
            if (
                name is None
                or item.type not in ("type_parameter", "where_predicate")
                or name.type != "type_identifier"
            ):
                continue
            notes = (
                [self.annotation(bound, "") for bound in bounds.named_children] if bounds is not None else []
            )
            found[self.text(name)] = found.get(self.text(name)) or next((note for note in notes if note), "")
        return found

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

    # what functions do

    def on_let(self, node: Node, caller: str) -> None:
        """`let` and `if let`."""
        pattern, typed = node.child_by_field_name("pattern"), node.child_by_field_name("type")
        value, other = node.child_by_field_name("value"), node.child_by_field_name("alternative")
        chain = self.on_value(value, caller) if value is not None else ""
        if typed is not None:
            self.push([typed], caller)
        if other is not None:
            self.push([other], caller)
        if pattern is not None:
            self.pattern(pattern, caller, chain, self.annotation(typed, caller) if typed is not None else "")

    def on_for(self, node: Node, caller: str) -> None:
        """`for x in y`."""
        pattern, value = node.child_by_field_name("pattern"), node.child_by_field_name("value")
        body = node.child_by_field_name("body")
        self.push([body] if body is not None else [], caller)
        chain = self.on_value(value, caller) if value is not None else ""
        if pattern is not None:
            self.pattern(pattern, caller, f"{chain}<>" if _known(chain) else "")

    def on_match(self, node: Node, caller: str) -> None:
        """`match`: the names of each pattern are parts of the value."""
        value, body = node.child_by_field_name("value"), node.child_by_field_name("body")
        self.push([body] if body is not None else [], caller)
        chain = self.on_value(value, caller) if value is not None else ""
        for arm in body.named_children if body is not None else ():
            pattern = arm.child_by_field_name("pattern")
            if pattern is not None:
                self.pattern(pattern, caller, chain)

    def on_closure(self, node: Node, caller: str, chain: str = "") -> None:
        """A closure belongs to the function around it; `chain` is what its first parameter is."""
        parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
        self.push([body] if body is not None else [], caller)
        for item in parameters.named_children if parameters is not None else ():
            typed, pattern = item.child_by_field_name("type"), item.child_by_field_name("pattern")
            note = self.annotation(typed, caller) if typed is not None else ""
            self.pattern(pattern or item, caller, "" if note else chain, note)
            chain = ""

    def pattern(self, node: Node, caller: str, chain: str, note: str = "") -> None:
        """Bind the names of a pattern to parts of a value; what it names is a reference."""
        left = [(node, chain if _known(chain) else "", note)]
        while left:
            item, whole, declared = left.pop()
            kind, inner = item.type, item.named_children
            if declared and not whole and kind in _PARTED and self.in_function(caller):
                whole = f"~{item.start_byte}"  # a name for what has none
                self.local(caller, whole, "", declared)
            if kind in ("identifier", "shorthand_field_identifier"):
                name = self.text(item)
                if name[:1].isupper():  # a constant, or a variant without parts
                    self.maker.ref(caller, "", name, item.start_point[0] + 1)
                elif self.in_function(caller):
                    self.local(caller, name, whole, declared)
            elif kind in ("tuple_pattern", "slice_pattern"):
                parts = [part for part in inner if "comment" not in part.type]
                for at, part in enumerate(parts):
                    sign = f"[{at}]" if kind == "tuple_pattern" else "[]"
                    left.append((part, whole + sign if whole else "", ""))
            elif kind == "tuple_struct_pattern" and inner:
                path = self.path(inner[0], caller)
                self.on_type(inner[0], caller)
                for at, part in enumerate(inner[1:]):
                    left.append((part, self._inside(path, whole, str(at)), ""))
            elif kind == "struct_pattern" and inner:
                path = self.path(inner[0], caller)
                self.on_type(inner[0], caller)
                for part in inner[1:]:
                    field, named = part.child_by_field_name("name"), part.child_by_field_name("pattern")
                    if field is not None:
                        left.append((named or field, self._inside(path, whole, self.text(field)), ""))
            elif kind in _PATHS:
                self.on_type(item, caller)
            elif kind == "match_pattern":
                condition = item.child_by_field_name("condition")
                left += [(part, whole, declared) for part in inner if part != condition]
            elif kind.endswith("_pattern"):
                left += [(part, whole, declared) for part in inner if part.type != "mutable_specifier"]

    def _inside(self, path: str, whole: str, part: str) -> str:
        """The chain of a part of a value that is taken apart."""
        if path in ("Some", "Ok"):
            return f"{whole}!w" if whole else ""
        if path == "Err" or "?" in path or not path:
            return ""
        before, _, last = path.rpartition(".")
        if before.rpartition(".")[2][:1].isupper():  # a variant of an enumeration
            return f"{before}().{last}:{part}"
        return f"{path}().{part}"

    def on_initializer(self, node: Node, caller: str) -> None:
        """`name: value` of a literal."""
        value = node.child_by_field_name("value")
        self.push([value] if value is not None else [], caller)

    def on_invocation(self, node: Node, caller: str) -> None:
        """A macro with what looks like expressions in it."""
        macro = node.child_by_field_name("macro")
        chain = self.path(macro, caller) if macro is not None else "?"
        if "?" not in chain:
            self.note(caller, f"{chain}()", node)
            if chain not in _MACROS:
                self.macros.append((caller, chain, node.start_point[0] + 1))
        for tokens in node.named_children:
            if tokens.type == "token_tree":
                self._tokens(tokens, caller)

    def _tokens(self, node: Node, caller: str) -> None:
        """Chains in the tokens of a macro: names, paths, fields and calls."""
        left = [node]
        while left:
            tokens = left.pop().children
            at = 0
            while at < len(tokens):
                token = tokens[at]
                at += 1
                if token.type == "token_tree":
                    left.append(token)
                if token.type not in _NAMES or token.type == "metavariable":
                    continue
                parts, names = [], [self.text(token)]
                while at < len(tokens):
                    sign = tokens[at].type
                    after = tokens[at + 1] if at + 1 < len(tokens) else None
                    if (
                        sign == "token_tree"
                        and tokens[at].children
                        and tokens[at].children[0].type in ("(", "[")
                    ):
                        parts.append("()" if tokens[at].children[0].type == "(" else "[]")
                        left.append(tokens[at])
                        at += 1
                    elif sign == "::" and not parts and after is not None and after.type in _NAMES:
                        names.append(self.text(after))
                        at += 2
                    elif sign == "." and after is not None and after.type in (*_NAMES, "integer_literal"):
                        parts.append("." + self.text(after))
                        at += 2
                    elif sign == "?" and parts:
                        parts.append("!w")
                        at += 1
                    else:
                        break
                following = tokens[at].type if at < len(tokens) else ""
                if following != ":" and (following != "!" or parts):
                    root = self.path_of(names, caller, inside=token.type == "self" and len(names) == 1)
                    root = OUTER + root if len(names) > 1 and root[0] != "?" else root
                    self.note(caller, root + "".join(parts), token)

    def on_type(self, node: Node, caller: str) -> None:
        """The name of a type."""
        chain = self.path(node, caller)
        if chain and "?" not in chain:
            self.note(caller, OUTER + chain, node)

    def on_value(self, node: Node, caller: str) -> str:
        """Note the reference that an expression is, and give its chain."""
        return self.note(caller, self.chain(node, caller), node)

    def chain(self, node: Node, caller: str) -> str:
        """The chain of an expression; its arguments, and what is no chain, are visited later."""
        steps: list[str] = []
        closures: list[tuple[Node, int]] = []
        while True:
            kind, inner = node.type, [child for child in node.named_children if "comment" not in child.type]
            if kind in _NAMES or kind in _PATHS:
                root = self.text(node) if kind == "self" else self.path(node, caller)
                root = OUTER + root if kind in _PATHS and root[0] != "?" else root
                break
            if kind == "field_expression" and len(inner) > 1:
                steps.append("." + self.text(inner[-1]))
            elif kind == "call_expression" and len(inner) > 1:
                steps.append("()")
                self._arguments(inner, caller, closures, len(steps))
            elif kind == "struct_expression" and inner:
                steps.append("()")
                self.push(inner[1:], caller)
            elif kind == "index_expression" and len(inner) > 1:
                steps.append("[]")
                self.push(inner[1:], caller)
            elif kind == "try_expression" and inner:
                steps.append("!w")
            elif kind in _SAME and inner:
                inner = [
                    child for child in inner if child.type not in ("mutable_specifier", "lifetime")
                ] or inner
                self.push(inner[1:], caller)
            else:
                self.later(node, caller)
                root = "?"
                break
            node = inner[0]
        for closure, count in closures:
            of = root + "".join(reversed(steps[count + 1 :]))
            self.on_closure(closure, caller, f"{of}!w" if _known(of) else "")
        return root + "".join(reversed(steps))

    def _arguments(
        self, inner: list[Node], caller: str, closures: list[tuple[Node, int]], count: int
    ) -> None:
        """What a call is given; a closure that gets the items of what it is called on is seen to later."""
        method = inner[0].child_by_field_name("field") if inner[0].type == "field_expression" else None
        for item in reversed(inner[1].named_children):
            if item.type == "closure_expression" and method is not None and self.text(method) in _EACH:
                closures.append((item, count))
            else:
                self.push([item], caller)

    # paths and types

    def path(self, node: Node, caller: str) -> str:
        """The chain of a path; `?` for what is not known."""
        names: list[str] = []
        while node.type in _PATHS:
            name, before = node.child_by_field_name("name"), node.child_by_field_name("path")
            names.append(self.text(name) if name is not None else "?")
            if before is None:
                return self.path_of(names[::-1], caller)
            node = before
            while node.type in _SAME and node.named_child_count:
                self.push(node.named_children[1:], caller)
                node = node.named_children[0]
            if node.type == "qualified_type":
                node = node.child_by_field_name("type") or node
        while node.type in _SAME and node.named_child_count:
            self.push(node.named_children[1:], caller)
            node = node.named_children[0]
        names.append(self.text(node) if node.type in _NAMES else "?")
        return self.path_of(names[::-1], caller)

    def path_of(self, names: list[str], caller: str, inside: bool = False) -> str:
        """The chain of the names of a path: roots as the resolver knows them."""
        names = [name.removeprefix("r#") for name in names]
        first, module = names[0], self.module_of(self.maker.scope_of(caller))
        if inside:
            return "self"
        if first == "Self":
            own = self._self(caller)
            names[:1] = [own or "?"]
        elif first == "self":
            names[:1] = ["mod", *module.split(".")] if module else ["mod"]
        elif first == "super":
            up = module.split(".") if module else []
            while names and names[0] == "super":
                names.pop(0)
                if up:
                    up.pop()
                else:
                    up.append("super")
                    break
            names = ["mod", *up, *names]
        elif first != "crate":
            bound = self.bound_by(caller, first)
            if bound is not None:
                names[:1] = [bound if bound and "[" not in bound else "?"]
        return ".".join(names)

    def _self(self, caller: str) -> str:
        """What `Self` is."""
        while caller:
            if caller in self.selves:
                return self.selves[caller] or caller.rpartition(".")[2]
            caller = self.maker.parents[caller]
        return ""

    def annotation(self, node: Node, caller: str, depth: int = 0) -> str:
        """A type as an annotation (spak.world.annotations)."""
        kind = node.type
        if depth > 20:
            return ""
        inner = [
            child for child in node.named_children if child.type not in ("lifetime", "mutable_specifier")
        ]
        if (
            kind in ("reference_type", "pointer_type", "bounded_type", "dynamic_type", "abstract_type")
            and inner
        ):
            return self.annotation(inner[0], caller, depth + 1)
        if kind == "array_type" and inner:
            return f"list[{self.annotation(inner[0], caller, depth + 1) or 'None'}]"
        if kind == "tuple_type":
            parts = [self.annotation(part, caller, depth + 1) or "None" for part in inner]
            return f"tuple[{', '.join(parts)}]"
        if kind == "function_type":
            result = node.child_by_field_name("return_type")
            note = self.annotation(result, caller, depth + 1) if result is not None else ""
            return f"Callable[[], {note}]" if note else ""
        if kind == "generic_type" and len(inner) > 1:
            name = self.text(inner[0]).rpartition(":")[2]
            given = [child.child_by_field_name("type") if child.type == "type_binding" else child
                     for child in inner[1].named_children if child.type != "lifetime"]  # fmt: skip
            notes = [self.annotation(part, caller, depth + 1) for part in given if part is not None]
            if name in _HOLDERS and notes:
                return notes[-1] if name == "Cow" else notes[0]
            if name in _LISTS and notes:
                return f"list[{notes[0] or 'None'}]"
            if name in _MAPS and len(notes) > 1:
                return f"dict[{notes[0] or 'None'}, {notes[1] or 'None'}]"
            node = inner[0]
        if node.type == "type_identifier" and self.text(node) == "Self":
            return self._self(caller) if self._holds(caller) else "Self"
        if node.type not in ("type_identifier", "scoped_type_identifier"):
            return ""
        bound = self.bound_by(caller, self.text(node)) if node.type == "type_identifier" else None
        if bound is not None:
            return bound
        chain = self.path(node, caller)
        return "" if "?" in chain else chain

    def _holds(self, caller: str) -> bool:
        """Whether `Self` is one type: not so in a trait."""
        while caller and caller not in self.selves:
            caller = self.maker.parents[caller]
        return bool(self.selves.get(caller))


def _seen(node: Node) -> str:
    return "public" if any(child.type == "visibility_modifier" for child in node.children) else "private"


def _joined(before: str, chain: str) -> str:
    return f"{before}.{chain}" if before else chain


def _known(chain: str) -> bool:
    return bool(chain) and "?" not in chain
