"""What functions of Rust do: local names and their patterns, chains, and the tokens of macros."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spak.world.typed.base import OUTER
from spak.world.typed.rust_paths import NAMES, PATHS, SAME, Paths

if TYPE_CHECKING:
    from tree_sitter import Node

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


class Bodies(Paths):
    """One file under way."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.macros: list[tuple[str, str, int]] = []
        """Macros that are not Rust's own: caller, chain, line."""

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
            elif kind in PATHS:
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
                if token.type not in NAMES or token.type == "metavariable":
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
                    elif sign == "::" and not parts and after is not None and after.type in NAMES:
                        names.append(self.text(after))
                        at += 2
                    elif sign == "." and after is not None and after.type in (*NAMES, "integer_literal"):
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
            if kind in NAMES or kind in PATHS:
                root = self.text(node) if kind == "self" else self.path(node, caller)
                root = OUTER + root if kind in PATHS and root[0] != "?" else root
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
            elif kind in SAME and inner:
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


def _known(chain: str) -> bool:
    return bool(chain) and "?" not in chain
