"""Paths and types of Rust: as chains, and as annotations (`spak.world.annotations`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spak.world.typed.base import Typed

if TYPE_CHECKING:
    from tree_sitter import Node

NAMES = frozenset(["identifier", "type_identifier", "self", "crate", "super", "metavariable"])
PATHS = frozenset(["scoped_identifier", "scoped_type_identifier"])
SAME = frozenset(
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


class Paths(Typed):
    """One file under way."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.selves: dict[str, str] = {}
        """What `Self` is for a symbol."""

    def holder(self, node: Node) -> str:
        """The last name of the type of an `impl`."""
        while node.type not in ("type_identifier", "primitive_type"):
            inner = node.child_by_field_name("name") or node.child_by_field_name("trait")
            inner = inner or node.child_by_field_name("type")
            if inner is None:
                return ""
            node = inner
        return self.text(node)

    def bounds(self, node: Node, caller: str) -> dict[str, str]:
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

    def path(self, node: Node, caller: str) -> str:
        """The chain of a path; `?` for what is not known."""
        names: list[str] = []
        while node.type in PATHS:
            name, before = node.child_by_field_name("name"), node.child_by_field_name("path")
            names.append(self.text(name) if name is not None else "?")
            if before is None:
                return self.path_of(names[::-1], caller)
            node = before
            while node.type in SAME and node.named_child_count:
                self.push(node.named_children[1:], caller)
                node = node.named_children[0]
            if node.type == "qualified_type":
                node = node.child_by_field_name("type") or node
        while node.type in SAME and node.named_child_count:
            self.push(node.named_children[1:], caller)
            node = node.named_children[0]
        names.append(self.text(node) if node.type in NAMES else "?")
        return self.path_of(names[::-1], caller)

    def path_of(self, names: list[str], caller: str, inside: bool = False) -> str:
        """The chain of the names of a path: roots as the resolver knows them."""
        names = [name.removeprefix("r#") for name in names]
        first, module = names[0], self.module_of(self.maker.scope_of(caller))
        if inside:
            return "self"
        if first == "Self":
            own = self.self_of(caller)
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

    def self_of(self, caller: str) -> str:
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
            return self.self_of(caller) if self._holds(caller) else "Self"
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
